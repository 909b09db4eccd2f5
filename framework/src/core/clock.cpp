#include <varve/core/clock.h>
#include <varve/core/error.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <utility>

namespace varve {
namespace {

class SystemClock final : public Clock {
  public:
    Time now() override { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); }
    SteadyTime steady_now() override {
        return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
    }

    void sleep_for(Duration duration, std::stop_token stop) override {
        if (duration <= Duration::zero()) return;
        // Takes no memory, unlike std::condition_variable_any: who waits in a queue cannot just fail and go.
        std::mutex mutex;
        std::condition_variable wake;
        bool stopped = false;
        const std::stop_callback on_stop{std::move(stop), [&] {
                                             const std::lock_guard lock{mutex};
                                             stopped = true;
                                             wake.notify_one();
                                         }};
        std::unique_lock lock{mutex};
        // The standard library counts in nanoseconds, and overflows where somebody sleeps for ever.
        constexpr Duration longest = std::chrono::hours{24 * 365 * 100};
        wake.wait_for(lock, std::min(duration, longest), [&] { return stopped; });
    }
};

/// Takes what parse_time reads off the front of a text.
struct Scanner {
    std::string_view rest;

    bool literal(char c) {
        if (rest.empty() || rest.front() != c) return false;
        rest.remove_prefix(1);
        return true;
    }
    bool digits(std::size_t count, int& value) {
        if (rest.size() < count) return false;
        const char* end = rest.data() + count;
        if (rest.front() == '-' || std::from_chars(rest.data(), end, value).ptr != end) return false;
        rest.remove_prefix(count);
        return true;
    }
};

bool parse(std::string_view text, Time& time) {
    Scanner scan{text};
    int year = 0, month = 0, day = 0;
    if (!scan.digits(4, year) || !scan.literal('-') || !scan.digits(2, month) || !scan.literal('-') ||
        !scan.digits(2, day)) {
        return false;
    }
    const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok()) return false;
    time = std::chrono::sys_days{date};
    if (scan.rest.empty()) return true;

    int hour = 0, minute = 0, second = 0;
    if (!(scan.literal('T') || scan.literal(' ')) || !scan.digits(2, hour) || !scan.literal(':') ||
        !scan.digits(2, minute)) {
        return false;
    }
    if (scan.literal(':') && !scan.digits(2, second)) return false;
    if (hour > 23 || minute > 59 || second > 60) return false;
    time += std::chrono::hours{hour} + std::chrono::minutes{minute} + std::chrono::seconds{second};
    if (scan.literal('.')) {
        int digit = 0;
        if (!scan.digits(1, digit)) return false;
        Duration unit = std::chrono::milliseconds{100};
        do {
            time += unit * digit;
            unit /= 10;
        } while (scan.digits(1, digit));
    }
    if (scan.literal('Z')) return scan.rest.empty();
    const bool east = scan.literal('+');
    if (!east && !scan.literal('-')) return scan.rest.empty();
    int hours = 0, minutes = 0;
    if (!scan.digits(2, hours)) return false;
    scan.literal(':');
    if (!scan.digits(2, minutes) || hours > 23 || minutes > 59) return false;
    const Duration offset = std::chrono::hours{hours} + std::chrono::minutes{minutes};
    time += east ? -offset : offset;
    return scan.rest.empty();
}

}  // namespace

Clock& Clock::system() {
    static SystemClock clock;
    return clock;
}

std::string to_string(Duration duration) {
    char text[40];
    const int length = std::snprintf(text, sizeof text, "%.6f", std::chrono::duration<double>(duration).count());
    std::string seconds(text, static_cast<std::size_t>(length));
    seconds.erase(seconds.find_last_not_of('0') + 1);
    if (seconds.back() == '.') seconds.pop_back();
    return seconds + " s";
}

std::string to_string(Time time) {
    // A std::chrono::year has 16 bits, fewer than a Time needs. The calendar repeats itself every 400 years.
    constexpr std::int64_t cycle_days = 146'097;
    const std::int64_t day = std::chrono::floor<std::chrono::days>(time).time_since_epoch().count();
    const std::int64_t cycle = day / cycle_days - (day % cycle_days < 0 ? 1 : 0);
    const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day - cycle * cycle_days}}};
    // The first day of all begins before Time::min(), so its midnight is no Time.
    constexpr Duration whole_day = std::chrono::days{1};
    const std::chrono::hh_mm_ss<Duration> clock{(time.time_since_epoch() % whole_day + whole_day) % whole_day};
    char text[64];
    std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ",
                  static_cast<int>(date.year()) + static_cast<int>(400 * cycle), static_cast<unsigned>(date.month()),
                  static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                  static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
                  static_cast<int>(clock.subseconds().count()));
    return text;
}

Time parse_time(std::string_view text) {
    Time time;
    if (!parse(text, time)) {
        throw InvalidError("'" + std::string{text} + "' is no time; write 2026-01-31 or 2026-01-31T12:00:00Z");
    }
    return time;
}

}  // namespace varve
