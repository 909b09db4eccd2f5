#pragma once

#include <atomic>
#include <csignal>

namespace varve::console {

/// While it lives, the first SIGINT or SIGTERM only asks to stop; a second one ends the process as ever.
class Interrupt {
  public:
    Interrupt() {
        signal_ = 0;
        struct sigaction action {};
        action.sa_handler = [](int signal) { signal_ = signal; };
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
        sigaction(SIGINT, &action, &interrupt_before_);
        sigaction(SIGTERM, &action, &terminate_before_);
    }
    ~Interrupt() {
        sigaction(SIGINT, &interrupt_before_, nullptr);
        sigaction(SIGTERM, &terminate_before_, nullptr);
    }
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    bool came() const { return signal_ != 0; }

  private:
    static inline std::atomic<int> signal_ = 0;
    static_assert(decltype(signal_)::is_always_lock_free, "a signal handler may not wait");
    struct sigaction interrupt_before_ {};
    struct sigaction terminate_before_ {};
};

}  // namespace varve::console
