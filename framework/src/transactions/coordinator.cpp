#include "mutants.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/transactions/coordinator.h>
#include <varve/transactions/patience.h>

#include <algorithm>
#include <charconv>

namespace varve::transactions {

const char* to_string(Path path) noexcept {
    switch (path) {
        case Path::nothing: return "nothing";
        case Path::single: return "single";
        case Path::native: return "native";
        case Path::protocol: return "protocol";
        case Path::reserved: return "reserved";
    }
    return "unknown";
}

namespace {

/// What stands in the way of one write, found out from the item that refused it.
enum class Obstacle {
    none,     ///< it is there already: an earlier request of this attempt got through
    cleared,  ///< gone now: send the write again
    alive,    ///< an undecided transaction that may not be touched: wait
    moved,    ///< the item is no longer what the plan was decided on, and never will be again
};

/// One item that the transaction writes.
struct Participant {
    store::Key key;
    const SlotWrite* slot = nullptr;  // one of the three; none for a primary of the transaction's own
    const HeldSlot* held = nullptr;
    const RowWrite* row = nullptr;
    Epoch epoch = 0;  // of a slot: where it is expected to be free
    bool prepared = false;
    bool maybe_prepared = false;  // a prepare was sent and not answered
};

}  // namespace

/// One attempt of one transaction, from the decided plan to the acknowledgement. Lives on its caller's stack.
class Attempt {
  public:
    Attempt(Coordinator& coordinator, const Plan& plan, std::string tx, Time since)
        : c_(coordinator),
          plan_(plan),
          began_(c_.runtime_.clock.now()),
          backoff_(retry_policy(), c_.runtime_),
          patience_(c_.resolver_, c_.metrics_, {since, tx}) {
        claim_.tx = std::move(tx);
        claim_.lease = began_ + c_.options_.lease;
        claim_.priority = since;
        for (const SlotWrite& slot : plan.slots)
            participants_.push_back({.key = slot.key, .slot = &slot, .epoch = slot.epoch});
        std::ranges::sort(participants_, {}, &Participant::key);
        has_primary_of_its_own_ = needs_primary_of_its_own();
        if (has_primary_of_its_own_) {
            participants_.insert(participants_.begin(), {.key = slot_key(transaction_stream(claim_.tx), 1)});
        }
        for (const HeldSlot& held : plan.held) {
            participants_.push_back(
                {.key = held.key, .held = &held, .epoch = held.epoch, .prepared = true, .maybe_prepared = true});
        }
        for (const RowWrite& row : plan.rows) participants_.push_back({.key = row.key, .row = &row});
        if (!participants_.empty() && participants_.front().row == nullptr) {
            claim_.primary = participants_.front().key;
            claim_.primary_epoch = participants_.front().epoch;
        }
    }

    std::variant<Commit, Conflict> run() {
        if (participants_.empty()) {
            if (!validate()) return conflict();
            return committed(Path::nothing);
        }
        if (participants_.size() == 1 && !plan_.validates()) return write_at_once(Path::single);
        if (fits_native()) return write_at_once(Path::native);
        return run_protocol();
    }

  private:
    // What an attempt may take. Waiting for others ends with the lease; asking a silent store ends with
    // answer_time_max.
    RetryPolicy retry_policy() const { return waiting(std::max(c_.options_.lease, c_.options_.answer_time_max)); }
    bool lease_is_over() const { return c_.runtime_.clock.now() >= claim_.lease; }
    bool answers_are_overdue() const { return c_.runtime_.clock.now() >= began_ + c_.options_.answer_time_max; }

    /// Rows alone have no event slot that could be their primary; a single one needs none.
    bool needs_primary_of_its_own() const {
        if (!plan_.held.empty()) return true;
        if (!plan_.slots.empty()) return false;
        return plan_.rows.size() > 1 || (plan_.rows.size() == 1 && plan_.validates()) || !plan_.on_primary.empty();
    }
    /// A primary that others may have read is prepared too before anything is validated, or two transactions that read
    /// each other's primaries would both commit (write skew). Nobody reads one of the transaction's own.
    bool holds_primary() const {
        return plan_.validates() && !has_primary_of_its_own_ && !VARVE_MUTANT("the primary is not held");
    }
    bool fits_native() const {
        return c_.options_.strategy == Strategy::automatic && plan_.ranges_read.empty() && plan_.held.empty() &&
               participants_.size() + plan_.heads_read.size() + plan_.rows_read.size() <=
                   c_.capabilities_.atomic_writes_max;
    }

