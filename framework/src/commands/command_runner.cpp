#include "commands/command_runner.h"

#include "commands/failures.h"
#include "commands/inside.h"
#include "core/planted_faults.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>
#include <varve/core/json.h>

#include <algorithm>
#include <set>
#include <utility>

namespace varve::detail {

using namespace transactions;
using aggregates::Repository;

namespace {

/// How many items a batch of commands writes at most where the store has no limit of its own.
constexpr std::size_t participants_max = 100;
/// Of a slot, besides events and metadata: the protocol's attributes, a claim's included.
constexpr std::size_t slot_overhead_bytes = 800;

Metadata metadata_of(const Command& command) {
    const CommandOptions& options = command.options;
    Metadata metadata{.command_id = options.command_id,
                      .correlation = options.correlation.empty() ? options.command_id : options.correlation,
                      .causation = options.causation,
                      .headers = options.headers};
    if (command.span) metadata.headers.insert_or_assign("traceparent", command.span->context().traceparent());
    return metadata;
}

/// What the metadata take in a slot, at most.
std::size_t stored_bytes(const Metadata& metadata) {
    constexpr std::size_t names_bytes = 80;
    std::size_t bytes = names_bytes;
    const auto add = [&](const std::string& text) { bytes += json::quote(text).size() + 2; };
    add(metadata.command_id);
    add(metadata.correlation);
    add(metadata.causation);
    for (const auto& [name, value] : metadata.headers) {
        add(name);
        add(value);
    }
    return bytes;
}

/// One single read is of one moment as it is.
bool is_one_read(const Plan& plan) {
    return plan.writes() == 0 && plan.on_primary.empty() && plan.ranges_read.empty() &&
           plan.heads_read.size() + plan.rows_read.size() <= 1;
}

const telemetry::OpenSpan* first_span(Commands commands) {
    for (const Command* command : commands) {
        if (command->span) return &*command->span;
    }
    return nullptr;
}

/// Measures a commit, however it ends.
class Committing {
  public:
    Committing(SteadyTime& ended, telemetry::Histogram& took, Clock& clock, SteadyTime began)
        : ended_(ended), took_(took), clock_(clock), began_(began) {}
    ~Committing() {
        ended_ = clock_.steady_now();
        took_.record(ended_ - began_);
    }
    Committing(const Committing&) = delete;
    Committing& operator=(const Committing&) = delete;

