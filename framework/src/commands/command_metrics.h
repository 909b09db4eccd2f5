#pragma once

#include <varve/commands/outcome.h>
#include <varve/core/error.h>
#include <varve/telemetry/metric.h>

#include <array>
#include <atomic>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace varve::detail {

/// What an application counts of its commands.
///
/// Threads: all methods may be called from any thread.
class CommandMetrics {
  public:
    /// Of the commands on one kind of aggregate.
    class OfAggregate {
      public:
        /// One has ended, with one of the two. `took`: from when it was begun on; the wait in a lane is no part of it.
        void ended(const std::optional<Outcome>& outcome, const std::exception_ptr& failure, Duration took) noexcept;
        /// The label: a name of aggregates, "*" for any, "others", "$own" for the framework's own transactions.
        const std::string& aggregate() const { return aggregate_; }
        /// One was not begun, because its lane is full.
        void refused() noexcept { count(End::overloaded); }

      private:
        friend class CommandMetrics;
        enum class End { committed, repeated, rejected, conflict, in_doubt, unavailable, overloaded, failed };
        static constexpr std::size_t ends = 8;
        static const char* to_string(End end) noexcept;
        static End end_of(const std::exception_ptr& failure) noexcept;
        void count(End end) noexcept;

        std::string aggregate_;
        std::array<telemetry::Counter, ends> ended_{};
        std::array<telemetry::Counter, rungs> committed_by_{};  // by Rung
        telemetry::Histogram duration_;
    };

    CommandMetrics();
    ~CommandMetrics();
    CommandMetrics(const CommandMetrics&) = delete;
    CommandMetrics& operator=(const CommandMetrics&) = delete;

    /// Beyond 60 kinds of aggregates, and where there is no memory, they are counted together.
    OfAggregate& of(std::string_view aggregate) noexcept;
    /// Of users' bodies, which may touch any.
    OfAggregate& of_transactions() noexcept { return transactions_; }
    /// Of the framework's own.
    OfAggregate& of_own() noexcept { return own_; }

    telemetry::Histogram decide;     ///< of attempts that came to commit: until they did, waits for others included
    telemetry::Histogram commit;     ///< of these: until that was over, however it ended
    telemetry::Histogram lane_wait;  ///< each wait in a lane, or for room in one

    std::vector<telemetry::Metric> metrics() const;

  private:
    static constexpr std::size_t aggregates_max = 60;
    std::array<std::atomic<OfAggregate*>, aggregates_max> by_aggregate_{};  // those that are there come first
    OfAggregate others_;
    OfAggregate transactions_;
    OfAggregate own_;
};

}  // namespace varve::detail
