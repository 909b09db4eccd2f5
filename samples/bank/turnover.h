#pragma once

#include "account.h"
#include "money.h"

#include <varve/store/item_store.h>

namespace bank {

/// A read model over all accounts: what was paid in and out on one day. Its key is the day, as in "2026-01-31".
struct Turnover {
    static constexpr std::string_view table = "turnover";
    static constexpr std::string_view kept_by = "turnover";  // so it can be made anew while it is read
    Cents in = 0;
    Cents out = 0;
    std::int64_t movements = 0;

    bool operator==(const Turnover&) const = default;
};

inline void add(Turnover& sum, const Turnover& one) {
    sum.in = add(sum.in, one.in);
    sum.out = add(sum.out, one.out);
    sum.movements += one.movements;
}

inline std::string day_of(varve::Time time) {
    constexpr std::size_t date_bytes = 10;
    return varve::to_string(time).substr(0, date_bytes);
}

/// Follows in the background: if it were inline, all commands of a day would wait for one row.
struct SumUpTurnover {
    static constexpr std::string_view name = "turnover";

    void operator()(const Deposited& e, varve::ProjectionContext& context) const { add(context, e.cents, 0); }
    void operator()(const Withdrawn& e, varve::ProjectionContext& context) const { add(context, 0, e.cents); }

  private:
    static void add(varve::ProjectionContext& context, Cents in, Cents out) {
        context.rows<Turnover>().update(day_of(context.time()), [&](Turnover& row) {
            row.in = bank::add(row.in, in);
            row.out = bank::add(row.out, out);
            ++row.movements;
        });
    }
};

/// From now on this process does its part. An account with an event that cannot be read is set aside.
inline void follow_turnover(varve::Application& bank) {
    bank.follow<Account>(SumUpTurnover{}, {.on_poison = varve::FollowOptions::OnPoison::park});
}

}  // namespace bank
