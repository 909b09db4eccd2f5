#pragma once

#include "account.h"

#include <varve/rows/indexes.h>

namespace bank {

/// The read model: one row per account, to be listed, summed and found by owner without reading any events.
struct Balance {
    static constexpr std::string_view table = "balances";
    std::string owner;
    Cents cents = 0;
    bool frozen = false;
    varve::Version version = 0;  ///< of the account's event that it was last changed by

    using Indexes = varve::Indexes<varve::Index<&Balance::owner>>;
    bool operator==(const Balance&) const = default;
};

/// Keeps the rows; runs inside the transaction that decides the events, so a row never lags behind its account.
struct ProjectBalance {
    using OwnRows = Balance;

    template <class Event>
    void operator()(const Event& event, varve::ProjectionContext& context) const {
        context.rows<Balance>().update(context.aggregate_id(), [&](Balance& row) {
            change(row, event);
            row.version = context.version();
        });
    }

  private:
    static void change(Balance& row, const Opened& e) { row.owner = e.owner; }
    static void change(Balance& row, const Deposited& e) { row.cents += e.cents; }
    static void change(Balance& row, const Withdrawn& e) { row.cents -= e.cents; }
    static void change(Balance& row, const Frozen&) { row.frozen = true; }
    static void change(Balance& row, const Unfrozen&) { row.frozen = false; }
};

}  // namespace bank