    Participant& primary() { return participants_.front(); }
    std::vector<store::Key> secondary_keys() const {
        std::vector<store::Key> keys;
        for (std::size_t i = 1; i < participants_.size(); ++i) keys.push_back(participants_[i].key);
        return keys;
    }

    // ---- obstacles

    /// Why a write of `participant` was refused by `current`; clears what may be cleared.
    Obstacle meet(Participant& participant, const std::optional<store::Item>& current) {
        return participant.row != nullptr ? meet_row(participant, current) : meet_slot(participant, current);
    }

    Obstacle meet_slot(Participant& participant, const std::optional<store::Item>& current) {
        const Slot slot = decode_slot(participant.key, current);
        if (const auto* committed = std::get_if<Committed>(&slot)) {
            return committed->write_id == claim_.tx ? Obstacle::none
                                                    : moved(participant.key, "was written by somebody else");
        }
        if (const auto* pending = std::get_if<Pending>(&slot)) {
            return pending->claim.tx == claim_.tx ? Obstacle::none : meet_claim(participant.key, *current);
        }
        // Fenced: the stream has not moved, so the decision stands. But nobody may learn of another primary epoch than
        // the one that was sent with the prepares.
        const Epoch epoch = std::get<Free>(slot).epoch;
        if (epoch != participant.epoch && claims_were_sent_ && &participant == &primary() &&
            !VARVE_MUTANT("the primary's epoch changes after the prepares")) {
            return moved(participant.key, "was fenced by somebody else");
        }
        participant.epoch = epoch;
        return Obstacle::cleared;
    }

    Obstacle meet_row(const Participant& participant, const std::optional<store::Item>& current) {
        const Row row = decode_row(participant.key, current);
        if (row.intent) {
            return row.intent->claim.tx == claim_.tx ? Obstacle::none : meet_claim(participant.key, *current);
        }
        if (row.image.rev == claim_.tx) return Obstacle::none;
        return row.image.rev == participant.row->seen.rev ? Obstacle::cleared
                                                          : moved(participant.key, "was written by somebody else");
    }

    /// What was read and is not written. Void or absent at any epoch is fine for a stream: it has not moved.
    Obstacle meet_head_read(const HeadRead& read, const std::optional<store::Item>& current) {
        const Slot slot = decode_slot(read.next, current);
        if (std::holds_alternative<Free>(slot)) return Obstacle::none;
        if (std::holds_alternative<Committed>(slot)) return moved(read.next, "was written by somebody else");
        return meet_claim(read.next, *current);
    }

    Obstacle meet_row_read(const store::Key& key, const std::optional<std::string>& rev,
                           const std::optional<store::Item>& current) {
        const Row row = decode_row(key, current);
        if (row.intent && !VARVE_MUTANT("validation overlooks intents")) return meet_claim(key, *current);
        return row.image.rev == rev ? Obstacle::none : moved(key, "was written by somebody else");
    }

    Obstacle meet_claim(const store::Key& key, const store::Item& item) {
        if (patience_.settle(key, item) != Verdict::undecided) {
            // If the two share a primary, it has moved on from the epoch that was sent with the prepares: start over.
            const bool shared = claims_were_sent_ && claim_on(key, item)->primary == claim_.primary;
            return shared ? moved(claim_.primary, "was settled for somebody else") : Obstacle::cleared;
        }
        met_ = store::to_string(key) + " is held by another transaction that is still running";
        return Obstacle::alive;
    }

    Obstacle moved(const store::Key& key, const char* how) {
        met_ = store::to_string(key) + " " + how;
        return Obstacle::moved;
    }

    Conflict conflict() {
        ++c_.metrics_.conflicts;
        return {.what = met_, .over = !waited_in_vain_, .waited = patience_.waited()};
    }

    /// After a round in which something was not done: whether there shall be another one.
    bool another_round(bool somebody_is_alive, bool unanswered) {
        if (!somebody_is_alive && !unanswered) return true;
        if (somebody_is_alive && lease_is_over()) {
            waited_in_vain_ = true;
            return false;
        }
        if (unanswered && answers_are_overdue()) return false;
        return backoff_.next();
    }

