#pragma once

#include <varve/core/executor.h>
#include <varve/core/retry.h>
#include <varve/store/item_store.h>

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace varve::transactions {

/// Puts into place what committed transactions have prepared, after their acknowledgement, and undoes what aborted ones
/// could not. All that waits goes out
/// together: a round trip serves many transactions, so that few threads keep up with many callers, however far away
/// the store is.
///
/// Threads: add() may be called from any thread.
class Finaliser {
  public:
    /// `background` must be drained before this is destroyed.
    Finaliser(store::ItemStore& store, Executor& background, Runtime runtime, Duration answer_time_max)
        : store_(store), background_(background), runtime_(runtime), policy_(RetryPolicy::waiting(answer_time_max)) {}

    /// What is left to do of one transaction.
    struct Work {
        std::string tx;
        std::vector<store::Write> writes;
        std::vector<bool> tells;  ///< of each write: whether `finalised` hears of it
        std::function<void(const store::Key&)> finalised;
        /// Goes out when all writes have been applied, or refused because somebody was faster.
        std::optional<store::Write> done;
    };
    void add(Work work);

  private:
    void run();
    /// From the front, as much as one batch may have; nothing if nothing waits.
    std::vector<Work> take();

    /// Repeats what is not answered, for as long as the store may take.
    std::vector<store::WriteAnswer> write(const std::vector<store::Write>& writes);

    store::ItemStore& store_;
    Executor& background_;
    Runtime runtime_;
    RetryPolicy policy_;
    std::mutex mutex_;
    std::deque<Work> waiting_;  // guarded by mutex_
};

}  // namespace varve::transactions
