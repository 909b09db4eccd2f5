#pragma once

#include "commands/advance.h"
#include "commands/checkpoint.h"
#include "commands/consumer.h"
#include "commands/deliverer.h"
#include "commands/rate.h"
#include "commands/timers.h"
#include "core/background_loop.h"

#include <varve/commands/follower_status.h>
#include <varve/commands/outcome.h>
#include <varve/commands/parked_stream.h>
#include <varve/core/mutex.h>
#include <varve/locks/locks.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace varve {
class Application;
}

namespace varve::detail {

/// Takes all events there ever were, and then each one that is committed, on a thread of its own. Of all processes that
/// have a follower of this name, one at a time does so: whoever holds its lock. The others wait for that.
///
/// A batch's effects and the checkpoint are one transaction, which is refused where the checkpoint is not where this
/// owner has left it. So each event takes effect exactly once, also if a lock changes hands too early; what a
/// subscription does outside of the store, it may do again.
///
/// Threads: all methods may be called from any thread; end() and the destructor not from its own.
class Follower {
  public:
    /// `idle`: counts those that have nothing to do. ConfigError for an option that cannot work, or a store that cannot
    /// be followed.
    Follower(Application& application, std::atomic<int>& idle, Consumer consumer);
    ~Follower() { end(); }
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;

    /// Takes turns on a thread of its own from now on. Once.
    void start();
    /// For whoever has not started it: takes what there is, if this process has it now, and returns how long to wait
    /// before the next turn; nullopt: it has stopped. Throws what may pass. Ends early, and soon, when stop is
    /// requested.
    std::optional<Duration> turn(const std::stop_token& stop);

    /// Finishes the batch that it is at, and lets go of its lock. Its handler is not called any more, whoever takes up
    /// what was aside. Harmless when repeated, but not for two at once.
    void end();
    /// That it will soon be ended: so several finish at the same time.
    void stop_soon() noexcept { loop_.request_stop(); }

    const Consumer& consumer() const { return consumer_; }
    const std::string& name() const { return consumer_.name; }
    /// Something has been committed.
    void wake() noexcept;
    /// Whether this process has it.
    bool is_here() const;
    /// Whether another one may have it: it has not stopped here.
    bool is_elsewhere() const;
    static constexpr Duration queue_time_max = std::chrono::seconds{2};
    /// Waits for its lock in the queue for so long, once, so that whoever has it may see that.
    void queue_up() { queues_up_ = true; }
    /// Lets go of it after the batch that it is at, if this process has it, and asks for it again a while later.
    void give_way() { gives_way_ = true; }
    std::string lock_name() const { return "$follower-" + consumer_.name; }
    /// Asks the store where this process does not have it.
    FollowerStatus status() const;
    /// Whether everything up to `end` has taken effect; waits until it has, it has stopped, or the time is over.
    /// InvalidError from its own handler.
    bool wait(store::Position end, SteadyTime until) const;
    /// Whether it has set one of these streams aside; of an empty receipt: any.
    bool has_parked(const Receipt& receipt) const;
    std::vector<ParkedStream> parked() const;
    /// How many of them it has again. Not from its own handler (check_is_outside).
    std::size_t retry_parked();
    /// Of effects: gives up the one of this id, at which its stream is aside, and takes up the rest. False: there is
    /// none. As retry_parked.
    bool drop_parked(std::string_view id);
    /// InvalidError from its own handler.
    void check_is_outside(const char* what) const;
    /// Whether this is its own thread, or one in which its handler is called.
    bool runs_this_thread() const {
        const std::thread::id here = std::this_thread::get_id();
        return thread_.load() == here || handles_.load() == here;
    }

  private:
    using State = FollowerStatus::State;
    using Streams = std::set<std::string, std::less<>>;

    std::optional<Duration> follow(const std::stop_token& stop);
    /// Fires the timers that were due when it had seen all events. Returns how long to wait then.
    Duration pause_until_timers(Time seen, const std::function<bool()>& goes_on);
    /// Whether this process has it now.
    bool own(const std::stop_token& stop);
    /// It has not been there before.
    void begin(store::Position end);
    std::optional<Checkpoint> stored() const;
    void take(feed::Batch& batch);
    /// Calls the handler. False: it has ended.
    bool hand_over(std::span<const RecordedEvent> events);
    /// Runs `work` as a handler's, unless this has ended: then false.
    bool run_handler(const std::function<void()>& work);
    /// Runs what the batch causes, as far as it fits into one transaction, and keeps the rest. If somebody else has
    /// changed the checkpoint, it does nothing, goes on from there, and returns false.
    bool commit(feed::Batch& batch, const std::vector<Aside>& aside = {});
    /// Goes on from there. What is set aside is read before, so that it is never older.
    void be_at(Checkpoint checkpoint);
    /// As be_at, and reads only what is not known: this stream was taken up.
    void be_at_after_retry(const std::string& stream, Checkpoint checkpoint);
    /// By stream.
    std::map<std::string, ParkedRow> read_parked(const Checkpoint& checkpoint) const;
    /// Sets the stream of the batch's only slot aside. False: there is no room for one more.
    bool park(const feed::Batch& batch, const std::string& error);
    /// Of what it cares about, up to `end`.
    bool has_nothing_left(store::Position after, store::Position end) const;

