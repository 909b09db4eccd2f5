#pragma once

#include <varve/core/clock.h>

#include <memory>
#include <string>
#include <string_view>

namespace varve {

/// When something recurs, by the clocks of a place: "at nine on weekdays in Berlin".
///
///     const varve::Cron nine{"0 9 * * MON-FRI", "Europe/Berlin"};
///     r.at(nine.next(r.now()), Remind{});     // and its reaction sets the next one
///
/// Five fields: minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or JAN-DEC, day of the week 0-7 (0 and 7 are
/// Sunday) or SUN-SAT. Each is `*`, or a list of numbers and ranges, `1,10-20`, with a step, `*/15` or `10-40/5`. Where
/// both days are restricted, either will do: `0 0 13 * FRI` is each 13th and each Friday. Or one of @hourly, @daily,
/// @weekly, @monthly, @yearly. (POSIX crontab, and the steps and names of P. Vixie's cron.)
///
/// Where clocks are set forward, what falls into the hour that is left out happens when that is over; where they are
/// set back, it happens once, the first time. With `*` as the hour it goes by the time that passes: nothing is added,
/// nothing left out.
///
/// Threads: a value; all methods may be called from any thread.
class Cron {
  public:
    /// `zone`: a name of the IANA time zone database, which the system keeps ("Europe/Berlin"). InvalidError that names
    /// the field, for what never happens (30 February), and for a zone that there is not.
    explicit Cron(std::string_view expression, std::string_view zone = "UTC");

    /// The first moment after this one. InvalidError past the year 2200, where nobody knows the zones' rules.
    Time next(Time after) const;

    const std::string& expression() const;
    const std::string& zone() const;

  private:
    struct Parsed;
    std::shared_ptr<const Parsed> parsed_;
};

}  // namespace varve
