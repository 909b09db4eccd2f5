#pragma once

#include <varve/events/event_store.h>
#include <varve/rows/indexes.h>
#include <varve/varve.h>

#include <cstdint>
#include <string>
#include <vector>

/// What the simulated cluster works on: accounts with balances kept by an inline projection, lists as streams and as
/// rows, notes of which a partition never holds more than some, and registers that are stamped inside a lock.
namespace varve::protocol {

struct Deposited {
    std::int64_t cents;
    std::int64_t operation;  ///< unique: which command's it was
};
struct Withdrawn {
    std::int64_t cents;
    std::int64_t operation;
};
struct Deposit {
    std::int64_t cents;
    std::int64_t operation;
};
struct Withdraw {
    std::int64_t cents;
    std::int64_t operation;
};

struct Account {
    static constexpr std::string_view name = "account";
    using Event = std::variant<Deposited, Withdrawn>;
    std::int64_t cents = 0;

    void apply(const Deposited& e) { cents += e.cents; }
    void apply(const Withdrawn& e) { cents -= e.cents; }
    Decision<Event> decide(const Deposit& c) const { return Deposited{c.cents, c.operation}; }
    Decision<Event> decide(const Withdraw& c) const {
        if (c.cents > cents) return reject("insufficient_funds");
        return Withdrawn{c.cents, c.operation};
    }
};

/// What a command wants done outside once it has committed.
struct Announce {
    std::int64_t operation;
};

/// An account without money has no row: rows come and go.
struct Balance {
    static constexpr std::string_view table = "balances";
    std::int64_t cents = 0;
};

struct ProjectBalance {
    void operator()(const Deposited& e, ProjectionContext& context) const { add(context, e.cents); }
    void operator()(const Withdrawn& e, ProjectionContext& context) const { add(context, -e.cents); }

  private:
    static void add(ProjectionContext& context, std::int64_t cents) {
        auto rows = context.rows<Balance>();
        Balance row = rows.get(context.aggregate_id()).value_or(Balance{});
        row.cents += cents;
        if (row.cents == 0) {
            rows.erase(context.aggregate_id());
        } else {
            rows.put(context.aggregate_id(), row);
        }
    }
};

/// The same, and a balance comes along with its account when that is loaded.
struct ProjectOwnBalance : ProjectBalance {
    using OwnRows = Balance;
};

struct Appended {
    std::int64_t value;
};
struct AppendValue {
    std::int64_t value;
};

struct List {
    static constexpr std::string_view name = "list";
    static constexpr SnapshotPolicy snapshots{.every_slots = 2};
    using Event = std::variant<Appended>;
    std::vector<std::int64_t> values;

    void apply(const Appended& e) { values.push_back(e.value); }
    Decision<Event> decide(const AppendValue& c) const { return Appended{c.value}; }
};

struct ListRow {
    static constexpr std::string_view table = "lists";
    std::vector<std::int64_t> values;
};

/// No two have the same mark.
struct Note {
    static constexpr std::string_view table = "notes";
    static constexpr bool sorted = true;
    std::int64_t operation = 0;
    std::int64_t mark = 0;
    using Indexes = varve::Indexes<varve::Unique<&Note::mark>, varve::Index<&Note::operation>>;
};
inline constexpr std::int64_t marks = 12;
inline constexpr std::size_t notes_max = 3;

/// Who was inside the lock, in the order of commits.
struct Stamped {
    std::int64_t fence = 0;
    std::int64_t section = 0;
    std::int64_t operation = 0;
};
struct Stamp {
    Stamped what;
};

struct Register {
    static constexpr std::string_view name = "register";
    using Event = std::variant<Stamped>;
    std::vector<Stamped> stamps;

    void apply(const Stamped& e) { stamps.push_back(e); }
    Decision<Event> decide(const Stamp& c) const { return c.what; }
};
inline constexpr const char* registers[] = {"a", "b"};
inline constexpr const char* section_lock = "section";

}  // namespace varve::protocol