    // ---- one request: a single conditional write, or the store's atomic one

    std::variant<Commit, Conflict> write_at_once(Path path) {
        // Of the requests so far, one was not answered, or was refused by what may pass: it may still get through,
        // since any request may arrive again.
        bool may_get_through = false;
        for (;;) {
            std::vector<store::Write> writes;
            for (const Participant& participant : participants_) writes.push_back(final_write(participant));
            add_checks(writes);
            const store::AtomicAnswer answer =
                path == Path::native ? c_.store_.write_atomically(writes) : write_one(writes);

            if (std::holds_alternative<store::Applied>(answer)) return committed(path);
            bool alive = false;
            bool unanswered = false;
            if (const auto* failure = std::get_if<Failure>(&answer)) {
                may_get_through = may_get_through || failure->in_doubt;
                unanswered = true;
                if (!worth_repeating(*failure) || answers_are_overdue()) {
                    if (!may_get_through) raise(*failure);
                    return learn_outcome(path, failure->message);
                }
            } else {
                std::optional<Obstacle> worst;
                try {
                    worst = meet_all(std::get<store::RefusedBatch>(answer).refused);
                } catch (const Error& error) {
                    return learn_outcome(path, error.what());
                }
                if (!worst) return committed(path);
                if (*worst == Obstacle::moved) {
                    // A slot keeps what is in it, so no request of ours can succeed any more. A row forgets who wrote
                    // it before.
                    if (may_get_through && primary().row != nullptr)
                        throw_in_doubt("the row has been written again since");
                    return conflict();
                }
                may_get_through = true;
                alive = *worst == Obstacle::alive;
            }
            if (!another_round(alive, unanswered)) return may_get_through ? learn_outcome(path, met_) : conflict();
        }
    }

    store::AtomicAnswer write_one(const std::vector<store::Write>& writes) {
        store::WriteAnswer answer = c_.store_.write(writes).front();
        if (auto* refused = std::get_if<store::Refused>(&answer)) {
            return store::RefusedBatch{{{.index = 0, .current = std::move(refused->current)}}};
        }
        if (auto* failure = std::get_if<Failure>(&answer)) return std::move(*failure);
        return store::Applied{};
    }

    store::Write final_write(const Participant& participant) {
        if (participant.row == nullptr) {
            return commit_free_slot(participant.key, participant.epoch,
                                    {.write_id = claim_.tx, .payload = payload(participant)});
        }
        Image image{.data = participant.row->after, .rev = claim_.tx};
        if (!image.data) image.expires = c_.resolver_.tombstone_expiry();
        return write_row(participant.key, participant.row->seen, image);
    }

    store::Item payload(const Participant& participant) const {
        store::Item payload = participant.slot != nullptr ? participant.slot->payload : store::Item{};
        if (&participant == &participants_.front() &&
            !(has_primary_of_its_own_ && VARVE_MUTANT("effects are lost where the primary is the transaction's own")))
            payload.insert(plan_.on_primary.begin(), plan_.on_primary.end());
        return payload;
    }

    void add_checks(std::vector<store::Write>& writes) const {
        if (VARVE_MUTANT("what a native transaction read is not checked")) return;
        for (const HeadRead& read : plan_.heads_read)
            writes.push_back({read.next, store::Check{}, free_at_any_epoch()});
        for (const RowRead& read : plan_.rows_read)
            writes.push_back({read.key, store::Check{}, unclaimed_at(read.rev)});
    }

    /// The worst of what refused an atomic request; nullopt: it was applied already.
    std::optional<Obstacle> meet_all(const std::vector<store::RefusedBatch::One>& refused) {
        Obstacle worst = Obstacle::cleared;
        for (const auto& [index, current] : refused) {
            if (index < participants_.size()) {
                const Obstacle obstacle = meet(participants_[index], current);
                if (obstacle == Obstacle::none) return std::nullopt;
                worst = std::max(worst, obstacle);
                continue;
            }
            const std::size_t check = index - participants_.size();
            if (check < plan_.heads_read.size()) {
                worst = std::max(worst, meet_head_read(plan_.heads_read[check], current));
            } else {
                const RowRead& read = plan_.rows_read[check - plan_.heads_read.size()];
                worst = std::max(worst, meet_row_read(read.key, read.rev, current));
            }
        }
        return worst;
    }

