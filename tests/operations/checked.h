#pragma once

#include "commands/checkpoint.h"
#include "commands/parked_row.h"
#include "commands/timers.h"
#include "support/account.h"
#include "support/coordinator_of.h"
#include "transactions/claim.h"
#include "transactions/slot.h"

#include <varve/operations/check.h>
#include <varve/rows/indexes.h>
#include <varve/store/item_store.h>
#include <varve/testing/manual_world.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

/// What the tests of checks share: a store in which there is something of everything, and how to break it.
namespace varve::operations {

using namespace account;
using namespace std::chrono_literals;

struct Client {
    static constexpr std::string_view table = "customers";
    std::string email, city;
    std::int64_t since = 0;
    std::optional<std::string> voucher = {};
    double rate = 0;
    Time joined = {};
    using Indexes = varve::Indexes<Unique<&Client::email>, Index<&Client::city>, Index<&Client::since>,
                                   Unique<&Client::voucher>, Index<&Client::rate>, Index<&Client::joined>>;
};

/// Has snapshots.
struct Counter {
    static constexpr std::string_view name = "counter";
    static constexpr SnapshotPolicy snapshots{.every_slots = 2};
    using Event = std::variant<Deposited>;
    std::int64_t cents = 0;
    void apply(const Deposited& e) { cents += e.cents; }
    Decision<Event> decide(const Deposit& c) const { return Deposited{c.cents}; }
};

/// What the projection of account.h makes, by a follower.
struct Sums {
    static constexpr std::string_view table = "sums";
    std::int64_t cents = 0;
};
struct SumUp {
    static constexpr std::string_view name = "sums";
    void operator()(const Deposited& e, ProjectionContext& context) const {
        context.rows<Sums>().update(context.aggregate_id(), [&](Sums& row) { row.cents += e.cents; });
    }
};

/// "hole events/account-alice/2"
inline std::vector<std::string> rules_and_items(const CheckReport& report) {
    std::vector<std::string> found;
    for (const Finding& one : report.findings) {
        found.push_back(one.rule + " " + one.item);
        EXPECT_FALSE(one.what.empty());
    }
    return found;
}

inline std::string described(const CheckReport& report) {
    std::string text;
    for (const Finding& one : report.findings) text += one.rule + " " + one.item + ": " + one.what + "\n";
    for (const std::string& why : report.not_checked) text += "not checked: " + why + "\n";
    return text;
}

inline void expect_clean(const CheckReport& report) {
    EXPECT_TRUE(report.holds()) << described(report);
}

using Found = std::vector<std::string>;

/// Changes items by hand.
class Tampering {
  public:
    explicit Tampering(std::shared_ptr<store::ItemStore> store) : store_(std::move(store)) {}

    void put(const store::Key& key, store::Item item) { write({key, store::Put{std::move(item)}}); }
    void erase(const store::Key& key) { write({key, store::Erase{}}); }
    void change(const store::Key& key, store::Item set, std::vector<std::string> remove = {}) {
        ASSERT_TRUE(item(key)) << store::to_string(key) << " is not there to be changed";
        write({key, store::Update{std::move(set), std::move(remove)}});
    }
    std::optional<store::Item> item(const store::Key& key) { return store_->read({&key, 1}).front(); }
    /// All keys of a table.
    std::vector<store::Key> keys(const std::string& table) {
        std::vector<store::Key> keys;
        store::Scan scan{.table = table};
        do {
            store::Page page = store_->scan(scan);
            for (store::Record& record : page.records) keys.push_back(std::move(record.key));
            scan.next = std::move(page.next);
        } while (scan.next);
        return keys;
    }

  private:
    void write(const store::Write& write) {
        const store::WriteAnswer answer = store_->write({&write, 1}).front();
        ASSERT_TRUE(std::holds_alternative<store::Applied>(answer)) << store::to_string(write.key);
    }

    const std::shared_ptr<store::ItemStore> store_;
};

inline store::Key slot(const std::string& stream, Version version) {
    return transactions::slot_key(stream, version);
}

inline store::Item claimed_by(const std::string& tx, const store::Key& primary, std::int64_t epoch = 0) {
    store::Item item;
    transactions::put_claim(item, {.tx = tx,
                                   .primary = primary,
                                   .primary_epoch = epoch,
                                   .lease = Time{1s},
                                   .priority = Time{1s},
                                   .lease_length = 1s});
    return item;
}

/// A pending slot with one event.
inline store::Item pending_slot(const std::string& tx, const store::Key& primary, std::int64_t epoch = 0) {
    store::Item item = claimed_by(tx, primary);
    item.merge(store::Item{{"state", "pending"},
                           {"epoch", epoch},
                           {"write_id", tx},
                           {"time", std::int64_t{1'000'000}},
                           {"events", R"([{"type":"Deposited","data":{"cents":1}}])"}});
    return item;
}

inline store::Item committed_slot(const std::string& tx) {
    return {{"state", "committed"},
            {"write_id", tx},
            {"time", std::int64_t{1'000'000}},
            {"events", R"([{"type":"Deposited","data":{"cents":1}}])"}};
}

inline detail::Checkpoint checkpoint_at(std::int64_t position, std::int64_t parked = 0) {
    detail::Checkpoint checkpoint;
    checkpoint.position = position;
    checkpoint.parked = parked;
    return checkpoint;
}

/// A stream that is set aside from its first slot on.
inline detail::ParkedRow set_aside() {
    detail::ParkedRow row;
    row.version = 1;
    return row;
}

inline detail::TimerRow timer_due(const std::string& due) {
    detail::TimerRow row;
    row.due = parse_time(due);
    row.instance = "i";
    row.type = "T";
    row.data = "{}";
    return row;
}

}  // namespace varve::operations
