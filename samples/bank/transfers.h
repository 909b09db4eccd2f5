#pragma once

#include "account.h"

#include <string>
#include <vector>

namespace bank {

/// Money from one account to another.
struct TransferOrder {
    std::string id;  ///< recorded with both events
    std::string from;
    std::string to;
    Cents cents = 0;
};

/// Both accounts or none.
///
/// `once` makes a repeated order of the same id a no-op that returns the first receipt, for ever.
enum class Repeats { allowed, once };
varve::Outcome transfer(varve::Application& bank, const TransferOrder& order, Repeats repeats = Repeats::allowed);

/// One employer, many salaries.
struct PayrollOrder {
    struct Salary {
        std::string to;
        Cents cents = 0;
    };
    std::string id;
    std::string from;
    std::vector<Salary> salaries;
};

/// Everybody is paid, or nobody is.
varve::Outcome payroll(varve::Application& bank, const PayrollOrder& order, Repeats repeats = Repeats::allowed);

}  // namespace bank
