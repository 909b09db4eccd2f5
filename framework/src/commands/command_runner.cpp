#include "command_runner.h"

#include "../transactions/mutants.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>
#include <varve/core/json.h>

#include <algorithm>
#include <typeinfo>
#include <utility>

namespace varve::detail {

using namespace transactions;
using aggregates::Repository;

namespace {

/// How many items a batch of commands writes at most where the store has no limit of its own.
constexpr std::size_t participants_max = 100;
/// Of a slot, besides events and metadata: the protocol's attributes, a claim's included.
constexpr std::size_t slot_overhead_bytes = 800;
constexpr std::size_t command_id_bytes_max = 200;
constexpr const char* receipt_attribute = "receipt";

// A command that was executed under an id leaves slot 1 of the stream "$cmd-<id>", written in its transaction:
//
//     payload := receipt                     (JSON text: [{"stream":…,"version":…}, …])
store::Key command_slot(const std::string& command_id) {
    return slot_key("$cmd-" + command_id, 1);
}

Receipt receipt_of_earlier(const std::string& command_id, const Committed& slot) {
    const std::string* text = store::text(slot.payload, receipt_attribute);
    auto written = json::decode<std::vector<Receipt::Written>>(text ? *text : "");
    if (!written) {
        throw CorruptionError("the receipt of command '" + command_id + "' cannot be read: " + written.error().message);
    }
    return {.transaction = slot.write_id, .written = std::move(*written), .repeated = true};
}

Metadata metadata_of(const CommandOptions& options) {
    return {.command_id = options.command_id,
            .correlation = options.correlation.empty() ? options.command_id : options.correlation,
            .causation = options.causation,
            .headers = options.headers};
}

/// What the metadata take in a slot, at most.
std::size_t stored_bytes(const CommandOptions& options) {
    constexpr std::size_t names_bytes = 80;
    std::size_t bytes = names_bytes;
    const auto add = [&](const std::string& text) { bytes += json::quote(text).size() + 2; };
    add(options.command_id);
    add(options.correlation.empty() ? options.command_id : options.correlation);
    add(options.causation);
    for (const auto& [name, value] : options.headers) {
        add(name);
        add(value);
    }
    return bytes;
}

/// Each command's failure is thrown again and let go by a thread of its own, which must not share it with others. What
/// is not exactly one of the framework's errors cannot be made again: it is shared.
std::exception_ptr one_more_of(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        try {
            if (const auto* in_doubt = dynamic_cast<const InDoubtError*>(&error))
                throw InDoubtError(in_doubt->what(), in_doubt->transaction());
            raise({error.kind(), error.in_doubt(), error.what()});
        } catch (const Error& copy) {
            return typeid(copy) == typeid(error) ? std::current_exception() : failure;
        }
    } catch (...) {
        return failure;
    }
}

/// Whether it may be over at the next attempt, or is not known.
bool concerns_the_store(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        return error.retryable() || error.in_doubt();
    } catch (...) {
        return false;
    }
}

/// One single read is of one moment as it is.
bool is_one_read(const Plan& plan) {
    return plan.writes() == 0 && plan.on_primary.empty() && plan.ranges_read.empty() &&
           plan.heads_read.size() + plan.rows_read.size() <= 1;
}

}  // namespace

void CommandRunner::check(const CommandOptions& options) {
    if (options.command_id.size() > command_id_bytes_max) {
        throw InvalidError("a command id has at most " + std::to_string(command_id_bytes_max) +
                           " bytes, this one has " + std::to_string(options.command_id.size()));
    }
}

