#include <varve/core/error.h>
#include <varve/cron/cron.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <charconv>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <vector>

#include <date/tz.h>

namespace varve {
namespace {

using Days = date::local_days;
using Seconds = std::chrono::seconds;
using SysSeconds = date::sys_seconds;

struct Field {
    const char* name;
    int first;
    int last;
    std::string_view names = {};  ///< "JANFEB…"; the first is `first`
};
constexpr std::array<Field, 5> fields{{{"minute", 0, 59},
                                       {"hour", 0, 23},
                                       {"day of the month", 1, 31},
                                       {"month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
                                       {"day of the week", 0, 7, "SUNMONTUEWEDTHUFRISAT"}}};
constexpr std::pair<std::string_view, std::string_view> shorthands[] = {
    {"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}};

/// Leap days may be eight years apart.
constexpr int days_looked_at_max = 366 * 9;

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (std::size_t end = 0; end != std::string_view::npos;) {
        end = text.find(at);
        parts.push_back(text.substr(0, end));
        if (end != std::string_view::npos) text.remove_prefix(end + 1);
    }
    return parts;
}

/// Reads one field. Bit n: the value n.
class FieldReader {
  public:
    FieldReader(std::string_view expression, const Field& field) : expression_(expression), field_(field) {}

    std::bitset<60> read(std::string_view text) const {
        std::bitset<60> values;
        for (const std::string_view part : split(text, ',')) add(part, values);
        return values;
    }

  private:
    [[noreturn]] void refuse(std::string_view part, const std::string& why) const {
        throw InvalidError("the schedule '" + std::string{expression_} + "' cannot be read: '" + std::string{part} +
                           "' as the " + field_.name + " " + why);
    }
    void add(std::string_view part, std::bitset<60>& values) const {
        const std::size_t slash = part.find('/');
        const std::string_view range = part.substr(0, slash);
        const std::size_t dash = range.find('-');
        int first = field_.first;
        int last = field_.last == 7 ? 6 : field_.last;
        if (range != "*") {
            first = number(range.substr(0, dash), part);
            last = dash == std::string_view::npos ? first : number(range.substr(dash + 1), part);
            if (dash == std::string_view::npos && slash != std::string_view::npos)
                refuse(part, "has a step and no range; write a range, as in 10-40/5 or */5");
        }
        if (last < first) refuse(part, "ends before it begins");
        int step = 1;
        if (slash != std::string_view::npos) {
            step = plain_number(part.substr(slash + 1)).value_or(0);
            if (step < 1) refuse(part, "has a step that is no number above 0");
        }
        for (int value = first; value <= last; value += step)
            values.set(static_cast<std::size_t>(field_.last == 7 ? value % 7 : value));
    }
    static std::optional<int> plain_number(std::string_view text) {
        int value = 0;
        const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (text.empty() || failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
        return value;
    }
    int number(std::string_view text, std::string_view part) const {
        std::string upper{text};
        std::ranges::transform(upper, upper.begin(),
                               [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
        for (std::size_t i = 0; i < field_.names.size(); i += 3) {
            if (field_.names.substr(i, 3) == upper) return field_.first + static_cast<int>(i / 3);
        }
        const std::optional<int> value = plain_number(text);
        if (!value || *value < field_.first || *value > field_.last) {
            refuse(part,
                   "is none; give " + std::to_string(field_.first) + " to " + std::to_string(field_.last) +
                       (field_.names.empty() ? "" : ", or a name such as " + std::string{field_.names.substr(0, 3)}));
        }
        return *value;
    }

    const std::string_view expression_;
    const Field& field_;
};

}  // namespace

struct Cron::Parsed {
    Parsed(std::string_view expression_, std::string_view zone_) : expression(expression_), zone(zone_) {
        std::string_view fields_text = expression;
        if (const auto* found = std::ranges::find(shorthands, fields_text, [](const auto& one) { return one.first; });
            found != std::end(shorthands)) {
            fields_text = found->second;
        }
        std::vector<std::string_view> parts = split(fields_text, ' ');
        std::erase(parts, std::string_view{});
        if (parts.size() != fields.size()) {
            throw InvalidError("the schedule '" + expression + "' has " + std::to_string(parts.size()) +
                               " fields; give it five: minute, hour, day of the month, month, day of the week");
        }
        const auto read = [&](std::size_t i) { return FieldReader{expression, fields[i]}.read(parts[i]); };
        minutes = read(0);
        hours = read(1);
        days = read(2);
        months = read(3);
        weekdays = read(4);
        each_hour = parts[1].starts_with('*');
        any_day = parts[2].starts_with('*');
        any_weekday = parts[4].starts_with('*');
        try {
            clocks = date::locate_zone(zone);
        } catch (const std::runtime_error& error) {
            throw InvalidError("the schedule '" + expression + "' cannot be read: '" + zone +
                               "' is no time zone that this system knows; give it an IANA name, such as "
                               "Europe/Berlin (" +
                               error.what() + ")");
        }
    }

    bool has(Days day) const {
        const date::year_month_day date{day};
        if (!months.test(static_cast<unsigned>(date.month()))) return false;
        const bool is_day = days.test(static_cast<unsigned>(date.day()));
        const bool is_weekday = weekdays.test(date::weekday{day}.c_encoding());
        if (!any_day && !any_weekday) return is_day || is_weekday;
        return is_day && is_weekday;
    }
    /// Moments at which a clock there shows this.
    void add_moments(date::local_seconds shown, std::vector<SysSeconds>& to) const {
        const date::local_info info = clocks->get_info(shown);
        switch (info.result) {
            case date::local_info::unique:
                to.push_back(SysSeconds{shown.time_since_epoch() - info.first.offset});
                break;
            case date::local_info::nonexistent:
                if (!each_hour) to.push_back(info.first.end);
                break;
            default:
                to.push_back(SysSeconds{shown.time_since_epoch() - info.first.offset});
                if (each_hour) to.push_back(SysSeconds{shown.time_since_epoch() - info.second.offset});
        }
    }
    std::optional<SysSeconds> first_after(Time after, Days day) const {
        std::vector<SysSeconds> moments;
        for (int hour = 0; hour < 24; ++hour) {
            if (!hours.test(static_cast<std::size_t>(hour))) continue;
            for (int minute = 0; minute < 60; ++minute) {
                if (minutes.test(static_cast<std::size_t>(minute)))
                    add_moments(day + std::chrono::hours{hour} + std::chrono::minutes{minute}, moments);
            }
        }
        std::optional<SysSeconds> first;
        for (const SysSeconds moment : moments) {
            if (moment > after && (!first || moment < *first)) first = moment;
        }
        return first;
    }
    std::optional<Time> next(Time after) const {
        const auto shown = clocks->to_local(std::chrono::floor<Seconds>(after));
        // A day before: clocks may have been set back across midnight.
        const Days begin = date::floor<date::days>(shown) - date::days{1};
        for (Days day = begin; day < begin + date::days{days_looked_at_max}; day += date::days{1}) {
            if (!has(day)) continue;
            const std::optional<SysSeconds> found = first_after(after, day);
            if (!found) continue;
            // What is left out of this day may happen after something in the next.
            const Days following = day + date::days{1};
            const std::optional<SysSeconds> other = has(following) ? first_after(after, following) : std::nullopt;
            return Time{other ? std::min(*found, *other) : *found};
        }
        return std::nullopt;
    }

    const std::string expression;
    const std::string zone;
    std::bitset<60> minutes, hours, days, months, weekdays;
    bool each_hour = false;  ///< it goes by the time that passes
    bool any_day = false;
    bool any_weekday = false;
    const date::time_zone* clocks = nullptr;  // the library's, for ever
};

Cron::Cron(std::string_view expression, std::string_view zone)
    : parsed_(std::make_shared<const Parsed>(expression, zone)) {
    if (!parsed_->next(Time{}))
        throw InvalidError("the schedule '" + parsed_->expression + "' never happens: no month has such a day");
}

Time Cron::next(Time after) const {
    constexpr Time end{std::chrono::sys_days{std::chrono::year{2200} / 1 / 1}};
    constexpr Time begin{std::chrono::sys_days{std::chrono::year{1900} / 1 / 1}};
    const std::optional<Time> found = after < end && after >= begin ? parsed_->next(after) : std::nullopt;
    if (found) return *found;
    throw InvalidError("the schedule '" + parsed_->expression + "' is asked for what comes after " + to_string(after) +
                       "; give it a time from 1900 to 2200");
}

const std::string& Cron::expression() const {
    return parsed_->expression;
}

const std::string& Cron::zone() const {
    return parsed_->zone;
}

}  // namespace varve
