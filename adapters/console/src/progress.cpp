#include "progress.h"

#include "output.h"

#include <cstdio>

#include <unistd.h>

namespace varve::console {

Progress::Progress(const Console& console, std::string what, std::optional<std::int64_t> total)
    : program_(console.program.name),
      what_(std::move(what)),
      total_(total),
      on_terminal_(isatty(STDERR_FILENO) != 0),
      clock_(Clock::system()),
      began_(clock_.steady_now()),
      next_(began_ + (on_terminal_ ? std::chrono::seconds{1} : std::chrono::seconds{10})) {}

void Progress::update(std::int64_t count) {
    const SteadyTime now = clock_.steady_now();
    if (now < next_) return;
    next_ = now + (on_terminal_ ? Duration{std::chrono::milliseconds{200}} : Duration{std::chrono::seconds{10}});
    const double seconds = std::chrono::duration<double>{now - began_}.count();
    const double rate = static_cast<double>(count) / seconds;
    std::string line = shown(count) + " " + what_;
    if (total_ && *total_ > 0) line += " of " + shown(*total_) + ", " + std::to_string(count * 100 / *total_) + " %";
    line += ", " + shown(static_cast<std::int64_t>(rate)) + "/s";
    if (total_ && rate > 0 && *total_ > count)
        line += ", " +
                shown(std::chrono::duration_cast<Duration>(
                    std::chrono::duration<double>{static_cast<double>(*total_ - count) / rate})) +
                " left";
    if (on_terminal_) {
        std::fprintf(stderr, "\r\033[K%s", line.c_str());
        is_shown_ = true;
    } else {
        std::fprintf(stderr, "%s: %s\n", program_.c_str(), line.c_str());
    }
}

void Progress::end() {
    if (is_shown_) std::fprintf(stderr, "\r\033[K");
    is_shown_ = false;
}

}  // namespace varve::console
