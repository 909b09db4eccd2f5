#include "commands/application_parts.h"

#include "commands/workspace.h"
#include "core/planted_faults.h"
#include "feed/sequencer.h"
#include "locks/stored_lock.h"
#include "rows/index_entries.h"
#include "rows/stored_rows.h"
#include "transactions/paging.h"
#include "transactions/sweeper.h"
#include "transactions/system_table.h"

#include <varve/core/error.h>

#include <set>
#include <utility>

namespace varve::detail {

using namespace transactions;

namespace {

const ApplicationOptions& checked(const ApplicationOptions& options) {
    const std::pair<const char*, Duration> times[] = {
        {"retry.first_delay", options.retry.first_delay},
        {"retry.delay_max", options.retry.delay_max},
        {"retry.time_max", options.retry.time_max},
        {"escalation.queue_time_max", options.escalation.queue_time_max},
        {"escalation.reserve_after_time", options.escalation.reserve_after_time},
        {"sweep_interval", options.sweep_interval},
        {"scan.page_interval", options.scan.page_interval},
        {"scan.pause", options.scan.pause},
    };
    for (const auto& [name, time] : times) {
        if (time >= Duration::zero()) continue;
        throw ConfigError(std::string{"ApplicationOptions::"} + name + " is " + to_string(time) +
                          "; a time to wait cannot be negative");
    }
    if (options.sweep && options.sweep_interval == Duration::zero()) {
        throw ConfigError(
            "ApplicationOptions::sweep_interval is 0 s: the sweeper would ask the store without a pause; to have none, "
            "set sweep to false");
    }
    if (const unsigned shards = options.feed_shards.value_or(1); shards == 0 || shards > bell_shards_max) {
        throw ConfigError("ApplicationOptions::feed_shards is " + std::to_string(shards) + "; give it 1 to " +
                          std::to_string(bell_shards_max));
    }
    return options;
}

store::ItemStore& prepared(store::ItemStore& store) {
    check_format(store);
    store.ensure_table(events_table());
    store.ensure_table(locks::locks_table());  // a command that has to queue should not be the first to make it
    return store;
}

unsigned decided_bell_shards(store::ItemStore& store, const ApplicationOptions& options) {
    const unsigned shards = decide_on_bells(store, {.announced = options.feed, .shards = options.feed_shards});
    if (shards > 0) feed::ensure_log_tables(store);
    return shards;
}

/// Puts slots in order for all processes, while this one has the lock.
class Sequencing {
  public:
    explicit Sequencing(ApplicationParts& parts) : parts_(parts) {}

    Duration turn(const std::stop_token& stop) {
        constexpr Duration poll_interval = std::chrono::milliseconds{100};
        constexpr Duration look_again_after = std::chrono::seconds{1};
        if (!lock_) {
            Clock& clock = parts_.options.runtime.clock;
            const Duration left = look_again_at_ - clock.steady_now();
            if (left > Duration::zero()) return left;  // each command of this process has woken it
            look_again_at_ = clock.until(look_again_after);
            // Who waits in its queue asks the store far more often than an owner does.
            lock_ = parts_.locks.try_acquire("$sequencer", {.wait = Duration{0}});
            if (!lock_) return look_again_after;
            sequencer_.emplace(parts_.coordinator);
        }
        while (!stop.stop_requested() && !lock_->is_lost()) {
            const std::uint64_t before = sequencer_->logged();
            const bool more = sequencer_->round();
            if (sequencer_->logged() > before) parts_.followers->wake_all();
            if (!more) return poll_interval;
        }
        lock_.reset();
        return Duration::zero();
    }

  private:
    ApplicationParts& parts_;
    SteadyTime look_again_at_{};  // for the lock
    std::optional<Lock> lock_;
    std::optional<feed::Sequencer> sequencer_;
};

/// What one sweep leaves to the next.
class Sweeping {
  public:
    explicit Sweeping(ApplicationParts& parts) : parts_(parts) {}

    void sweep() {
        meet_others();
        if (auto names = parts_.row_tables.names(); names != tables_) {
            sweeper_.reset();
            tables_ = std::move(names);
        }
        if (!sweeper_) {
            sweeper_ = std::make_unique<Sweeper>(parts_.coordinator, std::vector(tables_.begin(), tables_.end()),
                                                 parts_.options.scan);
        }
        sweeper_->sweep();
        const SteadyTime now = parts_.options.runtime.clock.get().steady_now();
        if (now >= collects_at_ && parts_.locks.collect_page()) collects_at_ = now + std::chrono::hours{1};
    }

