#include "commit_queue.h"

namespace varve::sqlite {

/// Where a caller waits. It outlives the call, because whoever wakes a caller touches the slot after the caller may
/// have gone.
struct Slot {
    enum State : int { waiting, leading, done };

    std::atomic<int> state = waiting;
    CommitQueue::Request* request = nullptr;

    void set(State value) {
        state.store(value, std::memory_order_release);
        state.notify_one();
    }
    int wait() {
        int value = state.load(std::memory_order_acquire);
        while (value == waiting) {
            state.wait(waiting, std::memory_order_acquire);
            value = state.load(std::memory_order_acquire);
        }
        return value;
    }
};

namespace {

constexpr std::size_t group_cost_max = 1000;

}  // namespace

CommitQueue::Request* CommitQueue::Group::next() {
    return cost_ >= group_cost_max ? nullptr : next_of_all();
}

CommitQueue::Request* CommitQueue::Group::next_of_all() {
    const std::lock_guard lock{queue_.mutex_};
    if (queue_.waiting_.empty()) return nullptr;
    Slot* const slot = queue_.waiting_.front();
    members_.push_back(slot);
    queue_.waiting_.pop_front();
    cost_ += slot->request->cost;
    return slot->request;
}

CommitQueue::CommitQueue(std::function<void(Group&)> commit, std::function<void()> tidy)
    : commit_(std::move(commit)), tidy_(std::move(tidy)) {}

CommitQueue::~CommitQueue() = default;

void CommitQueue::run(Request& request) {
    Slot* slot = nullptr;
    bool leads = false;
    {
        const std::lock_guard lock{mutex_};
        if (free_slots_.empty()) {
            slots_.push_back(std::make_unique<Slot>());
            free_slots_.reserve(slots_.size());
            free_slots_.push_back(slots_.back().get());
        }
        slot = free_slots_.back();
        slot->request = &request;
        waiting_.push_back(slot);
        free_slots_.pop_back();
        leads = !led_;
        led_ = true;
        slot->state.store(leads ? Slot::leading : Slot::waiting, std::memory_order_relaxed);
    }
    if (leads || slot->wait() == Slot::leading) lead(slot);
    const std::lock_guard lock{mutex_};
    free_slots_.push_back(slot);
}

void CommitQueue::lead(Slot* own) {
    Group group{*this};
    commit_(group);
    // First the answers: who is back with a request by the time the next group is taken goes along with it.
    for (Slot* slot : group.members_) {
        if (slot != own) slot->set(Slot::done);
    }
    tidy_();
    Slot* next = nullptr;
    {
        const std::lock_guard lock{mutex_};
        if (waiting_.empty()) {
            led_ = false;
        } else {
            next = waiting_.front();
        }
    }
    if (next != nullptr) next->set(Slot::leading);
}

}  // namespace varve::sqlite