std::size_t CommandRunner::run(std::span<Command* const> commands) {
    const Runtime runtime = world_.coordinator.runtime();
    Climb climb;
    std::size_t together = commands.size();  // of the attempt that counts
    unsigned from_memory = 0;  // attempts that failed because memory was out of date: the policy does not count them
    const auto fail = [&](const std::exception_ptr& failure) {
        bool is_taken = false;
        for (Command* command : commands.first(together)) {
            if (command->failure || command->outcome) continue;
            command->failure = std::exchange(is_taken, true) ? one_more_of(failure) : failure;
        }
        return together;
    };
    try {
        const std::string first_id = uuid7(runtime);
        for (Backoff backoff{retry_, runtime};;) {
            const unsigned number = backoff.attempts() + from_memory;
            Attempt attempt{.id = VARVE_MUTANT("one id for all attempts") ? first_id : attempt_id(first_id, number),
                            .number = number,
                            .since = commands.front()->began,
                            .together = commands.size()};
            Conflict conflict{};
            try {
                std::optional<Conflict> lost = this->attempt(commands, attempt, climb);
                together = attempt.together;
                if (!lost) return together;
                conflict = std::move(*lost);
            } catch (const BlockedError& error) {
                together = attempt.together;
                conflict = {.what = error.what(), .over = false, .waited = true};
            } catch (const InDoubtError& error) {
                together = attempt.together;
                // What wrote nothing is certain not to have happened.
                for (std::size_t i = 0; i < attempt.fates.size(); ++i) {
                    if (attempt.fates[i].accepted()) continue;
                    if (attempt.fates[i].executed_before) {
                        commands[i]->outcome = std::move(*attempt.fates[i].executed_before);
                        continue;
                    }
                    commands[i]->failure = std::make_exception_ptr(UnavailableError(
                        "this command was rejected and has written nothing, but what it was decided on is not known "
                        "to be so; repeat it. Of those beside it: " +
                        std::string{error.what()}));
                }
                throw;
            } catch (...) {
                together = attempt.together;
                throw;
            }
            climb.to(conflict.waited ? Rung::waited : Rung::retried);
            if (conflict.over && attempt.rests_on_memory) {
                ++from_memory;
                continue;
            }
            if (!(conflict.over ? backoff.next_at_once() : backoff.next())) {
                throw ConflictError("gave up after " + std::to_string(backoff.attempts()) +
                                    " attempts; the last one met this: " + conflict.what);
            }
        }
    } catch (const Error& error) {
        // What can never work may be the fault of one of them.
        if (commands.size() > 1 && !error.retryable() && !error.in_doubt()) {
            climb.turns.clear();  // or it would wait for itself
            return run(commands.first(1));
        }
        return fail(std::current_exception());
    } catch (...) {
        return fail(std::current_exception());
    }
}

std::optional<Conflict> CommandRunner::attempt(std::span<Command* const> commands, Attempt& attempt, Climb& climb) {
    if (escalate(climb, attempt)) {
        attempt.reservation.emplace(world_.coordinator, attempt.id, attempt.since);
        attempt.reservation->hold(climb.touched);
    }
    const bool first = attempt.number == 1;
    if (!first) attempt.ids = read_ids(commands, attempt);
    for (;;) {
        Transaction tx{world_, attempt.id, attempt.since, attempt.reservation ? &*attempt.reservation : nullptr,
                       first ? Repository::Ask::last_known : Repository::Ask::store};
        if (!first) tx.reader_.fetch(climb.worth_fetching(attempt.reservation));
        attempt.fates.clear();
        const Cut cut = [&] {
            try {
                return decide(tx, commands, attempt);
            } catch (const BlockedError&) {
                climb.note(tx);
                throw;
            }
        }();
        commands = commands.first(cut.decided);
        attempt.together = cut.decided;
        if (cut.redo) continue;
        climb.note(tx);
        return commit(tx, commands, attempt, climb);
    }
}

void CommandRunner::Climb::note(const Transaction& tx) {
    for (const auto& [stream, one] : tx.aggregates_)
        touched.streams.insert_or_assign(stream, Reservation::Wanted::Stream{one.seen.head, one.seen.next.epoch});
    for (const auto& [key, one] : tx.rows_) touched.rows.insert_or_assign(key, one.seen);
}

std::vector<store::Key> CommandRunner::Climb::worth_fetching(const std::optional<Reservation>& reservation) const {
    constexpr Version behind_max = 10;  // whoever has fallen farther behind reads page by page
    std::vector<store::Key> keys;
    if (touched.streams.size() + touched.rows.size() < 2) return keys;  // one request as it is
    for (const auto& [stream, known] : touched.streams) {
        Version last = known.head + 2;
        if (reservation) last = version_of(reservation->streams().at(stream).key);
        if (last == known.head + 1 || last > known.head + behind_max) continue;
        for (Version version = std::max<Version>(known.head, 1); version <= last; ++version)
            keys.push_back(slot_key(stream, version));
    }
    for (const auto& [key, image] : touched.rows) {
        if (!reservation) keys.push_back(key);
    }
    return keys;
}