    // ---- the protocol

    std::variant<Commit, Conflict> run_protocol() {
        claims_were_sent_ = true;
        Committed content;
        bool ready = false;
        try {
            check_room();
            const bool early = VARVE_MUTANT("validation before the prepares");
            ready = early ? validate() && prepare() : prepare() && validate();
            if (ready) content = primary_content();
        } catch (const Error&) {
            undo_prepared();
            throw;
        }
        if (ready) return commit_primary(content);
        undo_prepared();
        return conflict();
    }

    /// Step 2. All that is not prepared goes out as one batch, until nothing is left or somebody stands in the way.
    /// Every answer of a batch is waited for, also when one is refused.
    bool prepare() {
        for (;;) {
            std::vector<Participant*> open;
            std::vector<store::Write> writes;
            for (std::size_t i = holds_primary() ? 0 : 1; i < participants_.size(); ++i) {
                Participant& participant = participants_[i];
                if (participant.prepared) continue;
                open.push_back(&participant);
                writes.push_back(
                    participant.row != nullptr
                        ? prepare_row(participant.key, participant.row->seen, claim_, participant.row->after)
                        : prepare_slot(participant.key, participant.epoch, claim_, payload(participant)));
            }
            if (open.empty()) return true;

            for (Participant* participant : open) participant->maybe_prepared = true;
            const std::vector<store::WriteAnswer> answers = c_.store_.write(writes);
            Obstacle worst = Obstacle::none;
            const Failure* unanswered = nullptr;
            for (std::size_t i = 0; i < open.size(); ++i) {
                if (const auto* refused = std::get_if<store::Refused>(&answers[i])) {
                    const Obstacle obstacle = meet(*open[i], refused->current);
                    open[i]->prepared = obstacle == Obstacle::none;
                    worst = std::max(worst, obstacle);
                } else if (const auto* failure = std::get_if<Failure>(&answers[i])) {
                    unanswered = failure;
                    prepare_unanswered_ = prepare_unanswered_ || failure->in_doubt;
                    if (VARVE_MUTANT("a commit without an answer to every prepare")) {
                        unanswered = nullptr;
                        open[i]->prepared = true;
                    }
                } else {
                    open[i]->prepared = true;
                }
            }
            if (worst == Obstacle::moved) return false;
            if (unanswered != nullptr && (!worth_repeating(*unanswered) || answers_are_overdue())) {
                raise_certain(*unanswered);  // a prepare that arrives late is undone: the whole is not in doubt
            }
            if (!another_round(worst == Obstacle::alive, unanswered != nullptr)) return false;
        }
    }

    /// Step 3. Strictly after all prepares and before the commit: what was read and is not written still stands as
    /// read, and nobody has a claim on it.
    bool validate() {
        if (!plan_.validates() || VARVE_MUTANT("no validation")) return true;
        std::vector<store::Key> keys;
        for (const HeadRead& read : plan_.heads_read) keys.push_back(read.next);
        for (const RowRead& read : plan_.rows_read) keys.push_back(read.key);
        for (;;) {
            Obstacle worst = Obstacle::none;
            const std::vector<std::optional<store::Item>> items =
                keys.empty() ? std::vector<std::optional<store::Item>>{} : c_.store_.read(keys);
            for (std::size_t i = 0; i < keys.size(); ++i) {
                const std::size_t heads = plan_.heads_read.size();
                worst = std::max(worst, i < heads ? meet_head_read(plan_.heads_read[i], items[i])
                                                  : meet_row_read(keys[i], plan_.rows_read[i - heads].rev, items[i]));
            }
            for (const RangeRead& read : plan_.ranges_read) worst = std::max(worst, meet_range_read(read));
            if (worst == Obstacle::none) return true;
            if (worst == Obstacle::moved || !another_round(worst == Obstacle::alive, false)) return false;
        }
    }

