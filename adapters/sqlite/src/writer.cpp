#include "writer.h"

#include "log_readers.h"

#include <varve/core/clock.h>
#include <varve/store/adapter.h>
#include <varve/store/item_text.h>

#include <exception>

namespace varve::sqlite {
namespace {

constexpr std::int64_t page_size = 4096;
// 16 MB of log: each checkpoint costs two fsyncs, and a page that was written often is copied once.
constexpr int checkpoint_pages = 4000;
// So much of log tells that a reader stays in an old state.
constexpr std::int64_t warning_bytes = std::int64_t{128} << 20;

}  // namespace

store::Item parse_stored(const Options& options, const store::Key& key, std::string_view text) {
    try {
        return store::parse_item(text);
    } catch (const CorruptionError& error) {
        throw CorruptionError(to_string(key) + " in the SQLite file " + options.path + ": " + error.what());
    }
}

Writer::Writer(const Options& options)
    : options_(options),
      where_("the SQLite file " + options.path),
      connection_(connect()),
      files_(options.path),
      next_warning_bytes_(warning_bytes),
      next_checkpoint_pages_(checkpoint_pages),
      queue_([this](store::CommitQueue::Group& group) { commit(group); }, [this] { tidy(); }) {}

std::unique_ptr<Connection> Writer::connect() const {
    auto connection = std::make_unique<Connection>(options_, Connection::Mode::write);
    connection->execute("PRAGMA synchronous = " +
                        std::string{options_.synchronous == Synchronous::full ? "FULL" : "NORMAL"});
    connection->execute("PRAGMA cache_size = -32768");
    connection->execute("PRAGMA journal_size_limit = " + std::to_string(4 * checkpoint_pages * page_size));
    // Opens the log and its index.
    connection->prepare("SELECT count(*) FROM varve_tables").run();
    return connection;
}

std::vector<store::WriteAnswer> Writer::write(std::span<const PreparedWrite> writes) {
    if (writes.empty()) return {};
    Request request{writes.size(), store::Batch::independent};
    request.writes = writes;
    queue_.run(request);
    return std::move(request.answers);
}

store::AtomicAnswer Writer::write_atomically(std::span<const PreparedWrite> writes) {
    if (writes.empty()) return store::Applied{};
    Request request{writes.size(), store::Batch::atomic};
    request.writes = writes;
    queue_.run(request);
    return std::move(request.atomic_answer);
}

void Writer::fail(store::CommitQueue::Group& group, const Failure& failure) noexcept {
    // Whoever came meanwhile would meet the same state of the world, after waiting as long.
    if (failure.kind == ErrorKind::busy || group.first() == nullptr) {
        while (group.take_any() != nullptr) {
        }
    }
    for (store::CommitQueue::Request* member = group.first(); member != nullptr; member = member->next()) {
        static_cast<Request*>(member)->fail(failure);
    }
}

void Writer::commit(store::CommitQueue::Group& group) noexcept {
    try {
        make_ready();
        const SteadyTime began = Clock::system().steady_now();
        if (rest_to_be_moved_) move_rest();
        connection_->begin(Clock::system().steady_now() - began);
        while (auto* const request = group.take()) run(static_cast<Request&>(*request));
        for (const auto& [table, positions] : positions_) {
            if (positions.erased) connection_->prepare(table->set_last_erased).bind(1, positions.last).run();
        }
    } catch (...) {
        const Failure failure = store::current_failure(where_);
        connection_->rollback();
        return fail(group, failure);
    }
    const std::optional<Failure> failure = connection_->try_commit();
    if (!failure) {
        const int pages = connection_->log_pages();
        if (pages < log_pages_.exchange(pages)) next_checkpoint_pages_ = checkpoint_pages;  // it began anew
        return;
    }
    is_trusted_ = is_trusted_ && !failure->in_doubt;
    fail(group, *failure);
}

void Writer::make_ready() {
    positions_.clear();
    files_.check();
    if (is_trusted_) return;
    // The old connection is closed after the new one was opened: the last one to close would remove the log.
    connection_ = connect();
    // Whether the disk flushes at all must show before anything is written, when it is certain that nothing was. What
    // was flushed in vain before is written and flushed once more by this.
    connection_->checkpoint();
    is_trusted_ = true;
}

void Writer::move_rest() {
    // If it throws, the group fails, having waited for as long as it may.
    connection_->begin();
    if (!checkpoint_runs_.exchange(true)) {
        rest_to_be_moved_ = false;
        checkpoint();
        checkpoint_runs_ = false;
    }
    connection_->rollback();
}

void Writer::tidy() noexcept {
    const int pages = log_pages_;
    if (pages < checkpoint_pages || checkpoint_runs_.exchange(true)) return;
    if (pages >= next_checkpoint_pages_) {
        const bool whole = checkpoint();
        rest_to_be_moved_ = whole;
        next_checkpoint_pages_ = pages + checkpoint_pages / 4;
        if (whole) {
            next_warning_bytes_ = warning_bytes;
        } else {
            warn_of_readers(pages * page_size);
        }
    }
    checkpoint_runs_ = false;
}

bool Writer::checkpoint() noexcept {
    try {
        if (!checkpointer_) checkpointer_ = connect();
        const bool whole = checkpointer_->checkpoint().is_whole();
        ++(whole ? checkpoints_ : checkpoints_held_back_);
        return whole;
    } catch (const std::exception&) {
        // The log holds it all, and the next one repeats the work, with a connection that has flushed nothing in vain.
        checkpointer_.reset();
        return false;
    }
}

void Writer::warn_of_readers(std::int64_t log_bytes) noexcept try {
    if (log_bytes < next_warning_bytes_) return;
    next_warning_bytes_ = 2 * log_bytes;
    options_.log->write(LogLevel::warning,
                        "the log " + options_.path + "-wal has grown to " + std::to_string(log_bytes >> 20) +
                            " MB, because a reader stays in an old state: " + readers_of_log(options_.path) +
                            "; end it, and the log begins anew");
} catch (const std::exception&) {
    // A later one comes through.
}

Metrics Writer::metrics() const {
    return {.log_bytes = static_cast<std::uint64_t>(log_pages_) * page_size,
            .checkpoints = checkpoints_,
            .checkpoints_held_back = checkpoints_held_back_};
}

void Writer::run(Request& request) {
    if (request.atomic) return run_atomically(request);
    for (std::size_t i = 0; i < request.writes.size(); ++i) request.answers[i] = run_one(request.writes[i]);
}

store::WriteAnswer Writer::run_one(const PreparedWrite& prepared) {
    const store::Write& write = *prepared.write;
    const bool unconditional =
        write.condition.op == store::Condition::Operator::all_of && write.condition.operands.empty();
    const bool is_put = std::holds_alternative<store::Put>(write.action);
    if (unconditional && !std::holds_alternative<store::Update>(write.action)) {
        apply(prepared, {});
        return store::Applied{};
    }
    if (is_put && prepared.applies_to_absent) {
        // Most conditional writes are of new items: one visit of the table instead of two.
        if (put(prepared, prepared.table->insert_if_absent, prepared.text)) return store::Applied{};
    }
    std::optional<store::Item> item;
    try {
        item = current(prepared);
    } catch (const CorruptionError& error) {
        return {Failure{error.kind(), false, error.what()}};
    }
    const store::Item* const pointer = item ? &*item : nullptr;
    if (!holds(write.condition, pointer)) return store::Refused{std::move(item)};
    try {
        apply(prepared, updated(prepared, pointer));
    } catch (const InvalidError& error) {
        return {Failure{error.kind(), false, error.what()}};
    }
    return store::Applied{};
}

void Writer::run_atomically(Request& request) {
    std::vector<std::optional<store::Item>> items;
    items.reserve(request.writes.size());
    store::RefusedBatch refused;
    try {
        for (const PreparedWrite& prepared : request.writes) {
            items.push_back(current(prepared));
            const store::Item* const item = items.back() ? &*items.back() : nullptr;
            if (!holds(prepared.write->condition, item)) {
                refused.refused.push_back({.index = items.size() - 1, .current = items.back()});
            }
        }
    } catch (const CorruptionError& error) {
        request.atomic_answer = Failure{error.kind(), false, error.what()};
        return;
    }
    if (!refused.refused.empty()) {
        request.atomic_answer = std::move(refused);
        return;
    }
    // Whatever one of the writes can fail by on its own must show before the first of them is carried out.
    std::vector<std::string> texts;
    texts.reserve(items.size());
    try {
        for (std::size_t i = 0; i < items.size(); ++i) {
            texts.push_back(updated(request.writes[i], items[i] ? &*items[i] : nullptr));
        }
    } catch (const InvalidError& error) {
        request.atomic_answer = Failure{error.kind(), false, error.what()};
        return;
    }
    for (std::size_t i = 0; i < items.size(); ++i) apply(request.writes[i], texts[i]);
    request.atomic_answer = store::Applied{};
}

std::optional<store::Item> Writer::current(const PreparedWrite& prepared) {
    const store::Key& key = prepared.write->key;
    Statement row = connection_->prepare(prepared.table->select);
    row.bind(1, std::string_view{key.partition}).bind(2, key.sort);
    if (!row.step()) return std::nullopt;
    return parse_stored(options_, key, row.text(0));
}

std::string Writer::updated(const PreparedWrite& prepared, const store::Item* current) {
    const store::Write& write = *prepared.write;
    if (!std::holds_alternative<store::Update>(write.action)) return {};
    const std::optional<store::Item> item = store::apply(write, current);
    const std::size_t size = store::bytes(write.key, *item);
    if (size > item_bytes_max) throw InvalidError(store::too_large(write.key, size, item_bytes_max));
    return store::item_text(*item);
}

void Writer::apply(const PreparedWrite& prepared, std::string_view updated) {
    const store::Write& write = *prepared.write;
    if (std::holds_alternative<store::Check>(write.action)) return;
    if (std::holds_alternative<store::Put>(write.action)) {
        put(prepared, prepared.table->put, prepared.text);
    } else if (std::holds_alternative<store::Update>(write.action)) {
        put(prepared, prepared.table->put, updated);
    } else {
        Positions& positions = this->positions(*prepared.table);
        Statement erase = connection_->prepare(prepared.table->erase);
        if (erase.bind(1, std::string_view{write.key.partition}).bind(2, write.key.sort).run() != 0) {
            positions.erased = true;
        }
    }
}

bool Writer::put(const PreparedWrite& prepared, const std::string& sql, std::string_view text) {
    const store::Key& key = prepared.write->key;
    std::int64_t& last = positions(*prepared.table).last;
    const int changed = connection_->prepare(sql)
                            .bind(1, std::string_view{key.partition})
                            .bind(2, key.sort)
                            .bind(3, text)
                            .bind(4, last + 1)
                            .run();
    last += changed;
    return changed != 0;
}

Writer::Positions& Writer::positions(const Table& table) {
    const auto [found, added] = positions_.try_emplace(&table);
    if (added) {
        Statement row = connection_->prepare(table.last_position);
        if (!row.step()) {
            throw CorruptionError("varve_tables of the SQLite file " + options_.path + " does not know table '" +
                                  table.schema().name + "' any more");
        }
        found->second.last = row.integer(0);
    }
    return found->second;
}

}  // namespace varve::sqlite