bool CommandRunner::escalate(Climb& climb, const Attempt& attempt) const {
    constexpr std::size_t name_bytes_max = 1024;
    const Runtime runtime = world_.coordinator.runtime();
    const Duration elapsed = runtime.clock.now() - attempt.since;
    const bool is_late =
        elapsed >= escalation_.reserve_after_time && !VARVE_MUTANT("only attempts count until a command reserves");
    if (attempt.number > escalation_.queue_after && !is_late && escalation_.queue_time_max > Duration::zero() &&
        !climb.queued && !climb.touched.streams.empty()) {
        climb.queued = true;
        std::vector<std::string> names;
        for (const auto& [stream, known] : climb.touched.streams) {
            if (std::string name = "$turn-" + stream; name.size() <= name_bytes_max) names.push_back(std::move(name));
        }
        try {
            if (auto turns = turns_.try_acquire_all(std::move(names), {.wait = escalation_.queue_time_max})) {
                climb.turns = std::move(*turns);
            }
        } catch (const Error& error) {
            // They only give order; what the store does not answer here, it will be asked again.
            if (!error.retryable()) throw;
        }
        climb.to(Rung::queued);
    }
    const bool missed_its_turn = climb.queued && climb.turns.empty();
    const bool has_tried = attempt.number > 1 && is_late;
    if (attempt.number <= escalation_.reserve_after && !missed_its_turn && !has_tried) return false;
    climb.to(Rung::reserved);
    return true;
}

CommandRunner::Cut CommandRunner::decide(Transaction& tx, std::span<Command* const> commands, Attempt& attempt) const {
    const store::Capabilities capabilities = world_.coordinator.store().capabilities();
    const bool native =
        world_.coordinator.options().strategy == Strategy::automatic && capabilities.atomic_writes_max > 0;
    const std::size_t items_max = native ? capabilities.atomic_writes_max : participants_max;
    std::size_t metadata_bytes = slot_overhead_bytes;
    std::set<std::string_view> ids;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        const Command& command = *commands[i];
        const std::string& command_id = command.options.command_id;
        tx.begin_command(metadata_of(command.options));
        if (!attempt.ids.empty() && attempt.ids[i].receipt) {
            attempt.fates.push_back({.executed_before = attempt.ids[i].receipt});
            continue;
        }
        // What these ask for concerns them alone; and a repeat waits until it can see the first.
        const bool alone = command.options.fenced_by != nullptr;
        if (i > 0 && (alone || (command.options.expected_version && tx.changes_ > 0) || ids.contains(command_id)))
            return {.decided = i, .redo = false};

        Fate fate;
        const std::size_t changes_before = tx.changes_;
        try {
            if (alone) tx.fenced_by(*command.options.fenced_by);
            command.body(tx);
        } catch (const Rejected& rejected) {
            tx.rejection_ = rejected.rejection;
        } catch (...) {
            // It fails only itself: alone, where there is nobody else whose work would have to be done again.
            if (i > 0) return {.decided = i, .redo = tx.changes_ != changes_before};
            if (commands.size() > 1) return {.decided = 1, .redo = true};
            fate.failure = std::current_exception();
            if (concerns_the_store(fate.failure)) throw;
        }
        fate.rejection = std::exchange(tx.rejection_, std::nullopt);  // also if the body caught what ended it
        const bool failed = fate.failure != nullptr;
        // A projection may reject an event that is decided already.
        const bool rejected_late = fate.rejection && tx.changes_ != changes_before;
        if (i > 0 && rejected_late) return {.decided = i, .redo = true};

        metadata_bytes += stored_bytes(command.options);
        const std::size_t bytes = tx.event_bytes_ + metadata_bytes;
        if (i > 0 && bytes > capabilities.item_bytes_max && tx.changes_ != changes_before)
            return {.decided = i, .redo = true};
        attempt.fates.push_back(std::move(fate));
        if (!command_id.empty()) ids.insert(command_id);
        if (alone || failed || rejected_late || bytes > capabilities.item_bytes_max / 2 ||
            1 + ids.size() + tx.rows_.size() >= items_max)
            return {.decided = i + 1, .redo = false};
    }
    return {.decided = commands.size(), .redo = false};
}

