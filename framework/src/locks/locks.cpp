#include "locks/lock_service.h"

#include <varve/core/error.h>
#include <varve/locks/locks.h>

namespace varve {

using locks::LockService;

Locks::Locks(std::shared_ptr<store::ItemStore> store, const LocksOptions& options, Runtime runtime)
    : service_(std::make_unique<LockService>(std::move(store), options, runtime)) {}

Locks::~Locks() = default;

Lock Locks::acquire(std::string_view name, const AcquireOptions& options) {
    if (std::optional<Lock> lock = try_acquire(name, options)) return std::move(*lock);
    throw Error({ErrorKind::busy, false,
                 "the wait for the lock '" + std::string{name} +
                     "' was over before its turn came; wait longer, or see with Locks::inspect who holds it"});
}

std::optional<Lock> Locks::try_acquire(std::string_view name, const AcquireOptions& options) {
    return service_->try_acquire(name, options);
}

std::vector<Lock> Locks::acquire_all(std::vector<std::string> names, const AcquireOptions& options) {
    const std::size_t count = names.size();
    if (auto locks = try_acquire_all(std::move(names), options)) return std::move(*locks);
    throw Error({ErrorKind::busy, false,
                 "the wait for " + std::to_string(count) +
                     " locks was over before all were held; wait longer, or see with Locks::inspect who holds them"});
}

std::optional<std::vector<Lock>> Locks::try_acquire_all(std::vector<std::string> names, const AcquireOptions& options) {
    return service_->try_acquire_all(std::move(names), options);
}

Locks::State Locks::inspect(std::string_view name) {
    return service_->inspect(name);
}

bool Locks::evict(std::string_view name, locks::Ticket ticket) {
    return service_->evict(name, ticket);
}

bool Locks::collect_page() {
    return service_->collect_page();
}

Duration Locks::beat() {
    return service_->beat();
}

const locks::Metrics& Locks::metrics() const {
    return service_->metrics();
}

}  // namespace varve
