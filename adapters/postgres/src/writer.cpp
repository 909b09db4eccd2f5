#include "writer.h"

#include <varve/core/clock.h>
#include <varve/core/retry.h>
#include <varve/store/adapter.h>
#include <varve/store/item_text.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <set>
#include <utility>

namespace varve::postgres {
namespace {

constexpr std::string_view where = "the PostgreSQL database";
constexpr std::size_t writers = 2;
// Of two that fail by each other one has got through; many may stand in line.
constexpr unsigned attempts_max = 20;
// The server takes no message of a gigabyte.
constexpr std::size_t request_bytes_max = std::size_t{64} << 20;
constexpr std::size_t atomic_bytes_max = std::size_t{256} << 20;

std::size_t bytes_of(const PreparedWrite& write) {
    return write.text.size() + write.condition.size() + write.removed.size() + write.write->key.partition.size();
}

/// So that a group has at most a thousand small writes, and never much more than a request's bytes.
std::size_t cost_of(std::size_t writes, std::size_t bytes) {
    return writes + bytes / (request_bytes_max / 1000);
}

}  // namespace

store::Item parse_stored(const store::Key& key, std::string_view text) {
    try {
        return store::parse_item(text);
    } catch (const CorruptionError& error) {
        throw CorruptionError(to_string(key) + " in the PostgreSQL database: " + error.what());
    }
}

Writer::Writer(const Options& options, std::string space, Announcer& announcer)
    : options_(options),
      space_(std::move(space)),
      lock_(lock_sql(space_, options.accept_asynchronous_commit)),
      announcer_(announcer),
      connections_(options, writers),
      queue_([this](store::CommitQueue::Group& group) { commit(group); }, [] {}, writers) {}

std::vector<store::WriteAnswer> Writer::write(std::span<const PreparedWrite> writes) {
    std::vector<store::WriteAnswer> answers;
    answers.reserve(writes.size());
    while (!writes.empty()) {
        std::size_t count = 0;
        std::size_t bytes = 0;
        do {
            bytes += bytes_of(writes[count++]);
        } while (count < writes.size() && bytes + bytes_of(writes[count]) <= request_bytes_max);
        Request request{count, store::Batch::independent};
        request.cost = cost_of(count, bytes);
        request.writes = writes.first(count);
        queue_.run(request);
        std::ranges::move(request.answers, std::back_inserter(answers));
        writes = writes.subspan(count);
    }
    return answers;
}

store::AtomicAnswer Writer::write_atomically(std::span<const PreparedWrite> writes) {
    if (writes.empty()) return store::Applied{};
    std::size_t bytes = 0;
    for (const PreparedWrite& one : writes) bytes += bytes_of(one);
    if (bytes > atomic_bytes_max) {
        throw InvalidError("an atomic batch of " + std::to_string(bytes >> 20) + " MiB as stored; at most " +
                           std::to_string(atomic_bytes_max >> 20) + " are allowed");
    }
    Request request{writes.size(), store::Batch::atomic};
    request.cost = cost_of(writes.size(), bytes);
    request.writes = writes;
    queue_.run(request);
    return std::move(request.atomic_answer);
}

void Writer::Request::fail(const Failure& failure) noexcept {
    if (std::exchange(is_answered, true)) return;
    WriteRequest::fail(failure);
}

void Writer::commit(store::CommitQueue::Group& group) noexcept {
    const auto fail = [&](const Failure& failure) {
        for (auto* member = group.first(); member != nullptr; member = member->next())
            static_cast<Request*>(member)->fail(failure);
    };
    try {
        std::vector<Request*> requests;
        while (auto* const request = group.take()) requests.push_back(static_cast<Request*>(request));
        run(requests);
    } catch (const std::bad_alloc&) {
        fail(store::unanswered());
    } catch (...) {
        fail(store::current_failure(where));
    }
}

void Writer::run_each(std::span<Request* const> requests) noexcept {
    for (Request* const request : requests) {
        try {
            run({&request, 1});
        } catch (const std::bad_alloc&) {
            request->fail(store::unanswered());
        } catch (...) {
            request->fail(store::current_failure(where));
        }
    }
}

std::vector<Writer::Members> Writer::rounds_of(std::span<Request* const> requests) {
    std::vector<Members> rounds(1);
    for (Request* const request : requests) {
        if (!rounds.back().round.has_room_for(request->writes)) rounds.emplace_back();
        rounds.back().round.add(request->writes, request->atomic);
        rounds.back().requests.push_back(request);
    }
    return rounds;
}

void Writer::run(std::span<Request* const> requests) {
    const std::vector<Members> rounds = rounds_of(requests);
    const Outcome outcome = run(rounds);
    if (!outcome.failure) {
        for (std::size_t i = 0; i < rounds.size(); ++i) answer(rounds[i], outcome.results[i + 1]);
        for (const Members& members : rounds) {
            for (const Table* const table : members.round.tables()) announcer_.changed(table->schema().name);
        }
        return;
    }
    if (outcome.failure->kind == ErrorKind::invalid && requests.size() > 1) {
        // One of them has something that the server cannot take; it is no reason to refuse the others.
        return run_each(requests);
    }
    for (Request* const request : requests) request->fail(*outcome.failure);
}

Outcome Writer::run(std::span<const Members> rounds) {
    std::set<std::string_view> names;
    for (const Members& members : rounds) {
        for (const Table* const table : members.round.tables()) names.insert(table->schema().name);
    }
    Array locked{Array::Type::text};
    for (const std::string_view name : names) locked.add(name);
    std::vector<Statement> statements;
    statements.push_back({lock_, Parameters{}.add(std::move(locked))});
    if (const Round& round = rounds.front().round; rounds.size() == 1 && round.is_new()) {
        // Most of what is written is a slot behind the last one of its stream.
        statements.push_back({round.tables().front()->insert, round.inserted()});
        Pool::Lease connection{connections_};
        Outcome outcome = connection->run(statements);
        const bool was_there = !outcome.failure && outcome.results.back().affected() == 0;
        if (!was_there && !outcome.worth_repeating && !outcome.is_lost) return outcome;
        if (outcome.failure && outcome.failure->in_doubt) return outcome;
        statements.pop_back();
    }
    for (const Members& members : rounds)
        statements.push_back({statement(members.round.tables()), members.round.parameters()});
    RetryPolicy policy;
    policy.attempts_max = attempts_max;
    policy.time_max = options_.lock_timeout;
    Backoff backoff{policy, options_.runtime};
    for (;;) {
        Pool::Lease connection{connections_};
        Outcome outcome = connection->run(statements);
        const bool has_certainly_failed = outcome.failure && !outcome.failure->in_doubt;
        const bool again = outcome.worth_repeating || (outcome.is_lost && has_certainly_failed);
        if (!again || !backoff.next()) return outcome;
    }
}

void Writer::answer(const Members& members, const Result& refused) {
    // Those that are not among the refused have been applied.
    std::vector<std::pair<Request*, std::size_t>> writes;
    for (Request* const request : members.requests) {
        request->atomic_answer = store::Applied{};
        for (std::size_t i = 0; i < request->writes.size(); ++i) {
            writes.emplace_back(request, i);
            if (!request->atomic) request->answers[i] = store::Applied{};
        }
    }
    for (int row = 0; row < refused.rows(); ++row) {
        const auto [request, index] = writes.at(static_cast<std::size_t>(refused.integer(row, 0)));
        const store::Key& key = request->writes[index].write->key;
        std::optional<Failure> failure;
        std::optional<store::Item> current;
        if (refused.integer(row, 1) == static_cast<int>(Round::Verdict::too_large)) {
            failure = Failure{.kind = ErrorKind::invalid,
                              .in_doubt = false,
                              .message = "the update lets the item " + to_string(key) + " grow beyond " +
                                         std::to_string(item_bytes_max) + " bytes"};
        } else {
            try {
                if (!refused.is_null(row, 2)) current = parse_stored(key, refused.text(row, 2));
            } catch (const CorruptionError& error) {
                failure = Failure{.kind = error.kind(), .in_doubt = false, .message = error.what()};
            }
        }
        if (!request->atomic) {
            if (failure) {
                request->answers[index] = *std::move(failure);
            } else {
                request->answers[index] = store::Refused{std::move(current)};
            }
            continue;
        }
        if (std::holds_alternative<Failure>(request->atomic_answer)) continue;
        if (failure) {
            request->atomic_answer = *std::move(failure);
            continue;
        }
        auto* const batch = std::get_if<store::RefusedBatch>(&request->atomic_answer);
        store::RefusedBatch& all = batch != nullptr ? *batch : request->atomic_answer.emplace<store::RefusedBatch>();
        all.refused.push_back({.index = index, .current = std::move(current)});
    }
    for (Request* const request : members.requests) request->is_answered = true;
}

const std::string& Writer::statement(std::span<const Table* const> tables) {
    const MutexLock lock{mutex_};
    const auto [entry, is_new] = statements_.try_emplace({tables.begin(), tables.end()});
    if (entry->second.empty()) entry->second = round_sql(space_, tables);
    return entry->second;
}

}  // namespace varve::postgres
