#pragma once

#include <varve/core/mutex.h>
#include <varve/core/runtime.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace varve::detail {

/// The lines in front of what commands write, aggregates and rows, inside one process: of those who stand in one line
/// one goes at a time. Without them, of many commands on the same few aggregates each round of attempts lets one
/// through and costs all the others theirs.
///
/// A command stands in all its lines at once, and goes when nobody goes in any of them. When one ends, the oldest
/// behind it that can go does. Who still waits for something else keeps nobody back, or a long line would soon stop all
/// others; except for one, the oldest of all who wait: so everybody's turn comes, however many lines he stands in. Who
/// goes and turns out to need more waits for that too, and does not go meanwhile. So nobody who goes waits, and nobody
/// waits in a circle.
///
/// They give order, and nothing rests on them: other processes do not stand in them, and whoever has gone for
/// `patience` without an end keeps nobody back any more. How long a line is, and for how long one has waited, does not
/// count.
///
/// Threads: all methods may be called from any thread.
class Lines {
  public:
    class Places;

  private:
    using ByArrival = std::map<std::uint64_t, Places*>;
    struct Line {
        ByArrival waiting = {};
        ByArrival going = {};

        // Take no memory.
        void go(std::uint64_t arrival) { going.insert(waiting.extract(arrival)); }
        void stop(std::uint64_t arrival) { waiting.insert(going.extract(arrival)); }
        void leave(std::uint64_t arrival) {
            waiting.erase(arrival);
            going.erase(arrival);
        }
        bool is_empty() const { return waiting.empty() && going.empty(); }
    };
    using ByName = std::map<std::string, Line>;

  public:
    Lines(Runtime runtime, Duration patience) : runtime_(runtime), patience_(patience) {}

    /// Where one command stands. Leaves all lines when it is destroyed.
    ///
    /// Threads: belongs to one.
    class Places {
      public:
        explicit Places(Lines& lines) : lines_(lines) {}
        ~Places() { leave(); }
        Places(const Places&) = delete;
        Places& operator=(const Places&) = delete;

        /// Takes places in the lines `names`, keeping those it has, and returns when it may go. True if it had to wait:
        /// what was decided until now may be out of date. At `until` it leaves all lines and throws BlockedError that
        /// names one that it waited in.
        bool enter(const std::set<std::string>& names, SteadyTime until);
        void leave() noexcept;
        /// For how long it has waited in lines so far.
        Duration waited() const { return waited_; }

      private:
        friend class Lines;

        [[noreturn]] void give_up();

        Lines& lines_;
        Duration waited_{};
        // Guarded by lines_.mutex_:
        std::uint64_t arrival_ = 0;  // who came later has a larger one; 0: has not come
        std::vector<ByName::iterator> in_{};
        std::atomic<bool> goes_{false};  // read without it
        SteadyTime went_{};
        std::stop_source wake_{std::nostopstate};
    };

    /// Nobody stands in any line.
    bool are_empty() const { return standing_.load(std::memory_order_relaxed) == 0; }

  private:
    void come(Places& one) VARVE_REQUIRES(mutex_);
    bool stands_in(const Places& one, const std::string& name) const VARVE_REQUIRES(mutex_);
    void take_place(Places& one, const std::string& name) VARVE_REQUIRES(mutex_);
    /// Of one that waits: the name of a line that keeps it back, nullptr: it may go.
    const std::string* kept_back_in(const Places& one, SteadyTime now) const VARVE_REQUIRES(mutex_);
    /// Somebody goes in it who keeps others back.
    bool is_taken(const Line& line, SteadyTime now) const VARVE_REQUIRES(mutex_);
    void go(Places& one, SteadyTime now) noexcept VARVE_REQUIRES(mutex_);
    /// Lets the oldest go that may of those who wait in `line`.
    void let_one_go(Line& line, SteadyTime now) noexcept VARVE_REQUIRES(mutex_);

    const Runtime runtime_;
    const Duration patience_;
    std::atomic<std::size_t> standing_{0};

    Mutex mutex_;
    Line all_ VARVE_GUARDED_BY(mutex_);
    ByName by_name_ VARVE_GUARDED_BY(mutex_);
    std::uint64_t arrivals_ VARVE_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::detail