  private:
    /// What other programs keep rows in. Where that fails, the tables that are known are swept all the same.
    void meet_others() {
        const SteadyTime now = parts_.options.runtime.clock.get().steady_now();
        if (now < meets_others_at_) return;
        meets_others_at_ = now + std::chrono::minutes{1};
        std::string failed;
        try {
            static_cast<void>(parts_.row_tables.names_in_store());
        } catch (const Error& error) {
            failed = error.what();
        }
        if (!failed.empty() && failed != failed_) {
            try_to_log(parts_.options.runtime.log, LogLevel::warning,
                       [&] { return "not all tables with rows are swept: " + failed; });
        }
        failed_ = std::move(failed);
    }

    ApplicationParts& parts_;
    SteadyTime meets_others_at_{};
    std::string failed_;  // how they could not be met, when it was tried last
    std::unique_ptr<Sweeper> sweeper_;
    std::set<std::string, std::less<>> tables_;
    // A program that runs for a moment leaves this to those that stay.
    SteadyTime collects_at_ = parts_.options.runtime.clock.get().steady_now() + std::chrono::minutes{1};
};

}  // namespace

ApplicationParts& parts_of(Application& application) {
    return *application.parts_;
}

ApplicationParts::ApplicationParts(Application& of, std::shared_ptr<store::ItemStore> in, ApplicationOptions with)
    : application(of),
      options(checked(with)),
      store(std::make_shared<store::MeasuredStore>(std::move(in), options.runtime)),
      threads(options.executor ? nullptr : make_thread_executor(options.background_threads, options.runtime)),
      executor(options.executor ? *options.executor : *threads),
      coordinator(prepared(*store), options.runtime, executor, options.transactions,
                  decided_bell_shards(*store, options)),
      locks(store, options.locks, options.runtime),
      turns(store, {.time_to_live = options.transactions.lease, .heartbeat_thread = false}, options.runtime),
      row_tables(coordinator, options.transactions.retention / 4),
      repository(coordinator, executor, options.cache_bytes_max),
      events(coordinator, options.retry),
      runner(repository, coordinator, row_tables, projections, *followers, turns, metrics, options.tracer,
             options.retry, options.escalation),
      lanes(std::make_unique<Lanes>(runner, options.runtime, options.executor, options.lanes)),
      streams(*this) {
    if (options.sweep) {
        sweeper =
            BackgroundLoop{options.runtime,
                           {.thread = "varve-sweep", .work = "the sweeper", .retry_after = options.sweep_interval},
                           [this, sweeping = std::make_shared<Sweeping>(*this)](const std::stop_token&) {
                               sweeping->sweep();
                               return options.sweep_interval;
                           }};
        if (coordinator.announces()) {
            // A program that runs for a moment, and waits for nothing, leaves this to those that stay.
            const SteadyTime begins_at = options.runtime.clock.get().until(std::chrono::seconds{1});
            sequencer = BackgroundLoop{
                options.runtime,
                {.thread = "varve-sequence", .work = "the sequencer", .retry_after = std::chrono::seconds{1}},
                [this, begins_at, sequencing = std::make_shared<Sequencing>(*this)](const std::stop_token& stop) {
                    const Duration left = begins_at - options.runtime.clock.get().steady_now();
                    if (left > Duration::zero() && followers->are_none() && !awaited_in_order) return left;
                    return sequencing->turn(stop);
                }};
            followers->come_after(sequencer);
        }
    }
}

Outcome ApplicationParts::transact(CommandMetrics::OfAggregate& counted_with, std::optional<telemetry::OpenSpan> span,
                                   const std::function<void(Transaction&)>& body, const CommandOptions& options) {
    runner.check("transact", options);
    begin_command();
    Command command{
        .body = body,
        .options = options,
        .metrics = counted_with,
        .began = this->options.runtime.clock.get().now(),
        .fingerprint = options.command_id.empty() ? std::string{} : fingerprint({}, "transact", options.contents),
        .span = std::move(span)};
    Command* const only = &command;
    runner.run({&only, 1});
    if (command.failure) std::rethrow_exception(command.failure);
    return std::move(*command.outcome);
}

Outcome own_transaction(Application& application, const std::function<void(Transaction&)>& body) {
    ApplicationParts& parts = parts_of(application);
    return parts.transact(parts.metrics.of_own(), std::nullopt, body, {});
}

void ApplicationParts::end() {
    if (process.is_another()) {  // nobody is there to drain anything
        abandon(std::move(followers));
        abandon(std::move(lanes));
        return;
    }
    followers->clear();
    sweeper = {};
    lanes->drain();
    executor.drain();
    sequencer = {};  // commands wake it
}

void ApplicationParts::project(AggregateProjection projection) {
    if (commanded) {
        throw ConfigError(projection.name() +
                          " comes after the first command, whose events it would miss; call project() before any "
                          "execute, submit, transact, follow or subscribe");
    }
    repository.meet(projection.aggregate);
    const std::string aggregate{projection.aggregate.named.name};
    projections.add(std::move(projection));
    events.has_projections(aggregate);
}

bool ApplicationParts::put_in_place(const Receipt& receipt, SteadyTime until) {
    Clock& clock = options.runtime.clock;
    for (const Receipt::Written& written : slots_of(receipt)) {
        const store::Key key = slot_key(written.stream, written.version);
        for (;;) {
            const std::optional<store::Item> item = store->read({&key, 1}).front();
            if (!item || !claim_on(key, *item)) break;
            if (coordinator.resolver().settle(key, *item) != Verdict::undecided) continue;
            if (clock.steady_now() >= until) return false;
            clock.sleep_for(std::chrono::milliseconds{5});
        }
    }
    return true;
}

template <class Read>
auto ApplicationParts::read_live(const RowTable& table, const Read& read) {
    if (table.kept_by.empty()) return read(table, 1);
    for (;;) {
        const std::int64_t likely = row_tables.builds().live(table.kept_by);
        auto found = read(row_tables.of_build(table, likely), likely);
        if (builds(table.kept_by).live.number == likely) return found;
    }
}

std::vector<std::optional<std::string>> ApplicationParts::read(const RowTable& table, const std::vector<RowKey>& keys,
                                                               Isolation isolation) {
    std::vector<std::optional<std::string>> rows;
    if (isolation == Isolation::serializable) {
        const auto body = [&](Transaction& tx) {
            rows.clear();
            for (const RowKey& key : keys) rows.push_back(Workspace::of(tx).read(table, key));
        };
        own_transaction(application, body).value();
        return rows;
    }
    const auto read_in = [&](const RowTable& build, std::optional<store::Key> beside) {
        std::vector<store::Key> stored;
        for (const RowKey& key : keys) stored.push_back(stored_key(build, key));
        if (beside) stored.push_back(*std::move(beside));
        return coordinator.reader().rows(stored, isolation);
    };
    std::vector<Image> images;
    if (table.kept_by.empty()) {
        images = read_in(table, std::nullopt);
    } else if (isolation == Isolation::uncommitted) {  // which rows are read depends on nothing that may be undone
        images = read_live(table, [&](const RowTable& build, auto) { return read_in(build, std::nullopt); });
    } else {
        for (;;) {
            const std::int64_t likely = row_tables.builds().live(table.kept_by);
            images = read_in(row_tables.of_build(table, likely), builds_key(table.kept_by));
            const std::int64_t live = decode_builds(table.kept_by, images.back().data).live.number;
            images.pop_back();
            row_tables.builds().learn(table.kept_by, live);
            if (live == likely || planted(PlantedFault::a_reader_does_not_look_whether_its_build_is_still_live)) break;
        }
    }
    for (Image& image : images) rows.push_back(std::move(image.data));
    return rows;
}

Builds ApplicationParts::builds(std::string_view follower) {
    row_tables.ensure(row_table<Builds>);
    const store::Key key = builds_key(follower);
    const Image image = coordinator.reader().rows({&key, 1}, Isolation::committed).front();
    Builds builds = decode_builds(follower, image.data);
    row_tables.builds().learn(follower, builds.live.number);
    return builds;
}

const RowTable& ApplicationParts::live_build(const RowTable& table) {
    return table.kept_by.empty() ? table : row_tables.of_build(table, builds(table.kept_by).live.number);
}

template <class Read>
StoredPage ApplicationParts::paged(const RowTable& table, const PageOptions& options, const Read& read) {
    if (table.kept_by.empty()) return read(table, options);
    const PageOfBuild page{options};
    std::int64_t number = 0;
    if (!page.number) {
        StoredPage first = read_live(table, [&](const RowTable& build, std::int64_t live) {
            number = live;
            return read(build, page.page);
        });
        return PageOfBuild::of(std::move(first), number);
    }
    number = *page.number;
    const auto check = [&] {
        if (!builds(table.kept_by).is_whole(number)) throw_list_is_gone(table);
    };
    if (number != row_tables.builds().live(table.kept_by)) check();  // a token may say anything
    StoredPage found = read(row_tables.of_build(table, number), page.page);
    check();
    return PageOfBuild::of(std::move(found), number);
}

namespace {

std::vector<StoredRow> stored_rows(std::vector<Reader::FoundRow> found) {
    std::vector<StoredRow> rows;
    for (Reader::FoundRow& row : found) {
        if (row.image.data) rows.push_back({row_key(row.key), std::move(*row.image.data)});
    }
    return rows;
}

}  // namespace

StoredPage ApplicationParts::range(const RowTable& table, const RowRange& range, const PageOptions& options,
                                   Isolation isolation) {
    if (isolation == Isolation::serializable) {
        StoredPage page;
        own_transaction(application, [&](Transaction& tx) {
            page = Workspace::of(tx).range(table, range, options);
        }).value();
        return page;
    }
    return paged(table, options, [&](const RowTable& build, const PageOptions& page) {
        return range_in(build, range, page, isolation);
    });
}

StoredPage ApplicationParts::range_in(const RowTable& table, const RowRange& range, const PageOptions& options,
                                      Isolation isolation) {
    const PageOfRange page{stored_range(table, range), options};
    Reader::FoundRange found = coordinator.reader().range(page.query(), isolation, page.enough());
    return page.page(stored_rows(std::move(found.rows)), std::move(found.stopped_at));
}

StoredPage ApplicationParts::all(const RowTable& table, const PageOptions& options, Isolation isolation) {
    if (isolation != Isolation::committed && isolation != Isolation::uncommitted) {
        throw InvalidError("all rows of a table can be read at committed or uncommitted only; read ranges instead");
    }
    return paged(table, options,
                 [&](const RowTable& build, const PageOptions& page) { return all_in(build, page, isolation); });
}

StoredPage ApplicationParts::all_in(const RowTable& table, const PageOptions& page, Isolation isolation) {
    const std::string name{table.type.name};
    const std::string list = "all rows of '" + name + "'";
    const std::optional<std::string> next = continued(list, page);
    Reader::Scanned found = coordinator.reader().scan(name, isolation, page.limit, next);
    return {.rows = stored_rows(std::move(found.rows)), .next = token(list, found.next)};
}

std::optional<StoredRow> ApplicationParts::find(const RowTable& table, const IndexRange& range) {
    return read_live(table, [&](const RowTable& build, auto) { return find_in(build, range); });
}

std::optional<StoredRow> ApplicationParts::find_in(const RowTable& table, const IndexRange& range) {
    row_tables.indexes().check_query(table, range.index);
    const store::Key entry = entry_of_unique(table, range.index, range.first);
    for (std::optional<std::string> seen;;) {
        const Image image = coordinator.reader().rows({&entry, 1}, Isolation::committed).front();
        if (!image.data) return std::nullopt;
        const store::Key key = stored_key(table, decode_entry(entry, *image.data));
        Image found = coordinator.reader().rows({&key, 1}, Isolation::committed).front();
        if (std::optional<StoredRow> row = row_in(range, table, key, std::move(found.data))) return row;
        // The value may have gone to another row between the two reads: then its entry has, too.
        if (image.rev == seen) return std::nullopt;
        seen = image.rev;
    }
}

StoredPage ApplicationParts::indexed(const RowTable& table, const IndexRange& range, const PageOptions& options) {
    return paged(table, options,
                 [&](const RowTable& build, const PageOptions& page) { return indexed_in(build, range, page); });
}

StoredPage ApplicationParts::indexed_in(const RowTable& table, const IndexRange& range, const PageOptions& options) {
    row_tables.indexes().check_query(table, range.index);
    const PageOfRange page{query_of(table, range), options};
    Reader::FoundRange found = coordinator.reader().range(page.query(), Isolation::committed, page.enough());
    StoredPage entries = page.page(stored_rows(std::move(found.rows)), std::move(found.stopped_at));
    StoredPage rows{.rows = {}, .next = std::move(entries.next)};
    const std::vector<store::Key> keys = rows_named_by(table, entries.rows);
    if (keys.empty()) return rows;
    std::vector<Image> images = coordinator.reader().rows(keys, Isolation::committed);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (std::optional<StoredRow> row = row_in(range, table, keys[i], std::move(images[i].data)))
            rows.rows.push_back(*std::move(row));
    }
    return rows;
}

}  // namespace varve::detail
