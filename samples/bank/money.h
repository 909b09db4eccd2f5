#pragma once

#include "account.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace bank {

/// "1,234.50"; "-0.05".
std::string money_text(Cents cents);
/// Reads "1234.50", "1,234.50", "1234" or "0.5". Throws varve::InvalidError that quotes the text.
Cents parse_money(std::string_view text);
/// The sum. Throws varve::InvalidError if it is more than can be counted in cents.
Cents add(Cents a, Cents b);
/// "12,345".
std::string count_text(std::int64_t count);

}  // namespace bank
