#include "commands/sharing.h"

#include "locks/stored_lock.h"

#include <algorithm>

namespace varve::detail {

namespace {

constexpr Duration look_after = std::chrono::seconds{1};
constexpr Duration queue_after = std::chrono::seconds{10};  // where there are more processes than partitions

}  // namespace

void Sharing::step(const std::vector<std::shared_ptr<Follower>>& partitions) {
    if (partitions.size() < 2) return;
    Clock& clock = application_.runtime().clock;
    if (clock.steady_now() < looks_at_) return;
    looks_at_ = clock.until(look_after);
    std::vector<std::shared_ptr<Follower>> here;
    std::vector<std::shared_ptr<Follower>> elsewhere;
    for (const std::shared_ptr<Follower>& one : partitions) {
        if (one->is_here()) here.push_back(one);
        if (one->is_elsewhere()) elsewhere.push_back(one);
    }
    if (here.empty()) {
        queue_for_one_of(elsewhere);
    } else if (here.size() > 1) {
        let_go_of_half_of(std::move(here));
    }
}

void Sharing::queue_for_one_of(const std::vector<std::shared_ptr<Follower>>& partitions) {
    Clock& clock = application_.runtime().clock;
    if (partitions.empty() || clock.steady_now() < queues_at_) return;
    queues_at_ = clock.until(queue_after);
    partitions[queued_for_++ % partitions.size()]->queue_up();
}

void Sharing::let_go_of_half_of(std::vector<std::shared_ptr<Follower>> partitions) {
    const auto is_waited_for = [this](const auto& one) { return this->is_waited_for(*one); };
    if (std::stable_partition(partitions.begin(), partitions.end(), is_waited_for) == partitions.begin()) return;
    partitions.resize(partitions.size() / 2);
    for (const std::shared_ptr<Follower>& one : partitions) one->give_way();
}

bool Sharing::is_waited_for(const Follower& partition) {
    const std::string name = partition.lock_name();
    const Locks::State lock = application_.locks().inspect(name);
    const SteadyTime now = application_.runtime().clock.get().steady_now();
    return std::ranges::any_of(lock.queue, [&](const Locks::State::Waiting& one) {
        const store::Key place = locks::queue_key(name, one.ticket);
        return one.ticket != lock.holder.ticket &&
               now - sightings_.since(place, one.row.owner, now) < 2 * Follower::queue_time_max;
    });
}

}  // namespace varve::detail