    // Effects (follower_effects.cpp).
    using GoesOn = std::function<bool()>;
    struct Retry {
        SteadyTime due;
        std::uint64_t answers = 0;   ///< of the receiver, when it failed last
        std::uint64_t failures = 0;  ///< of the first effect that is aside
    };
    struct Retried {
        bool is_live = false;                            ///< the follower has it again
        std::optional<Deliverer::Failure> failure = {};  ///< if it has failed once more
    };
    /// Tries what is aside again, as far as it is due. Returns how long to wait with the others.
    Duration prepare_to_deliver(const GoesOn& goes_on);
    /// Delivers as far as it can now.
    void deliver(feed::Batch& batch, const GoesOn& goes_on);
    /// Appends first effects of other streams than these, which are further on: each time of others.
    void look_behind(feed::Batch& batch, const GoesOn& goes_on);
    void look_anew() noexcept;
    /// If not: waits longer each time, and says so at the first one.
    void hold(bool has_room);
    void tell_of(const Aside& aside) const;
    Retry retry_of(const ParkedRow& row, std::uint64_t failures, Duration at_least) const;
    void retry_effects(const GoesOn& goes_on);
    /// Whether it has failed once more.
    bool retry_effect(const std::string& stream, const GoesOn& goes_on);
    /// Takes a stream up again, if its row is still this one. `counts`: if its first effect fails once more, that is
    /// one attempt.
    Retried retry_aside(const std::string& stream, const ParkedRow& row, bool counts, const GoesOn& goes_on);
    /// Because somebody asks for it.
    bool retry_aside_now(const std::string& stream);

    /// For ever, in this process.
    void give_up(const std::string& why);
    /// Stores why, for other processes to see.
    void note(const std::string& error);
    /// What happened while `batch` was taken: passes on what is the world's fault, and makes sure of the rest.
    void failed(const feed::Batch& batch);
    void reached(store::Position position, State state);
    void set(State state);
    void be_idle(bool idle) noexcept;

    Application& application_;
    std::atomic<int>& idle_count_;
    const Consumer consumer_;
    const feed::Feed feed_;

    // Its thread's own.
    std::optional<DueTimers> timers_;
    std::optional<Lock> lock_;
    bool began_ = false;                    // where there is no lock
    Checkpoint checkpoint_;                 // as this owner has left it
    Streams parked_;                        // as of the checkpoint
    store::Position seen_ = 0;              // ahead of the checkpoint by what it has no use for
    store::Position one_by_one_until_ = 0;  // something there has failed
    feed::Batch rest_;                      // of what was read: it did not fit into one transaction
    std::vector<store::Key> rows_;          // that the last transaction has read, in order
    std::vector<store::Key> likely_;        // rows that the last two have read: the next one will, most likely
    struct Delivering {
        std::map<std::string, store::Position> delivered;  ///< ids of effects beyond the checkpoint
        bool waits = false;                                ///< the last pass ended since nobody answers
        store::Position behind = 0;                        ///< so far it has looked for other streams meanwhile
        Streams passed_by;                                 ///< that it has met on the way there
        std::map<std::string, Retry> retries;              ///< of the streams that are aside
        std::uint64_t silent_rounds = 0;                   ///< of retries, in a row
        SteadyTime next_round = {};
        std::uint64_t without_room = 0;  ///< passes in a row that had to set more streams aside than they may
        SteadyTime held_until = {};
    };
    Delivering delivering_;

    Mutex handling_;  // a handler is called by one at a time
    bool has_ended_ VARVE_GUARDED_BY(handling_) = false;
    std::atomic<std::thread::id> handles_{};  // by whom
    std::atomic<std::thread::id> thread_{};
    std::atomic<bool> idle_ = false;
    std::atomic<bool> queues_up_ = false;
    std::atomic<bool> gives_way_ = false;
    mutable Mutex mutex_;
    State state_ VARVE_GUARDED_BY(mutex_) = State::elsewhere;
    store::Position reached_ VARVE_GUARDED_BY(mutex_) = 0;
    std::int64_t events_ VARVE_GUARDED_BY(mutex_) = 0;
    std::int64_t parked_count_ VARVE_GUARDED_BY(mutex_) = 0;
    std::optional<Time> last_ VARVE_GUARDED_BY(mutex_);  // Checkpoint::last
    mutable Rate rate_ VARVE_GUARDED_BY(mutex_);         // of events
    std::string error_ VARVE_GUARDED_BY(mutex_);
    mutable std::vector<std::stop_source> waiting_ VARVE_GUARDED_BY(mutex_);
    BackgroundLoop loop_;  // last: it uses all the others
};

}  // namespace varve::detail