std::optional<Conflict> CommandRunner::commit(const Transaction& tx, std::span<Command* const> commands,
                                              Attempt& attempt, Climb& climb) {
    const bool alone = commands.size() == 1;
    const bool in_vain = alone && !attempt.fates.front().accepted();
    const bool failed = alone && attempt.fates.front().failure;
    const bool ids_are_known = !attempt.ids.empty();

    // A rejection, too, must not rest on a combination of things that never was: what it read is validated, nothing
    // written.
    Plan plan = in_vain ? tx.reads() : tx.plan();
    for (std::size_t i = 0; i < commands.size(); ++i) {
        const std::string& command_id = commands[i]->options.command_id;
        const Fate& fate = attempt.fates[i];
        if (command_id.empty() || fate.executed_before || (failed && ids_are_known)) continue;
        if (fate.accepted()) {
            if (VARVE_MUTANT("a command id is looked up and not written")) continue;
            store::Item payload{{receipt_attribute, json::encode(tx.written_by(i))}};
            plan.slots.push_back(
                {command_slot(command_id), ids_are_known ? attempt.ids[i].epoch : 0, std::move(payload)});
        } else {
            // Executed meanwhile under this id: the next attempt returns what it did then.
            plan.heads_read.push_back({command_slot(command_id)});
        }
    }

    Commit commit{.tx = {}, .path = Path::nothing};
    const bool from_memory = !tx.asked_for_all() && !VARVE_MUTANT("what rests on memory alone is not validated");
    const bool trusts_ids = !ids_are_known && std::ranges::any_of(commands, [](const Command* command) {
        return !command->options.command_id.empty();
    });
    attempt.rests_on_memory = from_memory || trusts_ids;
    if (from_memory || trusts_ids || !tx.fences_.empty() || (!failed && !is_one_read(plan))) {
        if (attempt.reservation && !in_vain) attempt.reservation->hand_over();
        try {
            std::variant<Commit, Conflict> result = world_.coordinator.commit(plan, attempt.id, attempt.since);
            if (auto* conflict = std::get_if<Conflict>(&result)) {
                tx.check_fences();
                return std::move(*conflict);
            }
            commit = std::move(std::get<Commit>(result));
        } catch (const Error&) {
            if (!failed) throw;  // else the command's own failure says more
        }
    }
    if (in_vain && !failed && attempt.reservation && !attempt.reservation->is_alive()) {
        return Conflict{.what = "the reservation was ended by somebody else", .over = true};
    }
    if (!in_vain) tx.remember(commit);
    if (commit.waited || tx.reader_.waited()) climb.to(Rung::waited);

    for (std::size_t i = 0; i < commands.size(); ++i) {
        Command& command = *commands[i];
        Fate& fate = attempt.fates[i];
        if (fate.failure) {
            command.failure = std::move(fate.failure);
        } else if (fate.rejection) {
            command.outcome = std::move(*fate.rejection);
        } else if (fate.executed_before) {
            command.outcome = std::move(*fate.executed_before);
        } else {
            Receipt receipt{.transaction = {},
                            .written = tx.written_by(i),
                            .primary = {},
                            .path = Path::nothing,
                            .attempts = attempt.number,
                            .rung = climb.rung};
            if (alone || !receipt.written.empty() || !command.options.command_id.empty()) {
                receipt.path = commit.path;
                if (commit.path != Path::nothing) receipt.transaction = commit.tx;
                if (!commit.primary.partition.empty())
                    receipt.primary = {commit.primary.partition, version_of(commit.primary)};
            }
            command.outcome = std::move(receipt);
        }
    }
    return std::nullopt;
}

std::vector<CommandRunner::IdSlot> CommandRunner::read_ids(std::span<Command* const> commands,
                                                           const Attempt& attempt) const {
    std::vector<IdSlot> slots(commands.size());
    std::vector<std::size_t> indexes;
    std::vector<store::Key> keys;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        if (commands[i]->options.command_id.empty()) continue;
        indexes.push_back(i);
        keys.push_back(command_slot(commands[i]->options.command_id));
    }
    if (keys.empty()) return slots;
    SettledReader reader{world_.coordinator, attempt.id, attempt.since};
    std::vector<std::optional<store::Item>> items = world_.coordinator.store().read(keys);
    for (std::size_t k = 0; k < keys.size(); ++k) {
        IdSlot& found = slots[indexes[k]];
        const std::string& command_id = commands[indexes[k]]->options.command_id;
        const Slot slot = decode_slot(keys[k], std::move(items[k]));
        if (const auto* free = std::get_if<Free>(&slot)) {
            found.epoch = free->epoch;
        } else if (const auto* committed = std::get_if<Committed>(&slot)) {
            found.receipt = receipt_of_earlier(command_id, *committed);
        } else {
            const StreamRead read = reader.stream(keys[k].partition, 1);
            found.epoch = read.next.epoch;
            if (read.head > 0) found.receipt = receipt_of_earlier(command_id, read.slots.front().content);
        }
    }
    return slots;
}

}  // namespace varve::detail
