#pragma once

#include <varve/varve.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

/// The domain that the tests share: accounts, and their balances as a read model.
namespace varve::account {

struct Opened {
    std::string owner;
};
struct Deposited {
    std::int64_t cents;
};
struct Withdrawn {
    std::int64_t cents;
};

struct Open {
    std::string owner;
};
struct Deposit {
    std::int64_t cents;
};
struct Withdraw {
    std::int64_t cents;
};

struct Account {
    static constexpr std::string_view name = "account";
    using Event = std::variant<Opened, Deposited, Withdrawn>;

    std::string owner;
    std::int64_t balance = 0;

    void apply(const Opened& e) { owner = e.owner; }
    void apply(const Deposited& e) { balance += e.cents; }
    void apply(const Withdrawn& e) { balance -= e.cents; }

    Decision<Event> decide(const Open& c) const {
        if (!owner.empty()) return reject("already_open");
        return Opened{c.owner};
    }
    Decision<Event> decide(const Deposit& c) const { return Deposited{c.cents}; }
    Decision<Event> decide(const Withdraw& c) const {
        if (c.cents > balance) return reject("insufficient_funds");
        return Withdrawn{c.cents};
    }
};

struct Balance {
    static constexpr std::string_view table = "balances";
    std::int64_t cents = 0;

    bool operator==(const Balance&) const = default;
};

struct ProjectBalance {
    void operator()(const Deposited& e, ProjectionContext& context) const { add(context, e.cents); }
    void operator()(const Withdrawn& e, ProjectionContext& context) const { add(context, -e.cents); }

  private:
    static void add(ProjectionContext& context, std::int64_t cents) {
        context.rows<Balance>().update(context.aggregate_id(), [&](Balance& row) { row.cents += cents; });
    }
};

}  // namespace varve::account
