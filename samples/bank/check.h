#pragma once

#include "turnover.h"

#include <chrono>
#include <string>
#include <unordered_map>
#include <vector>

namespace bank {

/// The audit: reads what the store holds, slot by slot and row by row, with nothing of the machinery that wrote it, and
/// compares.
///
/// Nobody may write meanwhile: what is on its way is no fault, but would look like one.
struct Audit {
    /// One thing that must hold.
    struct Rule {
        std::string name;                 ///< "sum of money"
        std::string found;                ///< "1,000,000.00 in, 0.00 out, 1,000,000.00 in the accounts"
        std::vector<std::string> broken;  ///< the first few that break it, by name; empty: it holds
        std::size_t broken_count = 0;     ///< how many there are in all
        bool holds() const { return broken_count == 0; }
    };

    std::vector<Rule> rules;
    std::size_t accounts = 0;
    std::size_t events = 0;
    Cents money = 0;                                       ///< the sum of all balances
    std::unordered_map<std::string, bool> transfers = {};  ///< by id: whether all its events are there
    Turnover turnover = {};                                ///< of all days together, as the events say
    Turnover summed_up = {};                               ///< as the rows say that a follower keeps
    std::vector<std::string> wrong_rows = {};              ///< the accounts whose row is not what the events say

    bool holds() const;
};

/// Gives what died processes left behind up to `patience` to be settled, then audits. Throws the store's errors; what
/// cannot be read is a broken rule. Where the bank follows its turnover, that is audited, too, when it has caught up.
Audit audit(varve::Application& bank, varve::Duration patience = std::chrono::seconds{15});

/// Makes the rows anew that an audit has found wrong, from their accounts' events, and returns how many differed. Those
/// whose events cannot be read stay as they are. Others may write meanwhile. Throws the store's errors.
std::size_t repair_rows(varve::Application& bank, const Audit& audit);

}  // namespace bank
