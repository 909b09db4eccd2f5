#include "commit_queue.h"

namespace varve::sqlite {

/// Where a caller waits. It outlives the call, because whoever wakes a caller touches the slot after the caller may
/// have gone.
struct Slot {
    enum State : int { waiting, leading, done };

    std::atomic<int> state = waiting;

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

CommitQueue::Request* CommitQueue::Group::take() {
    return cost_ >= group_cost_max ? nullptr : take_any();
}

CommitQueue::Request* CommitQueue::Group::take_any() {
    const MutexLock lock{queue_.mutex_};
    Request* const request = queue_.first_waiting_;
    if (request == nullptr) return nullptr;
    queue_.first_waiting_ = request->next_;
    request->next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = request;
    last_ = request;
    cost_ += request->cost;
    return request;
}

CommitQueue::CommitQueue(std::function<void(Group&)> commit, std::function<void()> tidy)
    : commit_(std::move(commit)), tidy_(std::move(tidy)) {}

CommitQueue::~CommitQueue() = default;

void CommitQueue::run(Request& request) {
    bool leads = false;
    {
        const MutexLock lock{mutex_};
        if (free_slots_.empty()) {
            free_slots_.reserve(slots_.size() + 1);
            slots_.push_back(std::make_unique<Slot>());
            free_slots_.push_back(slots_.back().get());
        }
        Slot* const slot = free_slots_.back();
        free_slots_.pop_back();
        leads = !led_;
        led_ = true;
        slot->state.store(leads ? Slot::leading : Slot::waiting, std::memory_order_relaxed);
        request.slot_ = slot;
        (first_waiting_ == nullptr ? first_waiting_ : last_waiting_->next_) = &request;
        last_waiting_ = &request;
    }
    if (leads || request.slot_->wait() == Slot::leading) lead(request);
    const MutexLock lock{mutex_};
    free_slots_.push_back(request.slot_);
}

void CommitQueue::lead(const Request& own) noexcept {
    Group group{*this};
    commit_(group);
    // First the answers: who is back with a request by the time the next group is taken goes along with it.
    for (Request* member = group.first(); member != nullptr;) {
        Request* const next = member->next_;  // a member that has been told may be gone
        if (member != &own) member->slot_->set(Slot::done);
        member = next;
    }
    Slot* next = nullptr;
    {
        const MutexLock lock{mutex_};
        if (first_waiting_ == nullptr) {
            led_ = false;
        } else {
            next = first_waiting_->slot_;
        }
    }
    if (next != nullptr) next->set(Slot::leading);
    tidy_();
}

}  // namespace varve::sqlite
