#pragma once

#include "core/background_loop.h"
#include "locks/stored_lock.h"

#include <varve/core/mutex.h>
#include <varve/core/own_process.h>
#include <varve/locks/locks.h>
#include <varve/locks/metrics.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace varve::locks {

class Expiry;
class Held;

/// What stands behind a `Locks`, which says what its methods do.
class LockService {
  public:
    LockService(std::shared_ptr<store::ItemStore> store, const LocksOptions& options, Runtime runtime);
    ~LockService();

    std::optional<Lock> try_acquire(std::string_view name, const AcquireOptions& options);
    std::optional<std::vector<Lock>> try_acquire_all(std::vector<std::string> names, const AcquireOptions& options);
    Locks::State inspect(std::string_view name);
    bool evict(std::string_view name, Ticket ticket);
    bool collect_page();
    Duration beat();
    void let_go(Held& held) noexcept;

    store::ItemStore& store() const { return *store_; }
    const LocksOptions& options() const { return options_; }
    Runtime runtime() const { return runtime_; }
    Expiry& expiry() { return *expiry_; }
    Metrics& metrics() { return metrics_; }

    struct Entered {
        Holder holder;
        SteadyTime until;  ///< when its time to live is over, counted from before it was entered
    };

  private:
    void ensure_table();
    Lock hold(const std::string& name, Entered entered, const AcquireOptions& options);
    void keep_up_heartbeats() VARVE_REQUIRES(mutex_);

    const std::shared_ptr<store::ItemStore> store_;
    const LocksOptions options_;
    const Runtime runtime_;
    const std::unique_ptr<Expiry> expiry_;
    std::optional<std::string> collected_;  // as far as collect_page has come
    Metrics metrics_;
    Mutex mutex_;
    std::atomic<bool> table_ensured_ = false;
    std::vector<std::shared_ptr<Held>> held_ VARVE_GUARDED_BY(mutex_);
    OwnProcess process_;
    bool heartbeats_idle_ VARVE_GUARDED_BY(mutex_) = false;
    BackgroundLoop heartbeats_ VARVE_GUARDED_BY(mutex_);  // last: it uses all the others
};

}  // namespace varve::locks
