#pragma once

#include <varve/core/background_thread.h>
#include <varve/core/runtime.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace varve {

/// A thread that does a piece of work again and again until it is destroyed: a sweep, a heartbeat. What a turn throws
/// is logged, and the work goes on. In a child that was forked beside it there is no such thread, and nobody waits.
///
///     sweeper_ = BackgroundLoop{runtime, {.thread = "varve-sweep", .work = "the sweeper", .retry_after = interval},
///                               [this](const std::stop_token&) { return sweep(), interval; }};
///     sweeper_.wake();  // do not wait for the interval to be over
///
/// Threads: wake() may be called from any thread, everything else from one at a time.
class BackgroundLoop {
  public:
    struct Options {
        const char* thread;    ///< its name in debuggers and `top`; of at most 15 characters
        std::string work;      ///< what the log calls it: "the sweeper"
        Duration retry_after;  ///< the pause after a turn that failed
    };
    /// One turn. Returns how long to pause, by the clock, before the next; nullopt: until somebody wakes it, which
    /// costs nothing. It should look at the stop token wherever it may take long.
    using Turn = std::function<std::optional<Duration>(const std::stop_token&)>;

    BackgroundLoop() = default;
    BackgroundLoop(Runtime runtime, Options options, Turn turn);

    bool is_running() const { return thread_.is_running(); }
    /// Ends the pause. What was written before this call the next turn sees.
    void wake() noexcept;
    /// Does not wait for its end, as the destructor does.
    void request_stop() noexcept { thread_.request_stop(); }

  private:
    class Shared;
    std::shared_ptr<Shared> shared_;  // with the thread, which in a forked child keeps it for ever
    BackgroundThread thread_;
};

}  // namespace varve
