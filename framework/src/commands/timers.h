#pragma once

#include <varve/commands/application.h>
#include <varve/core/clock.h>
#include <varve/events/event.h>
#include <varve/store/item.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// Timers: what is to be done at a time. Each is one row in a bucket, which holds those of one consumer that are due in
// one minute; a list says which buckets there are. So to find what is due costs what is due, however many wait.
//
//  T1 Who sets a timer reads that its bucket is in the list, or adds it; who takes a bucket from the list reads that
//     nothing is in it: both in the transaction that does so. So no timer is in a bucket that nobody looks at.
//  T2 What a timer does, and that it is gone, are one transaction, under a command id of its own.
//  T3 That transaction does nothing before its time; and its owner fires nothing before it has taken the events up to
//     that time, which may cancel it.

namespace varve::detail {

struct Consumer;

/// A timer, under its bucket and its due time.
struct TimerRow {
    static constexpr std::string_view table = "timers";
    static constexpr bool sorted = true;
    Time due;
    std::string instance;  ///< the id of whom it is for
    std::string type;
    int schema = 1;
    std::string data;
    std::string correlation;
    std::string causation;  ///< the id of the command that has set it
    std::map<std::string, std::string> headers;
};

/// A bucket that may have timers, under its consumer and its minute.
struct TimerBucket {
    static constexpr std::string_view table = "timers.buckets";
    static constexpr bool sorted = true;
    Time first;  ///< no timer in it is due before
};

/// A timer that has failed for good, under its consumer and as it was in its bucket.
struct TimerAside {
    static constexpr std::string_view table = "timers.aside";
    static constexpr bool sorted = true;
    TimerRow timer;
    std::string error;
    Time since;
};

/// Where a timer is. Its id: "<consumer>/<due>/<unique>".
struct TimerPlace {
    std::string consumer;
    std::string due_and_unique;

    std::string id() const { return consumer + "/" + due_and_unique; }
    RowKey row() const;
    RowKey bucket() const;
    RowKey aside() const { return {consumer, due_and_unique}; }
    /// nullopt: that is no timer's id.
    static std::optional<TimerPlace> of(std::string_view id);
};

/// Sets a timer of this consumer for one of its instances, in the transaction, and returns its id. InvalidError for a
/// time that is none.
std::string set_timer(Transaction& tx, const std::string& consumer, Time due, const std::string& instance,
                      EventData timer);
/// Takes it away, also from those that have failed. False: it is not there any more. `follower`: whose timer it is, in
/// whichever of its partitions; InvalidError for what is no id of one.
bool cancel_timer(Transaction& tx, std::string_view follower, std::string_view id);

/// A timer that has failed, and the follower with it.
struct TimerFailed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Fires the timers of one consumer when they are due.
///
/// Threads: belongs to one.
class DueTimers {
  public:
    /// Both must outlive it.
    DueTimers(Application& application, const Consumer& consumer) : application_(application), consumer_(consumer) {}

    /// Fires what was due at `up_to`, or is now, if that is before it; as long as it goes on. Returns how long to wait
    /// until it is asked again. Errors: those of the store; TimerFailed if the consumer is to stop at what fails for
    /// good.
    Duration fire(Time up_to, const std::function<bool()>& goes_on);
    /// Rows that a transaction of this consumer has touched: there may be timers among them.
    void look_for(const std::vector<store::Key>& rows);
    /// Somebody else had the consumer meanwhile.
    void look_anew() { look_at_ = {}; }

  private:
    void fire_bucket(const std::string& minute, Time up_to, const std::function<bool()>& goes_on);
    void fire_one(const TimerPlace& place);
    void failed(const TimerPlace& place);
    void close(const std::string& minute);

    Application& application_;
    const Consumer& consumer_;
    SteadyTime look_at_{};      // at the store, whatever is known
    std::optional<Time> next_;  // the first one that is known to wait
};

/// Whether any may wait for this consumer.
bool has_timers(Application& application, const std::string& consumer);
/// Those of one consumer that have failed, by their ids.
std::map<std::string, TimerAside> timers_aside(Application& application, const std::string& consumer);
/// Fires these once more, in this thread, if they are due by its clock. How many are no longer aside.
std::size_t retry_timers(Application& application, const Consumer& consumer);
/// Gives one of these up. As cancel_timer.
bool drop_timer(Application& application, std::string_view follower, std::string_view id);

}  // namespace varve::detail
