#pragma once

#include <varve/core/clock.h>

#include <optional>

struct sqlite3_vfs;

namespace varve::sqlite {

/// How long one call into SQLite waits, whatever it waits for: locks, for which it asks a busy handler, and a log's
/// index that is half written, for which it sleeps by itself, 10 s in all, and can be told by no setting to do
/// otherwise. So connections go through a copy of the system's VFS, whose sleeps end when the call's time is over.
///
///     Waiting waiting{5s};
///     const Waiting::Call call{waiting};
///     sqlite3_step(...)                           // SQLite's own sleeps end after 5 s; the busy handler says:
///     return waiting.sleep(some_time) ? 1 : 0;
///
/// Threads: one at a time.
class Waiting {
  public:
    explicit Waiting(Duration time_max) : time_max_(time_max) {}

    /// While it lives, what this thread does in SQLite is one call.
    class Call {
      public:
        /// `spent`: how much of its time is over already.
        explicit Call(Waiting& waiting, Duration spent = {});
        ~Call();
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

      private:
        Waiting* const outer_;
    };

    /// Sleeps for `time`, or for what is left if that is less. False: nothing is left of the call's time.
    bool sleep(Duration time) { return sleep(time, call_max_); }

    /// The name of the VFS to open connections with.
    static const char* vfs();

  private:
    static int sleep_of_sqlite(sqlite3_vfs*, int us);
    bool sleep(Duration time, Duration time_max);

    const Duration time_max_;
    Duration call_max_{};
    std::optional<SteadyTime> since_;  // the call's first wait
};

}  // namespace varve::sqlite
