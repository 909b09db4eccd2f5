#include <varve/commands/application.h>
#include <varve/core/error.h>
#include <varve/core/ids.h>
#include <varve/core/json.h>
#include <varve/transactions/sweeper.h>
#include <varve/transactions/system_table.h>

#include <algorithm>
#include <set>

namespace varve {

using namespace transactions;

namespace {

constexpr std::size_t command_id_bytes_max = 200;
constexpr const char* receipt_attribute = "receipt";

// A command that was executed under an id leaves slot 1 of the stream "$cmd-<id>", written in its transaction:
//
//     payload := receipt                     (JSON text: [{"stream":…,"version":…}, …])
store::Key command_slot(const std::string& command_id) {
    return slot_key("$cmd-" + command_id, 1);
}

Receipt receipt_of(const Plan& plan, const Commit& commit, unsigned attempts) {
    Receipt receipt{.transaction = commit.path == Path::nothing ? std::string{} : commit.tx,
                    .written = {},
                    .primary = {},
                    .path = commit.path,
                    .attempts = attempts};
    for (const SlotWrite& slot : plan.slots) {
        if (!is_internal(slot.key.partition)) receipt.written.push_back({slot.key.partition, version_of(slot.key)});
    }
    if (!commit.primary.partition.empty()) receipt.primary = {commit.primary.partition, version_of(commit.primary)};
    for (const HeldSlot& slot : plan.held) {
        if (slot.payload) receipt.written.push_back({slot.key.partition, version_of(slot.key)});
    }
    return receipt;
}

store::ItemStore& prepared(store::ItemStore& store) {
    check_format(store);
    store.ensure_table(events_table());
    return store;
}

/// One single read is of one moment as it is.
bool is_one_read(const Plan& plan) {
    return plan.writes() == 0 && plan.on_primary.empty() && plan.ranges_read.empty() &&
           plan.heads_read.size() + plan.rows_read.size() <= 1;
}

}  // namespace

Application::Application(std::shared_ptr<store::ItemStore> store, ApplicationOptions options)
    : store_(std::move(store)),
      options_(options),
      threads_(options.executor ? nullptr : make_thread_executor(options.background_threads, options.runtime)),
      executor_(options.executor ? *options.executor : *threads_),
      coordinator_(prepared(*store_), options.runtime, executor_, options.transactions),
      row_tables_(*store_),
      repository_(coordinator_, options.remembered_aggregates_max),
      events_(coordinator_, options.retry) {
    if (options.sweep && store_->capabilities().ordered_changes) {
        sweeper_ = std::jthread{[this](const std::stop_token& stop) { sweep(stop); }};
    }
}

Application::~Application() {
    sweeper_ = {};
    executor_.drain();
}

Outcome Application::transact(const std::function<void(Transaction&)>& body, const CommandOptions& options) {
    if (options.expected_version) {
        throw InvalidError("expected_version is for execute; in a transaction compare tx.version<A>(id) yourself");
    }
    return run(body, options);
}

Outcome Application::run(const std::function<void(Transaction&)>& body, const CommandOptions& options) {
    const std::string& command_id = options.command_id;
    if (command_id.size() > command_id_bytes_max) {
        throw InvalidError("a command id has at most " + std::to_string(command_id_bytes_max) +
                           " bytes, this one has " + std::to_string(command_id.size()));
    }
    const Metadata metadata{.command_id = command_id,
                            .correlation = options.correlation.empty() ? command_id : options.correlation,
                            .causation = options.causation,
                            .headers = options.headers};
    const Runtime runtime = options_.runtime;
    const Time began = runtime.clock.now();
    std::set<std::string> streams;  // that the attempt before has touched
    for (Backoff backoff{options_.retry, runtime};;) {
        Conflict conflict{};
        try {
            const std::string id = uuid7(runtime);
            std::optional<Reservation> reservation;
            if (backoff.attempts() > options_.transactions.escalate_after) {
                reservation.emplace(coordinator_, id, began);
                for (const std::string& stream : streams) reservation->hold(stream);
            }
            Transaction tx{
                repository_, coordinator_, row_tables_, projections_, id, began, reservation ? &*reservation : nullptr};
            StreamRead command;
            if (!command_id.empty()) {
                command = tx.reader_.stream(command_slot(command_id).partition, 1);
                if (command.head > 0) {
                    const auto& content = command.slots.front().content;
                    const std::string* text = store::text(content.payload, receipt_attribute);
                    auto written = json::decode<std::vector<Receipt::Written>>(text ? *text : "");
                    if (!written)
                        throw CorruptionError("the receipt of command '" + command_id +
                                              "' cannot be read: " + written.error().message);
                    return Receipt{.transaction = content.write_id, .written = std::move(*written), .repeated = true};
                }
            }
            body(tx);
            if (tx.rejection_) return *tx.rejection_;  // a body may have caught what ended it
            Plan plan = tx.plan(metadata);
            if (!command_id.empty()) {
                const Receipt receipt = receipt_of(plan, {}, 0);
                plan.slots.push_back({command_slot(command_id),
                                      command.next.epoch,
                                      {{receipt_attribute, json::encode(receipt.written)}}});
            }
            for (const auto& [stream, touched] : tx.aggregates_) streams.insert(stream);
            if (is_one_read(plan)) return receipt_of(plan, {.tx = {}, .path = Path::nothing}, backoff.attempts());
            if (reservation) reservation->hand_over();
            auto result = coordinator_.commit(plan, id, began);
            if (const auto* commit = std::get_if<Commit>(&result)) return receipt_of(plan, *commit, backoff.attempts());
            conflict = std::move(std::get<Conflict>(result));
        } catch (const detail::Rejected& rejected) {
            return rejected.rejection;
        } catch (const ConflictError& error) {  // a read waited in vain
            conflict = {.what = error.what(), .over = false};
        }
        if (!(conflict.over ? backoff.next_at_once() : backoff.next())) {
            throw ConflictError("gave up after " + std::to_string(backoff.attempts()) +
                                " attempts; the last one met this: " + conflict.what);
        }
    }
}

void Application::check_version(const std::string& stream, Version actual, Version expected) {
    if (actual == expected) return;
    throw detail::Rejected{{.code = "wrong_version",
                            .message = stream + " is at version " + std::to_string(actual) + ", the command expects " +
                                       std::to_string(expected)}};
}

aggregates::Folded Application::load_as_of(const AggregateType& type, const std::string& stream, AsOf as_of) {
    if (const auto* version = std::get_if<Version>(&as_of.point)) return repository_.load_at(type, stream, *version);
    return repository_.load_as_of(type, stream, std::get<Time>(as_of.point));
}

void Application::add_projection(std::string_view aggregate,
                                 std::function<void(Transaction&, const DecidedEvent&)> projection) {
    projections_.emplace(aggregate, std::move(projection));
}

void Application::sweep(const std::stop_token& stop) {
    std::unique_ptr<Sweeper> sweeper;
    std::set<std::string, std::less<>> tables;
    while (!stop.stop_requested()) {
        try {
            if (auto names = row_tables_.names(); names != tables) {
                sweeper.reset();
                tables = std::move(names);
            }
            if (!sweeper) sweeper = std::make_unique<Sweeper>(coordinator_, std::vector(tables.begin(), tables.end()));
            sweeper->sweep();
        } catch (const Error& error) {
            options_.runtime.log.write(LogLevel::warning, std::string{"the sweeper will try again: "} + error.what());
        }
        options_.runtime.clock.sleep_for(options_.sweep_interval, stop);
    }
}

}  // namespace varve
