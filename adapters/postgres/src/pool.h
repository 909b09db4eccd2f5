#pragma once

#include "connection.h"

#include <varve/core/mutex.h>

#include <condition_variable>
#include <memory>
#include <vector>

namespace varve::postgres {

/// Connections that are made when they are needed, kept, and used by one caller each.
///
/// Threads: any.
class Pool {
  public:
    /// `options` must outlive it.
    Pool(const Options& options, std::size_t connections_max) : options_(options), connections_max_(connections_max) {
        idle_.reserve(connections_max);
    }

    /// A connection for one caller, given back at the end of the scope unless it has failed.
    class Lease {
      public:
        /// Waits up to `lock_timeout` for one. Throws Error of kind busy, and what connecting throws.
        explicit Lease(Pool& pool);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        Connection* operator->() { return connection_.get(); }
        Connection& operator*() { return *connection_; }

      private:
        Pool& pool_;
        std::unique_ptr<Connection> connection_;
    };

  private:
    std::unique_ptr<Connection> take();
    void give_back(std::unique_ptr<Connection> connection) noexcept;

    const Options& options_;
    const std::size_t connections_max_;

    Mutex mutex_;
    std::condition_variable given_back_;
    std::vector<std::unique_ptr<Connection>> idle_ VARVE_GUARDED_BY(mutex_);
    std::size_t leased_ VARVE_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::postgres
