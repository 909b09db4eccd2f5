#pragma once

#include "support/hooked_store.h"

#include <atomic>
#include <future>
#include <memory>

namespace varve {

/// Keeps back the first write that goes to `store`, and with it whoever sent it, until it is released.
///
///     HeldWrite held{*hooked};
///     std::jthread stuck{[&] { static_cast<void>(bank.transact(deposit)); }};
///     held.wait();     // it is stuck now
///     held.release();
class HeldWrite {
  public:
    explicit HeldWrite(HookedStore& store) {
        store.before_write = [state = state_](auto) {
            if (!state->is_first.exchange(false)) return;
            state->arrived.set_value();
            state->released.get_future().wait();
        };
    }
    /// The hook stays, since others may be writing, and keeps nothing back any more.
    ~HeldWrite() { state_->is_first = false; }
    HeldWrite(const HeldWrite&) = delete;
    HeldWrite& operator=(const HeldWrite&) = delete;

    void wait() { state_->arrived.get_future().wait(); }
    void release() { state_->released.set_value(); }

  private:
    struct State {
        std::atomic<bool> is_first{true};
        std::promise<void> arrived;
        std::promise<void> released;
    };
    const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace varve
