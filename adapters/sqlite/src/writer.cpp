#include "writer.h"

#include "item_text.h"

#include <exception>

namespace varve::sqlite {
namespace {

// 16 MB of log: each checkpoint costs two fsyncs, and a page that was written often is copied once.
constexpr int checkpoint_pages = 4000;
// A reader that stays in an old state keeps the log from beginning anew; then writers wait for it.
constexpr int checkpoint_pages_max = 8 * checkpoint_pages;

Failure as_failure(const Error& error) {
    return {.kind = error.kind(), .in_doubt = error.in_doubt(), .message = error.what()};
}

}  // namespace

store::Item parse_stored(const Options& options, const store::Key& key, std::string_view text) {
    try {
        return parse_item(text);
    } catch (const CorruptionError& error) {
        throw CorruptionError(to_string(key) + " in the SQLite file " + options.path + ": " + error.what());
    }
}

Writer::Writer(const Options& options)
    : options_(options),
      connection_(options, Connection::Mode::write),
      queue_([this](CommitQueue::Group& group) { commit(group); },
             [this] {
                 if (connection_.log_pages() < checkpoint_pages) return;
                 connection_.checkpoint(connection_.log_pages() >= checkpoint_pages_max
                                            ? Connection::Checkpoint::wait_for_readers
                                            : Connection::Checkpoint::as_far_as_possible);
             }) {
    connection_.execute("PRAGMA synchronous = " +
                        std::string{options.synchronous == Synchronous::full ? "FULL" : "NORMAL"});
    connection_.execute("PRAGMA cache_size = -32768");
    connection_.execute("PRAGMA journal_size_limit = " + std::to_string(4L * checkpoint_pages * 4096));
}

std::vector<store::WriteAnswer> Writer::write(std::span<const PreparedWrite> writes) {
    if (writes.empty()) return {};
    Request request;
    request.cost = writes.size();
    request.writes = writes;
    request.atomic = false;
    queue_.run(request);
    return std::move(request.answers);
}

store::AtomicAnswer Writer::write_atomically(std::span<const PreparedWrite> writes) {
    if (writes.empty()) return store::Applied{};
    Request request;
    request.cost = writes.size();
    request.writes = writes;
    request.atomic = true;
    queue_.run(request);
    return std::move(request.atomic_answer);
}

void Writer::Request::fail(const Failure& failure) {
    if (atomic) {
        atomic_answer = failure;
    } else {
        answers.assign(writes.size(), failure);
    }
}

void Writer::commit(CommitQueue::Group& group) {
    std::vector<Request*> members;
    const auto fail = [&](const Failure& failure) {
        connection_.rollback();
        // Whoever came meanwhile would meet the same state of the world, after waiting as long.
        if (failure.kind == ErrorKind::busy || members.empty()) {
            while (auto* const request = group.next_of_all()) members.push_back(static_cast<Request*>(request));
        }
        for (Request* const member : members) member->fail(failure);
    };
    try {
        positions_.clear();
        // SQLite would go on writing to a file that nobody can find any more.
        if (connection_.moved()) {
            throw UnavailableError("the SQLite file " + options_.path +
                                   " was moved, replaced or deleted while it was open; open the store again");
        }
        connection_.begin();
        while (auto* const next = group.next()) {
            auto& request = static_cast<Request&>(*next);
            members.push_back(&request);
            run(request);
        }
        for (const auto& [table, positions] : positions_) {
            if (positions.erased) connection_.prepare(table->set_last_erased).bind(1, positions.last).run();
        }
        connection_.commit();
    } catch (const Error& error) {
        fail(as_failure(error));
    } catch (const std::exception& error) {
        fail({ErrorKind::unavailable, false, "no answer from the SQLite file " + options_.path + ": " + error.what()});
    }
}

void Writer::run(Request& request) {
    if (request.atomic) return run_atomically(request);
    request.answers.reserve(request.writes.size());
    for (const PreparedWrite& write : request.writes) request.answers.push_back(run_one(write));
}

store::WriteAnswer Writer::run_one(const PreparedWrite& prepared) {
    const store::Write& write = *prepared.write;
    const bool unconditional =
        write.condition.op == store::Condition::Operator::all_of && write.condition.operands.empty();
    const bool is_put = std::holds_alternative<store::Put>(write.action);
    if (unconditional && !std::holds_alternative<store::Update>(write.action)) {
        apply(prepared, nullptr);
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
        return as_failure(error);
    }
    const store::Item* const pointer = item ? &*item : nullptr;
    if (!holds(write.condition, pointer)) return store::Refused{std::move(item)};
    try {
        apply(prepared, pointer);
    } catch (const InvalidError& error) {
        return as_failure(error);
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
        request.atomic_answer = as_failure(error);
        return;
    }
    if (!refused.refused.empty()) {
        request.atomic_answer = std::move(refused);
        return;
    }
    // Whatever one of the writes can fail by on its own must show before the first of them is carried out.
    for (std::size_t i = 0; i < items.size(); ++i) {
        const store::Write& write = *request.writes[i].write;
        if (!std::holds_alternative<store::Update>(write.action)) continue;
        items[i] = store::apply(write, items[i] ? &*items[i] : nullptr);
        const std::size_t size = store::bytes(write.key, *items[i]);
        if (size > item_bytes_max) {
            request.atomic_answer =
                Failure{ErrorKind::invalid, false, store::too_large(write.key, size, item_bytes_max)};
            return;
        }
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (std::holds_alternative<store::Check>(request.writes[i].write->action)) continue;
        apply(request.writes[i], items[i] ? &*items[i] : nullptr);
    }
    request.atomic_answer = store::Applied{};
}

std::optional<store::Item> Writer::current(const PreparedWrite& prepared) {
    const store::Key& key = prepared.write->key;
    Statement row = connection_.prepare(prepared.table->select);
    row.bind(1, std::string_view{key.partition}).bind(2, key.sort);
    if (!row.step()) return std::nullopt;
    return parse_stored(options_, key, row.text(0));
}

void Writer::apply(const PreparedWrite& prepared, const store::Item* current) {
    const store::Write& write = *prepared.write;
    if (std::holds_alternative<store::Put>(write.action)) {
        put(prepared, prepared.table->put, prepared.text);
    } else if (std::holds_alternative<store::Update>(write.action)) {
        const std::optional<store::Item> item = store::apply(write, current);
        const std::size_t size = store::bytes(write.key, *item);
        if (size > item_bytes_max) throw InvalidError(store::too_large(write.key, size, item_bytes_max));
        put(prepared, prepared.table->put, item_text(*item));
    } else {
        Positions& positions = this->positions(*prepared.table);
        Statement erase = connection_.prepare(prepared.table->erase);
        if (erase.bind(1, std::string_view{write.key.partition}).bind(2, write.key.sort).run() != 0) {
            positions.erased = true;
        }
    }
}

bool Writer::put(const PreparedWrite& prepared, const std::string& sql, std::string_view text) {
    const store::Key& key = prepared.write->key;
    std::int64_t& last = positions(*prepared.table).last;
    const int changed = connection_.prepare(sql)
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
        Statement row = connection_.prepare(table.last_position);
        if (!row.step()) {
            throw CorruptionError("varve_tables of the SQLite file " + options_.path + " does not know table '" +
                                  table.schema().name + "' any more");
        }
        found->second.last = row.integer(0);
    }
    return found->second;
}

}  // namespace varve::sqlite
