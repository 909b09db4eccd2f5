#pragma once

#include "figures.h"

#include <functional>
#include <string>

namespace bench {

/// Of each thread.
inline constexpr long accounts_each = 10;

/// The account of a thread's i-th operation; no other thread has it.
std::string own_account(unsigned thread, long i);

/// As `rate`, once every account is known: `operation(thread, i)` was run for each of them.
double rate_when_warm(const Plan& plan, unsigned threads, const std::function<int(unsigned thread, long i)>& operation);

}  // namespace bench
