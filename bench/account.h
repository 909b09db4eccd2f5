#pragma once

#include <varve/varve.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

namespace bench {

struct Deposited {
    std::int64_t cents;
};
struct Withdrawn {
    std::int64_t cents;
};
struct Deposit {
    std::int64_t cents;
};
struct Withdraw {
    std::int64_t cents;
};

/// About what a slot of one small event takes.
inline constexpr std::size_t slot_bytes = 150;
/// Of those that commands, or the events of a history, are spread over.
inline constexpr int accounts = 50;

/// The least that is an aggregate: what is measured is the framework.
struct Account {
    static constexpr std::string_view name = "account";
    using Event = std::variant<Deposited, Withdrawn>;

    std::int64_t balance = 0;

    void apply(const Deposited& e) { balance += e.cents; }
    void apply(const Withdrawn& e) { balance -= e.cents; }
    varve::Decision<Event> decide(const Deposit& c) const { return Deposited{c.cents}; }
    varve::Decision<Event> decide(const Withdraw& c) const { return Withdrawn{c.cents}; }
};

}  // namespace bench
