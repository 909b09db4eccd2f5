#pragma once

#include <varve/transactions/coordinator.h>
#include <varve/transactions/patience.h>

#include <algorithm>

namespace varve::transactions {

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
    const SlotWrite* slot = nullptr;  // one of the four; none for a primary of the transaction's own
    const HeldSlot* held = nullptr;
    const RowWrite* row = nullptr;
    const HeldRow* held_row = nullptr;
    Epoch epoch = 0;                       // of a slot: where it is expected to be free
    std::optional<std::string> over = {};  // the aborted transaction whose claim is replaced
    bool prepared = false;
    bool maybe_prepared = false;  // a prepare was sent and not answered
};

/// One attempt of one transaction, from the decided plan to the acknowledgement. Lives on its caller's stack.
class Attempt {
  public:
    Attempt(Coordinator& coordinator, const Plan& plan, std::string tx, Time since);
    std::variant<Commit, Conflict> run();

  private:
    // What an attempt may take. Waiting for others ends with the lease; asking a silent store ends with
    // answer_time_max.
    RetryPolicy retry_policy() const {
        return RetryPolicy::waiting(std::max(c_.options_.lease, c_.options_.answer_time_max));
    }
    bool lease_is_over() const { return c_.runtime_.clock.steady_now() >= began_ + c_.options_.lease; }
    bool answers_are_overdue() const { return c_.runtime_.clock.steady_now() >= began_ + c_.options_.answer_time_max; }
    Participant& primary() { return participants_.front(); }

    // attempt.cpp: which way it takes, and how it learns its end
    /// Rows alone have no event slot that could be their primary; a single one needs none.
    bool needs_primary_of_its_own() const;
    /// A primary that others may have read is prepared too before anything is validated, or two transactions that read
    /// each other's primaries would both commit (write skew). Nobody reads one of the transaction's own.
    bool holds_primary() const;
    bool fits_native() const;
    std::vector<store::Key> secondary_keys() const;
    store::Item payload(const Participant& participant) const;
    std::variant<Commit, Conflict> committed(Path path);
    Conflict conflict();
    std::variant<Commit, Conflict> learn_outcome(Path path, const std::string& why);
    /// Nobody says 'aborted' before it is certain: an undecided primary is fenced.
    Verdict learn_verdict();
    [[noreturn]] void throw_in_doubt(const std::string& why);

    // obstacles.cpp: what stands in the way
    /// Whether `current` is of a transaction that has the same id and is another one all the same, which takes two
    /// processes whose random numbers are the same.
    bool has_a_double(const Participant& participant, const store::Item& current) const;
    /// Why a write of `participant` was refused by `current`; clears what may be cleared.
    Obstacle meet(Participant& participant, const std::optional<store::Item>& current);
    Obstacle meet_slot(Participant& participant, const std::optional<store::Item>& current);
    Obstacle meet_row(const Participant& participant, const std::optional<store::Item>& current);
    /// What was read and is not written. Void or absent at any epoch is fine for a stream: it has not moved.
    Obstacle meet_head_read(const HeadRead& read, const std::optional<store::Item>& current);
    Obstacle meet_row_read(const store::Key& key, const std::optional<std::string>& rev,
                           const std::optional<store::Item>& current);
    Obstacle meet_range_read(const RangeRead& read);
    /// Whether it bears another transaction's claim.
    bool is_others(const store::Key& key, const store::Item& item) const;
    /// What is claimed by another and is going to be prepared: the claim of one that has ended is written over, at once,
    /// lest somebody younger takes the place.
    Obstacle make_way(Participant& participant, const store::Item& item, Verdict verdict);
    /// What is claimed by another and only read, or written at once.
    Obstacle meet_claim(const store::Key& key, const store::Item& item);
    Obstacle settled(const store::Key& key, const store::Item& item, Verdict verdict);
    Obstacle moved(const store::Key& key, const char* how);
    /// How a round went in which something was not done.
    struct Round {
        bool somebody_is_alive;  ///< who may not be touched
        bool unanswered;
    };
    /// Whether there shall be another one; waits until it begins.
    bool another_round(Round last);

    // at_once.cpp: one conditional write, or one atomic request
    std::variant<Commit, Conflict> write_at_once(Path path);
    store::AtomicAnswer write_one(const std::vector<store::Write>& writes);
    store::Write final_write(const Participant& participant);
    void add_checks(std::vector<store::Write>& writes) const;
    /// The worst of what refused an atomic request; nullopt: it was applied already.
    std::optional<Obstacle> meet_all(const std::vector<store::RefusedBatch::One>& refused);

    // protocol.cpp: prepare, validate, commit, finalise
    std::variant<Commit, Conflict> run_protocol();
    /// Step 2. All that is not prepared goes out as one batch, until nothing is left or somebody stands in the way.
    /// Every answer of a batch is waited for, also when one is refused.
    bool prepare();
    /// Step 3. Strictly after all prepares and before the commit: what was read and is not written still stands as
    /// read, and nobody has a claim on it.
    bool validate();
    /// Step 4. The write that turns the primary to committed IS the commit.
    std::variant<Commit, Conflict> commit_primary(const Committed& content);
    /// Step 5, after the acknowledgement. Whatever is left undone here, others finish.
    void finalise_in_background();
    store::Write prepare(const Participant& one) const;
    store::Write finalise(const Participant& one) const;
    store::Write undo(const Participant& one) const;
    Intent intent_on(const HeldRow& row) const;
    /// For an attempt that is certain never to commit: its owner, the only one who could, has not asked for it, or
    /// knows that it was refused for ever. Whatever fails here, others do when they meet it.
    void undo_prepared();

    // primary_content.cpp: what the primary says, and what there is room for
    /// Refuses before the first write what the store would refuse at the commit, or with the prepares, after which it
    /// is not known any more that nothing was sent.
    void check_room() const;
    /// Refuses before the commit what could not be finalised after it.
    void check_room(const store::Key& key, const store::Item& payload) const;
    /// What the primary will say: its own events, those of the reserved slots, and where all the others are.
    Committed primary_content();
    /// A list that does not fit goes to slots of the transaction's own, before the commit. They mean nothing without
    /// it.
    void continue_participants(Committed& content);

    Coordinator& c_;
    const Plan& plan_;
    const SteadyTime began_;
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

}  // namespace varve::transactions