    Obstacle meet_range_read(const RangeRead& read) {
        std::vector<std::pair<store::Key, std::string>> found;
        Obstacle worst = Obstacle::none;
        for (const store::Record& record : c_.reader_.raw(read.query)) {
            const bool mine =
                std::ranges::any_of(plan_.rows, [&](const RowWrite& row) { return row.key == record.key; });
            const Row row = decode_row(record.key, record.item);
            if (row.intent && !mine) worst = std::max(worst, meet_claim(record.key, record.item));
            if (row.image.rev) found.emplace_back(record.key, *row.image.rev);
        }
        if (worst != Obstacle::none) return worst;
        return found == read.found
                   ? Obstacle::none
                   : moved({read.query.table, read.query.partition, read.query.first}, "and its range have changed");
    }

    /// What the primary will say: its own events, those of the reserved slots, and where all the others are.
    Committed primary_content() {
        Committed content{.write_id = claim_.tx, .payload = payload(primary()), .participants = secondary_keys()};
        for (std::size_t i = 1; i < participants_.size(); ++i) {
            if (participants_[i].held == nullptr || !participants_[i].held->payload) continue;
            check_room(participants_[i].key, *participants_[i].held->payload);
            for (const auto& [name, value] : *participants_[i].held->payload) {
                content.payload.emplace(copied_attribute(i - 1, name), value);
            }
        }
        check_room(primary().key, content.payload);
        constexpr std::size_t bytes_per_key = 80;  // JSON around the names
        const auto size = [](const store::Key& key) {
            const auto* sort = std::get_if<std::string>(&key.sort);
            return json::quote(key.partition).size() + (sort ? json::quote(*sort).size() : 21) + key.table.size() +
                   bytes_per_key;
        };
        std::size_t total = store::bytes(primary().key, content.payload) + protocol_bytes;
        for (const store::Key& key : content.participants) total += size(key);
        if (total > c_.capabilities_.item_bytes_max) continue_participants(content, size);
        return content;
    }

    /// What the protocol's own attributes take in a committed slot, the done mark included; participants apart.
    static constexpr std::size_t protocol_bytes = 200;

    /// Refuses before the first write what the store would refuse at the commit, or with the prepares, after which it
    /// is not known any more that nothing was sent.
    void check_room() const {
        check_room(participants_.front().key, payload(participants_.front()));
        for (const Participant& participant : participants_) {
            if (participant.slot != nullptr) check_room(participant.key, participant.slot->payload);
            if (participant.row == nullptr) continue;
            // Until it is finalised, a row has both of its images.
            store::Item images;
            if (participant.row->seen.data) images.emplace("data", *participant.row->seen.data);
            if (participant.row->after) images.emplace("_after", *participant.row->after);
            check_room(participant.key, images);
        }
    }

    /// Refuses before the commit what could not be finalised after it.
    void check_room(const store::Key& key, const store::Item& payload) const {
        const std::size_t bytes = store::bytes(key, payload) + protocol_bytes;
        if (bytes > c_.capabilities_.item_bytes_max) {
            throw InvalidError(store::too_large(key, bytes, c_.capabilities_.item_bytes_max));
        }
    }

    /// A list that does not fit goes to slots of the transaction's own, before the commit. They mean nothing without
    /// it.
    void continue_participants(Committed& content, auto size) {
        const std::string stream = transaction_stream(claim_.tx);
        std::vector<Part> parts;
        std::size_t room = 0;
        for (store::Key& key : content.participants) {
            const std::size_t needed = size(key);
            if (needed > room) {
                parts.push_back({.write_id = claim_.tx, .participants = {}});
                room = c_.capabilities_.item_bytes_max -
                       std::min(c_.capabilities_.item_bytes_max, stream.size() + protocol_bytes);
            }
            room -= std::min(room, needed);
            parts.back().participants.push_back(std::move(key));
        }
        content.participants.clear();
        content.continued = static_cast<std::int64_t>(parts.size());
        std::vector<store::Write> writes;
        for (const Part& part : parts) {
            writes.push_back(write_part(slot_key(stream, static_cast<Version>(writes.size()) + 2), part));
        }
        for (;;) {
            const std::vector<store::WriteAnswer> answers = c_.store_.write(writes);
            // Refused: an earlier request of ours got through. Nobody else writes there.
            const auto failed =
                std::ranges::find_if(answers, [](const auto& a) { return std::holds_alternative<Failure>(a); });
            if (failed == answers.end()) return;
            const auto& failure = std::get<Failure>(*failed);
            if (!worth_repeating(failure) || answers_are_overdue() || !backoff_.next()) {
                raise_certain(failure);
            }
        }
    }

