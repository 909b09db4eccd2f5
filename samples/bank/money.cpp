#include "money.h"

#include <varve/core/error.h>

#include <limits>

namespace bank {

std::string count_text(std::int64_t count) {
    std::string digits = std::to_string(count);
    const std::size_t first = count < 0 ? 1 : 0;
    for (std::size_t i = digits.size(); i > first + 3;) {
        i -= 3;
        digits.insert(i, 1, ',');
    }
    return digits;
}

std::string money_text(Cents cents) {
    const Cents below = cents % 100 < 0 ? -(cents % 100) : cents % 100;
    const std::string sign = cents < 0 && cents > -100 ? "-" : "";  // -0.05: the whole part has no sign of its own
    return sign + count_text(cents / 100) + (below < 10 ? ".0" : ".") + std::to_string(below);
}

Cents add(Cents a, Cents b) {
    Cents sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) {
        throw varve::InvalidError("the sum of " + money_text(a) + " and " + money_text(b) +
                                  " is more than can be counted in cents");
    }
    return sum;
}

Cents parse_money(std::string_view text) {
    const auto refuse = [&](const char* why) {
        throw varve::InvalidError("'" + std::string{text} + "' is no amount of money: " + why);
    };
    constexpr Cents cents_max = std::numeric_limits<Cents>::max() / 1000;
    Cents cents = 0;
    int decimals = -1;  // -1: before the point
    bool digits = false;
    for (const char c : text) {
        if (c == ',' && decimals < 0) continue;
        if (c == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (c < '0' || c > '9') refuse("write it as 1234.50");
        if (decimals == 2) refuse("a cent is not divided");
        cents = cents * 10 + (c - '0');
        if (cents > cents_max) refuse("it is too large");
        if (decimals >= 0) ++decimals;
        digits = true;
    }
    if (!digits) refuse("write it as 1234.50");
    for (int i = decimals < 0 ? 0 : decimals; i < 2; ++i) cents *= 10;
    return cents;
}

}  // namespace bank
