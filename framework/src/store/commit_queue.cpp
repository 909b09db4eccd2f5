#include <varve/store/commit_queue.h>

namespace varve::store {
namespace {

constexpr std::size_t group_cost_max = 1000;

}  // namespace

/// Where a caller waits. It outlives the call, because whoever wakes a caller touches it after the caller may have
/// gone.
struct CommitQueue::Place {
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

CommitQueue::Request* CommitQueue::Group::take() {
    return cost_ >= group_cost_max ? nullptr : take_any();
}

CommitQueue::Request* CommitQueue::Group::take_any() {
    Request* request = &own_;
    if (first_ != nullptr) {
        const MutexLock lock{queue_.mutex_};
        request = queue_.next_waiting();
    }
    if (request == nullptr) return nullptr;
    (first_ == nullptr ? first_ : last_->next_) = request;
    last_ = request;
    cost_ += request->cost;
    return request;
}

CommitQueue::CommitQueue(std::function<void(Group&)> commit, std::function<void()> tidy, std::size_t leaders_max)
    : commit_(std::move(commit)), tidy_(std::move(tidy)), leaders_max_(leaders_max) {}

CommitQueue::~CommitQueue() = default;

void CommitQueue::run(Request& request) {
    bool leads = false;
    {
        const MutexLock lock{mutex_};
        if (free_places_.empty()) {
            free_places_.reserve(places_.size() + 1);
            places_.push_back(std::make_unique<Place>());
            free_places_.push_back(places_.back().get());
        }
        Place* const place = free_places_.back();
        free_places_.pop_back();
        leads = leaders_ < leaders_max_;
        place->state.store(leads ? Place::leading : Place::waiting, std::memory_order_relaxed);
        request.place_ = place;
        if (leads) {
            ++leaders_;
        } else {
            (first_waiting_ == nullptr ? first_waiting_ : last_waiting_->next_) = &request;
            last_waiting_ = &request;
        }
    }
    if (leads || request.place_->wait() == Place::leading) lead(request);
    const MutexLock lock{mutex_};
    free_places_.push_back(request.place_);
}

void CommitQueue::lead(Request& own) noexcept {
    Group group{*this, own};
    commit_(group);
    // First the answers: who is back with a request by the time the next group is taken goes along with it.
    for (Request* member = group.first(); member != nullptr;) {
        Request* const next = member->next_;  // a member that has been told may be gone
        if (member != &own) member->place_->set(Place::done);
        member = next;
    }
    Request* next = nullptr;
    {
        const MutexLock lock{mutex_};
        next = next_waiting();
        if (next == nullptr) --leaders_;
    }
    if (next != nullptr) next->place_->set(Place::leading);
    tidy_();
}

CommitQueue::Request* CommitQueue::next_waiting() {
    Request* const request = first_waiting_;
    if (request == nullptr) return nullptr;
    first_waiting_ = request->next_;
    request->next_ = nullptr;
    return request;
}

}  // namespace varve::store
