#include "progress.h"

#include "money.h"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

namespace bank {

namespace {
constexpr auto redraw_interval = std::chrono::milliseconds{100};
constexpr std::size_t bar_width = 24;
}  // namespace

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)), total_(std::max<std::size_t>(total, 1)), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
    if (terminal_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(std::size_t done, std::string_view note) {
    if (!terminal_) return;
    const std::unique_lock lock{mutex_, std::try_to_lock};
    const auto now = std::chrono::steady_clock::now();
    if (!lock || now - drawn_ < redraw_interval) return;
    drawn_ = now;
    done = std::min(done, total_);
    const std::size_t filled = bar_width * done / total_;
    const double seconds = std::max(std::chrono::duration<double>(now - began_).count(), 0.001);
    const auto rate = static_cast<std::int64_t>(static_cast<double>(done) / seconds);
    const std::string bar = std::string(filled, '#') + std::string(bar_width - filled, '.');
    const std::string line = what_ + " [" + bar + "] " + count_text(static_cast<std::int64_t>(done)) + "/" +
                             count_text(static_cast<std::int64_t>(total_)) + "  " + count_text(rate) + "/s  " +
                             std::string{note};
    std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
}

}  // namespace bank
