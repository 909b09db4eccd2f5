#pragma once

#include <varve/core/executor.h>
#include <varve/core/mutex.h>
#include <varve/core/retry.h>
#include <varve/core/runtime.h>
#include <varve/store/item_store.h>
#include <varve/transactions/options.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace varve::transactions {

/// Puts into place what committed transactions have prepared, after their acknowledgement. All that waits goes out
/// together: a round trip serves many transactions, so that few threads keep up with many callers, however far away
/// the store is.
///
/// Threads: add() may be called from any thread.
class Finaliser {
  public:
    /// `background` must be drained before this is destroyed.
    Finaliser(store::ItemStore& store, Executor& background, Runtime runtime, const Options& options)
        : store_(store),
          background_(background),
          runtime_(runtime),
          policy_(RetryPolicy::waiting(options.answer_time_max)),
          retention_(options.retention) {}

    struct Placed {
        store::Write write;
        bool tells;  ///< `finalised` hears of it
        /// A slot that nobody else may take, or a row that was written: the log is told where it is not there any more.
        bool leaves_something;
    };
    /// What is left to do of one transaction.
    struct Work {
        std::string tx;
        std::vector<Placed> placed;
        std::function<void(const store::Key&)> finalised;
        /// Goes out when all writes have been applied, or refused because somebody was faster.
        std::optional<store::Write> done;
    };
    void add(Work work);

  private:
    void run();
    /// What is not answered goes out again, for as long as the store may take.
    std::vector<store::WriteAnswer> write(const std::vector<store::Write>& writes);
    void report(const std::string& tx, const store::Key& key, const store::WriteAnswer& answer) const;
    /// From the front, as much as one batch may have; nothing if nothing waits.
    std::vector<Work> take();

    store::ItemStore& store_;
    Executor& background_;
    const Runtime runtime_;
    const RetryPolicy policy_;
    const Duration retention_;
    Mutex mutex_;
    std::deque<Work> waiting_ VARVE_GUARDED_BY(mutex_);
};

}  // namespace varve::transactions
