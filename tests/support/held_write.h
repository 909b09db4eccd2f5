#pragma once

#include "support/hooked_store.h"

#include <atomic>
#include <future>

namespace varve {

/// Keeps back the first write that goes to `store`, and with it whoever sent it, until it is released.
///
///     HeldWrite held{*hooked};
///     std::jthread stuck{[&] { static_cast<void>(bank.transact(deposit)); }};
///     held.wait();     // it is stuck now
///     held.release();
class HeldWrite {
  public:
    explicit HeldWrite(HookedStore& store) : store_(store) {
        store_.before_write = [this](auto) {
            if (!first_.exchange(false)) return;
            arrived_.set_value();
            released_.get_future().wait();
        };
    }
    ~HeldWrite() {
        store_.before_write = [](auto) {};
    }
    HeldWrite(const HeldWrite&) = delete;
    HeldWrite& operator=(const HeldWrite&) = delete;

    void wait() { arrived_.get_future().wait(); }
    void release() { released_.set_value(); }

  private:
    HookedStore& store_;
    std::atomic<bool> first_{true};
    std::promise<void> arrived_;
    std::promise<void> released_;
};

}  // namespace varve
