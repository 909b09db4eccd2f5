#include "pool.h"

#include <utility>

namespace varve::postgres {

Pool::Lease::Lease(Pool& pool) : pool_(pool), connection_(pool.take()) {
    // One that has failed meanwhile is closed, and so are those that have waited for as long.
    while (connection_ && !connection_->is_usable()) {
        pool_.give_back(std::move(connection_));
        connection_ = pool_.take();
    }
    if (connection_) return;
    try {
        connection_ = std::make_unique<Connection>(pool_.options_);
    } catch (...) {
        pool_.give_back(nullptr);
        throw;
    }
}

Pool::Lease::~Lease() {
    pool_.give_back(std::move(connection_));
}

/// An idle connection, or nullptr: the right to make one.
std::unique_ptr<Connection> Pool::take() {
    const SteadyTime until = Clock::system().until(options_.lock_timeout);
    MutexLock lock{mutex_};
    while (leased_ == connections_max_) {
        if (lock.wait_until(given_back_, until) || leased_ < connections_max_) continue;
        raise({.kind = ErrorKind::busy,
               .in_doubt = false,
               .message = "all " + std::to_string(connections_max_) +
                          " connections of the store were in use for longer than lock_timeout_ms; ask less at once, or "
                          "raise connections in the URL"});
    }
    ++leased_;
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Connection> connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
}

void Pool::give_back(std::unique_ptr<Connection> connection) noexcept {
    const bool usable = connection && connection->is_usable();
    {
        const MutexLock lock{mutex_};
        --leased_;
        if (usable) idle_.push_back(std::move(connection));  // there is room for all
    }
    given_back_.notify_one();
}

}  // namespace varve::postgres
