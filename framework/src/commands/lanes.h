#pragma once

#include "commands/command_runner.h"

#include <varve/commands/lane_metrics.h>
#include <varve/commands/options.h>
#include <varve/core/executor.h>

#include <future>
#include <memory>
#include <mutex>
#include <string>

namespace varve::detail {

/// The queues in front of aggregates. A lane is there only as long as commands are in it, so that aggregates at rest
/// cost nothing. It has no thread: whoever comes first leads it, decides for all that wait there, and hands over to the
/// next. What nobody waits for is led by the executor.
///
/// Threads: all methods may be called from any thread.
class Lanes {
  public:
    /// `executor` nullptr: threads of its own, as soon as they are needed. ConfigError for options that cannot work.
    Lanes(CommandRunner& runner, Runtime runtime, Executor* executor, LaneOptions options);
    /// What is still queued because its executor has not run it fails with UnavailableError.
    ~Lanes();

    /// Returns when the command has ended. OverloadedError if the lane is full.
    Outcome execute(CommandMetrics::OfAggregate& metrics, const std::string& stream,
                    const std::function<void(Transaction&)>& body, const CommandOptions& options,
                    std::string fingerprint);
    std::future<Outcome> submit(CommandMetrics::OfAggregate& metrics, const std::string& stream,
                                std::function<void(Transaction&)> body, CommandOptions options,
                                std::string fingerprint);
    /// Returns when everything submitted before this call has ended. For the destructor of whoever owns the lanes:
    /// nothing may be submitted meanwhile.
    void drain();

    const LaneMetrics& metrics() const { return metrics_; }

  private:
    struct Entry;
    struct Submitted;
    struct Lane;
    struct Directory;

    /// True: the caller now leads the lane.
    bool enqueue(const std::string& stream, Entry& entry);
    /// Until it leads, or whoever led has ended it.
    void await_turn(const Entry& mine);
    /// Until `mine` has ended; nullptr: for one batch.
    void lead(const std::string& stream, const Entry* mine);
    static void finish(Entry& entry, bool is_mine);
    /// Has the executor lead the lane. False if there was no memory for the task: then whoever asked does it.
    bool post(const std::string& stream);
    /// For whoever comes because a lane was `scheduled`. True: the caller now leads it.
    bool takes_over(const std::string& stream);
    Executor& executor();

    CommandRunner& runner_;
    const Runtime runtime_;
    const LaneOptions options_;
    LaneMetrics metrics_;
    std::unique_ptr<Directory> lanes_;
    Executor* const injected_;
    std::once_flag made_;
    std::unique_ptr<Executor> own_;  // last: its threads use all the others
};

}  // namespace varve::detail
