#pragma once

#include "transactions/coordinator.h"
#include "transactions/patience.h"

#include <algorithm>
#include <map>

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
    Epoch epoch = 0;  // of a slot: where it is expected to be free
    bool prepared = false;
    bool maybe_prepared = false;  // a prepare was sent and not answered
};

/// Brings one attempt's plan to its end, from what was decided to the acknowledgement. Lives on its caller's stack.
class Committer {
  public:
    /// When its command began, and until when others are waited for and the store is asked again.
    struct Bounds {
        Time since;
        SteadyTime until;
    };
    Committer(Coordinator& coordinator, const Plan& plan, std::string tx, Bounds bounds);
    std::variant<Conflict, Commit> run();

  private:
    std::variant<Conflict, Commit> run_by_its_way();
    // What an attempt may take. Waiting for others ends with wait_max; asking a silent store ends with
    // answer_time_max; both end at `until`. Only to learn the outcome of what was sent it may take longer: rather late
    // than in doubt.
    RetryPolicy retry_policy() const {
        return RetryPolicy::waiting(std::max(coordinator_.wait_max(), coordinator_.options_.answer_time_max));
    }
    bool is_over(Duration time_max) const {
        const SteadyTime now = coordinator_.runtime_.clock.get().steady_now();
        return now >= until_ || now >= began_ + time_max;
    }
    bool has_waited_enough() const { return is_over(coordinator_.wait_max()); }
    bool answers_are_overdue() const { return is_over(coordinator_.options_.answer_time_max); }
    Participant& primary() { return participants_.front(); }
    const Participant& primary() const { return participants_.front(); }

    // committer.cpp: which way it takes, and how it learns its end
    /// The item that tells what has become of the transaction goes to the front. Rows alone have no event slot for
    /// that: where one request takes them all, one of them tells, else a slot of the transaction's own.
    void choose_primary();
    void take_primary_of_its_own();
    void name_primary();
    bool is_one_write() const { return participants_.size() == 1 && !plan_.validates(); }
    static bool is_there(const Participant& row) { return row.row->seen.rev.has_value(); }
    /// A primary that others may have read is prepared too before anything is validated, or two transactions that read
    /// each other's primaries would both commit (write skew). Nobody reads one of the transaction's own.
    bool holds_primary() const;
    bool fits_native() const;
    std::vector<store::Key> secondary_keys() const;
    store::Item payload(const Participant& participant) const;
    /// Whether somebody may follow what it writes, and sees it only if he is told.
    bool is_announced() const;
    bool has_rung() const { return rung_for_ == primary().epoch; }
    store::Write bell() const;
    /// Sends the write that commits a slot, with the bell beside it.
    store::WriteAnswer write_and_ring(const store::Write& commit);
    /// Rings it, where it was not answered beside the write that has committed. InDoubtError: nobody acknowledges what
    /// others may not see.
    void announce();
    std::variant<Conflict, Commit> committed(Path path);
    Conflict conflict();
    std::variant<Conflict, Commit> learn_outcome(Path path, const std::string& why);
    /// Nobody says 'aborted' before it is certain: an undecided primary is fenced.
    Verdict resolve_own();
    /// As learn_outcome, where there may be no memory even to say that it is in doubt.
    bool has_committed_after_all();
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
    Obstacle meet_claim(const store::Key& key, const store::Item& item);
    /// Whether another transaction has a claim on what is otherwise as the plan was decided on.
    bool is_claimed_as_seen(const Participant& participant, const store::Item& current) const;
    /// Settles together what others have left on these, so that meet_claim need not one by one.
    void settle_ahead(const std::vector<Resolver::Claimed>& found);
    Obstacle moved(const store::Key& key, const char* how);
    /// How a round went in which something was not done.
    struct Round {
        bool somebody_is_alive;  ///< who may not be touched
        bool unanswered;
    };
    /// Whether there shall be another one; waits until it begins.
    bool another_round(Round last);

    // one_request.cpp: one conditional write, or one atomic request
    std::variant<Conflict, Commit> write_in_one_request(Path path);
    store::AtomicAnswer write_all(std::vector<store::Write> writes);
    store::AtomicAnswer write_one(const store::Write& write);
    store::Write final_write(const Participant& participant);
    void add_checks(std::vector<store::Write>& writes) const;
    /// The worst of what refused an atomic request; nullopt: it was applied already.
    std::optional<Obstacle> meet_all(const std::vector<store::RefusedBatch::One>& refused);

    // rows_alone.cpp: rows and nothing else, by one conditional write of one, or one atomic request
    bool primary_is_a_row() const { return !participants_.empty() && primary().row != nullptr; }
    /// Nothing is written upon an absent row that tells the outcome: a tombstone goes there first. False: the row has
    /// moved on, or somebody holds it.
    bool lay_tombstone();
    /// What the row remembers once it is written: those before, as far as anybody may look for them, and this one.
    Writers writers_after(const Image& seen) const;
    /// Whether this transaction has written it, whoever has done so since.
    bool is_written(const Row& row) const;
    /// Whether it has committed, of an attempt that was sent and gives up: moves the base of the row that tells on, or
    /// learns that it was written.
    bool ask_row();
    /// InDoubtError if it is so long ago that the row may have forgotten this attempt.
    void check_that_rows_remember();

    // protocol.cpp: prepare, validate, commit, finalise
    std::variant<Conflict, Commit> run_protocol();
    /// Step 2. All that is not prepared goes out as one batch, until nothing is left or somebody stands in the way.
    /// Every answer of a batch is waited for, also when one is refused.
    bool prepare();
    /// Step 3. Strictly after all prepares and before the commit: what was read and is not written still stands as
    /// read, and nobody has a claim on it.
    bool validate();
    /// Step 4. The write that turns the primary to committed IS the commit.
    std::variant<Conflict, Commit> commit_primary(const Committed& content);
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

    Coordinator& coordinator_;
    const Plan& plan_;
    const SteadyTime began_;
    const SteadyTime until_;
    Backoff backoff_;
    Patience patience_;
    Claim claim_;
    std::map<store::Key, Verdict> settled_ahead_;  // and not met since
    std::vector<Participant> participants_;   // the primary first, then the other slots in key order, then the rows
    std::optional<RowWrite> upon_tombstone_;  // what becomes of the primary, a row that was absent
    bool has_primary_of_its_own_ = false;
    bool claims_were_sent_ = false;    // others may know the primary and its epoch
    bool prepare_unanswered_ = false;  // a prepare may still arrive
    std::optional<Epoch> rung_for_;    // its bell stands, or has done its work, as long as the primary has this epoch
    std::optional<Path> asked_by_;     // a request was sent that would commit it by this way
    bool waited_in_vain_ = false;
    std::string met_;
    std::optional<store::Key> met_at_;
};

}  // namespace varve::transactions