    /// Step 4. The write that turns the primary to committed IS the commit.
    std::variant<Commit, Conflict> commit_primary(const Committed& content) {
        const store::Write write = holds_primary() ? commit_pending_slot(primary().key, content)
                                                   : commit_free_slot(primary().key, claim_.primary_epoch, content);
        for (bool unanswered = false;;) {
            const store::WriteAnswer answer = c_.store_.write({&write, 1}).front();
            if (std::holds_alternative<store::Applied>(answer)) return committed(Path::protocol);
            if (const auto* refused = std::get_if<store::Refused>(&answer)) {
                const Slot slot = decode_slot(primary().key, refused->current);
                if (judge(claim_, slot) == Verdict::committed) return committed(Path::protocol);
                moved(primary().key, std::holds_alternative<Free>(slot) ? "was fenced by somebody else"
                                                                        : "was taken by somebody else");
                undo_prepared();
                return conflict();
            }
            const auto& failure = std::get<Failure>(answer);
            unanswered = unanswered || failure.in_doubt;
            if (VARVE_MUTANT("a lost answer is taken for an abort")) {
                undo_prepared();
                return conflict();
            }
            met_ = "the store did not answer: " + failure.message;
            if (worth_repeating(failure) && !answers_are_overdue() && backoff_.next()) continue;
            if (!unanswered) {
                undo_prepared();
                raise(failure);
            }
            if (learn_verdict() == Verdict::committed) return committed(Path::protocol);
            undo_prepared();
            return conflict();
        }
    }

    // ---- how it ends

    std::variant<Commit, Conflict> committed(Path path) {
        if (path == Path::protocol) finalise_in_background();
        if (!plan_.held.empty()) path = Path::reserved;
        ++c_.metrics_.committed;
        ++c_.metrics_.committed_by[static_cast<std::size_t>(path)];
        return Commit{.tx = claim_.tx, .path = path, .primary = claim_.primary, .waited = patience_.waited()};
    }

    /// Step 5, after the acknowledgement. Whatever is left undone here, others finish.
    void finalise_in_background() {
        std::vector<store::Write> writes;
        for (std::size_t i = 1; i < participants_.size(); ++i) {
            const Participant& one = participants_[i];
            writes.push_back(finalise(one));
        }
        const bool has_rows = !plan_.rows.empty();
        std::vector<bool> tells;  // of each write
        for (std::size_t i = 1; i < participants_.size(); ++i) {
            const Participant& one = participants_[i];
            tells.push_back(plan_.finalised && one.row == nullptr && (one.held == nullptr || one.held->payload));
        }
        c_.background_.post([&store = c_.store_, writes = std::move(writes), tells = std::move(tells),
                             finalised = plan_.finalised, has_rows, primary = primary().key, tx = claim_.tx] {
            bool all_answered = true;
            const std::vector<store::WriteAnswer> answers = store.write(writes);
            for (std::size_t i = 0; i < answers.size(); ++i) {
                all_answered = all_answered && !std::holds_alternative<Failure>(answers[i]);
                if (tells[i] && std::holds_alternative<store::Applied>(answers[i])) finalised(writes[i].key);
            }
            if (!has_rows || !(all_answered || VARVE_MUTANT("done before all is finalised"))) return;
            const store::Write done = mark_done(primary, tx);
            static_cast<void>(store.write({&done, 1}));
        });
    }

    store::Write finalise(const Participant& one) const {
        if (one.row != nullptr) {
            return finalise_row(one.key, {.claim = claim_, .after = one.row->after, .was_expires = {}},
                                c_.resolver_.tombstone_expiry());
        }
        if (one.held == nullptr) return finalise_slot(one.key, claim_.tx);
        if (!one.held->payload) return undo_slot(one.key, claim_.tx, one.epoch);
        return commit_pending_slot(one.key, {.write_id = claim_.tx, .payload = *one.held->payload});
    }

