#pragma once

#include <memory>
#include <vector>

namespace varve {

/// Remembers the process in which something was made. A child that is forked later has a copy of its parent's memory
/// and none of its threads. There a destructor that waits for a thread would wait for ever. One that says that its
/// owner is gone would say so of the wrong owner. So destructors ask first, and let go instead.
///
///     ~Owner() {
///         if (process_.is_another()) abandon(std::move(threads_));
///     }
///
/// Threads: all methods may be called from any thread.
class OwnProcess {
  public:
    OwnProcess() noexcept;
    bool is_another() const noexcept;

  private:
    int made_in_;  // its id
};

/// Keeps until the process ends what a forked child must not destroy.
template <class T, class Deleter>
void abandon(std::unique_ptr<T, Deleter> object) {
    static auto& kept = *new std::vector<T*>;
    kept.push_back(object.release());
}

}  // namespace varve
