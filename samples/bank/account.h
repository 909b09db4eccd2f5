#pragma once

#include <varve/varve.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

/// The bank's domain: an account, what can happen to it, and what it refuses.
namespace bank {

/// Money is counted in cents; 100'00 is a hundred.
using Cents = std::int64_t;

/// What a deposit or withdrawal is part of, if the money came from another account or went to one. Every part names the
/// whole, so that an auditor can tell a complete transfer from half of one.
struct Transfer {
    std::string id;
    std::string with;       ///< the account on the other side; of a payroll's withdrawal: empty
    std::int64_t legs = 2;  ///< how many events the whole transfer has, over all its accounts
};

struct Opened {
    std::string owner;
};
struct Deposited {
    Cents cents = 0;
    std::optional<Transfer> transfer = {};  ///< empty: cash from outside
};
struct Withdrawn {
    Cents cents = 0;
    std::optional<Transfer> transfer = {};  ///< empty: cash to outside
};
struct Frozen {
    std::string reason;
};
struct Unfrozen {};

struct Open {
    std::string owner;
};
struct Deposit {
    Cents cents = 0;
    std::optional<Transfer> transfer = {};
};
struct Withdraw {
    Cents cents = 0;
    std::optional<Transfer> transfer = {};
};
struct Freeze {
    std::string reason;
};
struct Unfreeze {};

/// Money leaves an account only if it is open, not frozen, and has enough; a frozen one still receives.
struct Account {
    static constexpr std::string_view name = "account";
    using Event = std::variant<Opened, Deposited, Withdrawn, Frozen, Unfrozen>;
    using Decision = varve::Decision<Event>;
    static constexpr varve::SnapshotPolicy snapshots{.every_slots = 100};

    std::string owner;
    Cents balance = 0;
    bool open = false;
    bool frozen = false;

    void apply(const Opened& e) {
        open = true;
        owner = e.owner;
    }
    void apply(const Deposited& e) { balance += e.cents; }
    void apply(const Withdrawn& e) { balance -= e.cents; }
    void apply(const Frozen&) { frozen = true; }
    void apply(const Unfrozen&) { frozen = false; }

    Decision decide(const Open& c) const {
        if (open) return varve::reject("already_open", "the account belongs to " + owner);
        return Opened{c.owner};
    }
    Decision decide(const Deposit& c) const {
        if (c.cents <= 0) return bad_amount();
        if (!open) return not_open();
        if (c.cents > std::numeric_limits<Cents>::max() - balance)
            return varve::reject("too_much", "no account holds more than 92,233,720,368,547,758.07");
        return Deposited{c.cents, c.transfer};
    }
    Decision decide(const Withdraw& c) const {
        if (c.cents <= 0) return bad_amount();
        if (!open) return not_open();
        if (frozen) return varve::reject("frozen", "no money leaves a frozen account");
        if (c.cents > balance) return varve::reject("insufficient_funds", "the balance is smaller than the amount");
        return Withdrawn{c.cents, c.transfer};
    }
    Decision decide(const Freeze& c) const {
        if (!open) return not_open();
        if (frozen) return {};
        return Frozen{c.reason};
    }
    Decision decide(const Unfreeze&) const {
        if (!open) return not_open();
        if (!frozen) return {};
        return Unfrozen{};
    }

  private:
    static varve::Rejection bad_amount() { return varve::reject("bad_amount", "an amount must be more than 0"); }
    static varve::Rejection not_open() { return varve::reject("not_open", "there is no such account"); }
};

}  // namespace bank