    /// For an attempt that is certain never to commit: its owner, the only one who could, has not asked for it, or
    /// knows that it was refused for ever. Whatever fails here, others do when they meet it.
    void undo_prepared() {
        try {
            // A prepare may still be on its way: fenced, it is undone at sight instead of after its lease.
            if (prepare_unanswered_) c_.resolver_.end(claim_);
            std::vector<store::Write> undoes;
            for (const Participant& one : participants_) {
                if (!one.maybe_prepared) continue;
                const auto intent = [&] {
                    return Intent{.claim = claim_, .after = one.row->after, .was_expires = one.row->seen.expires};
                };
                undoes.push_back(one.row == nullptr ? undo_slot(one.key, claim_.tx, one.epoch)
                                                    : undo_row(one.key, one.row->seen, intent()));
            }
            if (!undoes.empty()) static_cast<void>(c_.store_.write(undoes));
        } catch (const Error& error) {
            c_.runtime_.log.write(LogLevel::info,
                                  std::string{"an aborted transaction is left to others: "} + error.what());
        }
    }

    std::variant<Commit, Conflict> learn_outcome(Path path, const std::string& why) {
        met_ = why;
        if (primary().row != nullptr) throw_in_doubt(why);
        return learn_verdict() == Verdict::committed ? committed(path) : conflict();
    }

    /// Nobody says 'aborted' before it is certain: an undecided primary is fenced.
    Verdict learn_verdict() {
        claim_.primary_epoch = claims_were_sent_ ? claim_.primary_epoch : primary().epoch;
        for (Backoff backoff{retry_policy(), c_.runtime_};;) {
            try {
                const Verdict verdict = c_.resolver_.end(claim_);
                if (verdict != Verdict::undecided) return verdict;
            } catch (const Error& error) {
                if (!error.retryable()) throw_in_doubt(error.what());
                met_ = error.what();
            }
            if (!backoff.next()) throw_in_doubt(met_);
        }
    }

    [[noreturn]] void throw_in_doubt(const std::string& why) {
        ++c_.metrics_.in_doubt;
        throw InDoubtError("whether transaction " + claim_.tx + " on " + store::to_string(primary().key) +
                               " has committed is not known: " + why,
                           primary().row != nullptr ? std::string{} : handle());
    }

    std::string handle() const {
        return claim_.tx + "@" + std::to_string(claim_.primary_epoch) + "/" +
               std::to_string(version_of(claim_.primary)) + "/" + claim_.primary.partition;
    }

    Coordinator& c_;
    const Plan& plan_;
    const Time began_;
    Backoff backoff_;
    Patience patience_;
    Claim claim_;
    std::vector<Participant> participants_;  // the primary first, then the other slots in key order, then the rows
    bool has_primary_of_its_own_ = false;
    bool claims_were_sent_ = false;    // others may know the primary and its epoch
    bool prepare_unanswered_ = false;  // a prepare may still arrive
    bool waited_in_vain_ = false;
    std::string met_;
};

Coordinator::Coordinator(store::ItemStore& store, Runtime runtime, Executor& background, Options options)
    : store_(store),
      capabilities_(store.capabilities()),
      runtime_(runtime),
      background_(background),
      options_(options),
      resolver_(store, runtime, options, metrics_),
      reader_(store, resolver_, runtime) {}

Verdict Coordinator::resolve(std::string_view transaction) {
    // A handle is tx@epoch/version/stream, where the primary is.
    const auto part = [rest = transaction](char end) mutable {
        const std::string_view head = rest.substr(0, rest.find(end));
        rest.remove_prefix(std::min(head.size() + 1, rest.size()));
        return head;
    };
    auto next = part;
    const std::string_view tx = next('@');
    const std::string_view epoch_text = next('/');
    const std::string_view version_text = next('/');
    const std::string_view stream = next('\0');
    const auto number = [](std::string_view text, std::int64_t& value) {
        return !text.empty() &&
               std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size();
    };
    Epoch epoch = 0;
    Version version = 0;
    if (tx.empty() || stream.empty() || !number(epoch_text, epoch) || !number(version_text, version)) {
        throw InvalidError("'" + std::string{transaction} +
                           "' is no transaction's handle; take it from InDoubtError::transaction()");
    }
    const Claim claim{.tx = std::string{tx},
                      .primary = slot_key(std::string{stream}, version),
                      .primary_epoch = epoch,
                      .lease = {},
                      .priority = {}};
    return resolver_.end(claim);
}

std::variant<Commit, Conflict> Coordinator::commit(const Plan& plan, const std::string& tx, Time since) {
    return Attempt{*this, plan, tx, since}.run();
}

}  // namespace varve::transactions
