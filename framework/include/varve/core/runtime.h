#pragma once

#include <varve/core/clock.h>

#include <cstdint>
#include <functional>
#include <string_view>

namespace varve {

/// The only source of randomness: ids and jitter come from here. It is injected, so that one seed fixes a whole run.
///
/// Threads: all methods may be called from any thread.
class Random {
  public:
    virtual ~Random() = default;
    /// 64 uniformly distributed bits.
    virtual std::uint64_t next() = 0;
    /// Uniform in [0, bound); 0 when bound is 0.
    std::uint64_t below(std::uint64_t bound);

    /// The operating system's randomness (getrandom); never repeats itself in a forked child.
    static Random& system();
};

enum class LogLevel { debug, info, warning, error };

/// Where the framework's background threads say what they met. Calls that a user makes report by value or exception and
/// log nothing. Messages never contain event data, credentials or whole URLs.
///
/// Threads: write() may be called from any thread.
class Log {
  public:
    virtual ~Log() = default;
    virtual void write(LogLevel level, std::string_view message) = 0;

    /// Warnings and errors to standard error, one line each. The default.
    static Log& standard_error();
};

/// Writes the text that `message()` returns, or nothing if that fails, for want of memory for instance: for places that
/// have to go on.
template <class Message>
void try_to_log(Log& log, LogLevel level, const Message& message) noexcept {
    try {
        log.write(level, message());
    } catch (...) {
        // Whoever could be told of it is the one who failed.
    }
}

class Threads;  // core/threads.h
/// The operating system's.
Threads& system_threads();

/// What the framework takes from the world besides the store. All of it must outlive whatever it is given to.
///
///     options.runtime.clock = my_clock;  // refers to it from now on
struct Runtime {
    std::reference_wrapper<Clock> clock = Clock::system();
    std::reference_wrapper<Random> random = Random::system();
    std::reference_wrapper<Log> log = Log::standard_error();
    std::reference_wrapper<Threads> threads = system_threads();
};

}  // namespace varve