  private:
    SteadyTime& ended_;
    telemetry::Histogram& took_;
    Clock& clock_;
    const SteadyTime began_;
};

bool has_an_id(const Command* command) {
    return !command->options.command_id.empty();
}

}  // namespace

void CommandRunner::check(const char* call, const CommandOptions& options) const {
    if (Inside::of(this)) {
        throw InvalidError(std::string{call} +
                           " was called from inside a handler, or the body of a transaction, of the same application: "
                           "it would be no part of that command, and may wait for it for ever. Use the transaction's "
                           "own execute, load and rows, or call it when the outcome is there");
    }
    check_command_id(options.command_id);
}

std::size_t CommandRunner::run(Commands commands) {
    const std::size_t ended = run_together(commands);
    return ended > 0 ? ended : run_together(commands.first(1));
}

std::size_t CommandRunner::run_together(Commands commands) {
    const Runtime runtime = world_.coordinator.runtime();
    Commands together = commands;  // of the last attempt
    const SteadyTime began = runtime.clock.get().steady_now();
    const telemetry::SpanScope requests_belong_to{first_span(commands)};
    try {
        Climb climb{escalation_, lines_, turns_, runtime.clock};
        const std::string first_id = uuid7(runtime);
        unsigned from_memory = 0;  // attempts that failed because memory was out of date: they do not count
        for (Backoff backoff{retry_, runtime, began};;) {
            const unsigned number = backoff.attempts() + from_memory;
            Attempt attempt{
                .id = planted(PlantedFault::one_id_for_all_attempts) ? first_id : attempt_id(first_id, number),
                .number = number,
                .since = commands.front()->began,
                .until = backoff.until(),
                .began = number == 1 ? began : runtime.clock.get().steady_now(),
                .commands = together = commands};
            std::optional<Conflict> lost = this->attempt(attempt, climb);
            if (!lost) {
                count(together, attempt.ended - began);
                return together.size();
            }
            attempt.reservation.reset();  // who sleeps holds nothing
            climb.to(lost->waited ? Rung::waited : Rung::retried);
            if (lost->over && attempt.rests_on_memory) {
                ++from_memory;
            } else if (!(lost->over ? backoff.next_without_delay() : backoff.next())) {
                throw_conflict(std::move(*lost), backoff);
            }
        }
    } catch (const Error& error) {
        if (commands.size() > 1 && !error.retryable() && !error.in_doubt()) return 0;
        fail(together, std::current_exception());
    } catch (...) {
        fail(together, std::current_exception());
    }
    count(together, runtime.clock.get().steady_now() - began);
    return together.size();
}

std::optional<Conflict> CommandRunner::attempt(Attempt& attempt, Climb& climb) try {
    prepare(attempt, climb);
    unsigned rounds_in_line = 3;  // what it needs may change with what it sees
    for (;;) {
        Workspace work{world_,
                       attempt.id,
                       attempt.since,
                       attempt.until,
                       attempt.reservation ? &*attempt.reservation : nullptr,
                       attempt.is_first() ? Repository::Ask::last_known : Repository::Ask::store};
        if (!attempt.is_first()) work.read_ahead(climb.aggregates(), climb.touched().rows);
        try {
            if (!decide(work, attempt)) continue;
        } catch (const BlockedError&) {
            climb.note(work);
            throw;
        }
        climb.note(work);
        if (rounds_in_line > 0 && !is_its_turn(work, attempt, climb)) {
            --rounds_in_line;
            continue;
        }
        const SteadyTime decided = world_.coordinator.runtime().clock.get().steady_now();
        metrics_.decide.record(decided - attempt.began);
        const Committing committing{attempt.ended, metrics_.commit, world_.coordinator.runtime().clock, decided};
        return commit(work, attempt, climb);
    }
} catch (const BlockedError& error) {
    climb.note(error);
    return Conflict{.what = error.what(), .over = false, .waited = true, .details = error.details()};
} catch (const InDoubtError& error) {
    tell_who_wrote_nothing(attempt, error);
    throw;
}

void CommandRunner::prepare(Attempt& attempt, Climb& climb) const {
    if (climb.escalate(attempt.number, attempt.until)) {
        attempt.reservation.emplace(world_.coordinator, attempt.id, attempt.since, attempt.until);
        attempt.reservation->hold(climb.touched());
    }
    if (attempt.is_first()) return;
    SettledReader reader{world_.coordinator, attempt.id, attempt.since, attempt.until};
    attempt.ids = read_id_slots(attempt.commands, reader);
    announce(attempt.ids);
}

void CommandRunner::announce(const std::vector<IdSlot>& ids) const {
    if (!world_.coordinator.announces()) return;
    for (const IdSlot& id : ids) {
        if (!id.ended_before || !*id.ended_before) continue;
        const Receipt& receipt = **id.ended_before;
        std::vector<store::Key> slots;
        for (const Receipt::Written& written : slots_of(receipt))
            slots.push_back(slot_key(written.stream, written.version));
        world_.coordinator.announce(receipt.transaction, slots);
        followers_.wake();
    }
}

CommandRunner::Fate CommandRunner::decide(Workspace& work, const Command& command) const {
    Fate fate;
    try {
        if (command.options.fenced_by != nullptr) work.fenced_by(*command.options.fenced_by);
        const Inside inside{this};
        command.body(work.transaction());
        work.keep_indexes();
    } catch (const Rejected& rejected) {
        work.set_rejection(rejected.rejection);
    } catch (...) {
        fate.failure = std::current_exception();
    }
    fate.rejection = work.take_rejection();  // also if the body caught what ended it
    return fate;
}

bool CommandRunner::decide(Workspace& work, Attempt& attempt) const {
    const Commands commands = attempt.commands;
    const store::Capabilities capabilities = world_.coordinator.store().capabilities();
    const bool native =
        world_.coordinator.options().strategy == Strategy::automatic && capabilities.atomic_writes_max > 0;
    const std::size_t items_max = native ? capabilities.atomic_writes_max : participants_max;
    std::size_t metadata_bytes = slot_overhead_bytes;
    std::set<std::string_view> ids;
    const auto come_down_to = [&](std::size_t decided, bool without_traces = true) {
        attempt.commands = commands.first(decided);
        return without_traces;
    };

    attempt.fates.clear();
    for (std::size_t i = 0; i < commands.size(); ++i) {
        const Command& command = *commands[i];
        const std::string& command_id = command.options.command_id;
        Metadata metadata = metadata_of(command);
        const std::size_t bytes_beside = stored_bytes(metadata);
        work.begin_command(std::move(metadata));
        if (!attempt.ids.empty() && attempt.ids[i].ended_before) {
            attempt.fates.push_back({.ended_before = attempt.ids[i].ended_before});
            continue;
        }
        // What these ask for concerns them alone; and a repeat waits until it can see the first.
        const bool alone = command.options.fenced_by != nullptr;
        if (i > 0 && (alone || (command.options.expected_version && work.changes() > 0) || ids.contains(command_id)))
            return come_down_to(i);

        const std::size_t changes_before = work.changes();
        Fate fate = decide(work, command);
        const bool has_changed = work.changes() != changes_before;
        if (fate.failure) {
            // It fails only itself: alone, where there is nobody else whose work would have to be done again.
            if (i > 0) return come_down_to(i, !has_changed);
            if (commands.size() > 1) return come_down_to(1, false);
            if (concerns_the_store(fate.failure)) std::rethrow_exception(fate.failure);
        }
        // A projection may reject an event that is decided already.
        const bool rejected_late = fate.rejection && has_changed;
        if (i > 0 && rejected_late) return come_down_to(i, false);

        metadata_bytes += bytes_beside;
        const std::size_t bytes = work.event_bytes() + metadata_bytes;
        if (i > 0 && bytes > capabilities.item_bytes_max && has_changed) return come_down_to(i, false);
        const bool is_last = alone || fate.failure || rejected_late;
        attempt.fates.push_back(std::move(fate));
        if (!command_id.empty()) ids.insert(command_id);
        if (is_last || bytes > capabilities.item_bytes_max / 2 || 1 + ids.size() + work.rows().size() >= items_max)
            return come_down_to(i + 1);
    }
    return true;
}

bool CommandRunner::is_its_turn(const Workspace& work, const Attempt& attempt, Climb& climb) const {
    if (attempt.is_first()) {
        if (std::ranges::none_of(attempt.fates, &Fate::accepted)) return true;
        // Who writes one slot from its lane, as most do, need not say so where nobody listens.
        const bool unheard = attempt.commands.front()->in_lane && lines_.are_empty();
        if (unheard && work.aggregates().size() == 1 && work.lines(false).size() == 1) return true;
    }
    // What is only read is shared, as long as nobody keeps changing it.
    return !climb.wait_in_line(work, !attempt.is_first(), attempt.until);
}

std::optional<Conflict> CommandRunner::commit(const Workspace& work, Attempt& attempt, Climb& climb) const {
    const Plan plan = this->plan(work, attempt);
    // After the commit nothing may fail: what will be told takes its memory now.
    std::vector<Receipt> receipts = receipts_before(work, attempt, plan);
    std::variant<Conflict, Commit> result = commit(plan, work, attempt);
    if (auto* conflict = std::get_if<Conflict>(&result)) return std::move(*conflict);
    const Commit& commit = std::get<Commit>(result);
    if (!attempt.was_in_vain()) work.remember(commit);
    if (commit.waited || work.waited()) climb.to(Rung::waited);
    tell(attempt, commit, std::move(receipts), climb.rung());
    if (commit.path != Path::nothing) followers_.wake();
    return std::nullopt;
}

Plan CommandRunner::plan(const Workspace& work, const Attempt& attempt) const {
    // A rejection, too, must not rest on a combination of things that never was: what it read is validated, nothing
    // written.
    Plan plan = attempt.was_in_vain() ? work.reads() : work.plan();
    if (plan.finalised) {
        plan.finalised = [this, remember = std::move(plan.finalised)](const store::Key& slot) {
            remember(slot);
            followers_.wake();  // they did not see it before
        };
    }
    const bool ids_are_known = !attempt.ids.empty();
    for (std::size_t i = 0; i < attempt.commands.size(); ++i) {
        const Command& command = *attempt.commands[i];
        const Fate& fate = attempt.fates[i];
        if (!has_an_id(&command) || fate.ended_before || (attempt.has_failed() && ids_are_known)) continue;
        store::Key slot = id_slot_key(command.options.command_id);
        if (!fate.accepted()) {
            // Executed meanwhile under this id: the next attempt returns what it did then.
            plan.heads_read.push_back({std::move(slot)});
        } else if (!planted(PlantedFault::a_command_id_is_looked_up_and_not_written)) {
            plan.slots.push_back({std::move(slot), ids_are_known ? attempt.ids[i].epoch : 0,
                                  id_slot_payload(command.fingerprint, work.written_by(i))});
        }
    }
    return plan;
}

std::vector<Receipt> CommandRunner::receipts_before(const Workspace& work, const Attempt& attempt, const Plan& plan) {
    std::size_t stream_bytes_max = transaction_stream(attempt.id).size();
    for (const SlotWrite& slot : plan.slots) stream_bytes_max = std::max(stream_bytes_max, slot.key.partition.size());
    std::vector<Receipt> receipts(attempt.commands.size());
    for (std::size_t i = 0; i < receipts.size(); ++i) {
        if (!attempt.fates[i].accepted()) continue;
        receipts[i].transaction = attempt.id;
        receipts[i].written = work.written_by(i);
        receipts[i].effects_slot = work.effects_slot(i);
        if (receipts[i].effects_slot) receipts[i].effects_slot->stream.reserve(stream_bytes_max);
        receipts[i].attempts = attempt.number;
    }
    return receipts;
}

std::variant<Conflict, Commit> CommandRunner::commit(const Plan& plan, const Workspace& work, Attempt& attempt) const {
    const bool from_memory =
        !work.asked_for_all() && !planted(PlantedFault::what_rests_on_memory_alone_is_not_validated);
    const bool trusts_ids = attempt.ids.empty() && std::ranges::any_of(attempt.commands, has_an_id);
    attempt.rests_on_memory = from_memory || trusts_ids;

    Commit commit{.tx = {}, .path = Path::nothing};
    if (attempt.rests_on_memory || work.is_fenced() || (!attempt.has_failed() && !is_one_read(plan))) {
        if (attempt.reservation && !attempt.was_in_vain()) attempt.reservation->hand_over();
        try {
            std::variant<Conflict, Commit> result =
                world_.coordinator.commit(plan, attempt.id, attempt.since, attempt.until);
            if (std::holds_alternative<Conflict>(result)) {
                work.check_fences();
                return result;
            }
            commit = std::move(std::get<Commit>(result));
        } catch (const Error&) {
            if (!attempt.has_failed()) throw;  // else the command's own failure says more
        }
    }
    const bool rests_on_what_it_holds = attempt.reservation && attempt.was_in_vain() && !attempt.has_failed();
    if (rests_on_what_it_holds && !attempt.reservation->is_alive())
        return Conflict{.what = "the reservation was ended by somebody else", .over = true};
    return commit;
}

void CommandRunner::tell(Attempt& attempt, const Commit& commit, std::vector<Receipt> receipts, Rung rung) {
    for (std::size_t i = 0; i < attempt.commands.size(); ++i) {
        Command& command = *attempt.commands[i];
        Fate& fate = attempt.fates[i];
        if (fate.failure) {
            command.failure = std::move(fate.failure);
        } else if (fate.rejection) {
            command.outcome = std::move(*fate.rejection);
        } else if (fate.ended_before) {
            command.outcome = std::move(*fate.ended_before);
        } else {
            Receipt& receipt = receipts[i];
            receipt.rung = rung;
            const bool wrote =
                attempt.commands.size() == 1 || !receipt.written.empty() || receipt.effects_slot || has_an_id(&command);
            if (wrote) receipt.path = commit.path;
            if (receipt.path == Path::nothing) receipt.transaction.clear();
            if (receipt.effects_slot && receipt.effects_slot->stream.empty()) {  // they are in the slot that decides
                receipt.effects_slot->stream = commit.primary.partition;         // for which there is room
                receipt.effects_slot->version = version_of(commit.primary);
            }
            command.outcome = std::move(receipt);
        }
    }
}

void CommandRunner::tell_who_wrote_nothing(Attempt& attempt, const InDoubtError& error) {
    for (std::size_t i = 0; i < attempt.fates.size(); ++i) {
        Fate& fate = attempt.fates[i];
        if (fate.accepted()) continue;
        if (fate.ended_before) {
            attempt.commands[i]->outcome = std::move(*fate.ended_before);
        } else {
            attempt.commands[i]->failure = unavailable_beside(error);
        }
    }
}

void CommandRunner::fail(Commands commands, const std::exception_ptr& failure) {
    bool is_taken = false;
    for (Command* command : commands) {
        if (command->failure || command->outcome) continue;
        command->failure = std::exchange(is_taken, true) ? one_more_of(failure) : failure;
    }
}

void CommandRunner::count(Commands ended, Duration took) {
    for (Command* command : ended) {
        command->metrics.ended(command->outcome, command->failure, took);
        if (command->span) end_span(*command);
    }
}

void CommandRunner::throw_conflict(Conflict conflict, const Backoff& backoff) const {
    ConflictDetails details = std::move(conflict.details);
    details.attempts = backoff.attempts();
    if (!details.stream.empty()) {
        try {
            details.actual = world_.coordinator.reader().head(details.stream).head;
        } catch (const Error&) {
            // Then it is not known.
        }
    }
    const std::string message = "gave up " + backoff.spent() + "; the last one met this: " + conflict.what;
    details.met = std::move(conflict.what);
    throw ConflictError(message, std::move(details));
}

}  // namespace varve::detail
