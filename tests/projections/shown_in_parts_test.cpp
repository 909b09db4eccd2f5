// Where a part of an atomic write may show before the rest.

#include "support/account.h"

#include <varve/store/item_store.h>
#include <varve/testing/manual_world.h>
#include <varve/testing/passing_store.h>

#include <map>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using transactions::Isolation;
using transactions::Path;

struct Guest {
    static constexpr std::string_view table = "guests";
    static constexpr bool sorted = true;
    std::string name;
};

/// Of what an atomic batch has written, items of the partition `late_` show as they were, until they are read isolated
/// or written again.
class ShowsInParts final : public testing::PassingStore {
  public:
    using PassingStore::PassingStore;

    std::string late;
    std::size_t isolated_reads = 0;

    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        auto items = inner().read(keys);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (const auto before = before_.find(keys[i]); before != before_.end()) items[i] = before->second;
        }
        return items;
    }
    std::vector<std::optional<store::Item>> read_isolated(std::span<const store::Key> keys) override {
        for (const store::Key& key : keys) before_.erase(key);
        isolated_reads += keys.size();
        return inner().read(keys);
    }
    store::Page query(const store::Query& query) override {
        store::Page page = inner().query(query);
        for (store::Record& record : page.records) {
            const auto before = before_.find(record.key);
            if (before != before_.end() && before->second) record.item = *before->second;
        }
        std::erase_if(page.records, [this](const store::Record& record) {
            const auto before = before_.find(record.key);
            return before != before_.end() && !before->second;
        });
        return page;
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        for (const store::Write& one : writes) before_.erase(one.key);
        return inner().write(writes);
    }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override {
        for (const store::Write& one : writes) {
            before_.erase(one.key);
            if (one.key.partition == late) before_.emplace(one.key, inner().read({&one.key, 1}).front());
        }
        return inner().write_atomically(writes);
    }
    store::Capabilities capabilities() const override {
        store::Capabilities capabilities = inner().capabilities();
        capabilities.isolated_atomic_writes = false;
        return capabilities;
    }

  private:
    std::map<store::Key, std::optional<store::Item>> before_;
};

class ShownInParts : public ::testing::Test {
  protected:
    const std::shared_ptr<ShowsInParts> store_ = std::make_shared<ShowsInParts>(open("memory:"));
    testing::ManualWorld world_;
    Application bank_{store_, world_.options()};
    Application other_{store_, world_.options()};

    Receipt put(std::int64_t alice, std::int64_t bob) {
        return bank_
            .transact([&](Transaction& tx) {
                tx.rows<Balance>().put("alice", {alice});
                tx.rows<Balance>().put("bob", {bob});
            })
            .value();
    }
    std::vector<std::int64_t> balances(Isolation isolation) {
        std::vector<std::int64_t> found;
        for (const auto& row : other_.rows<Balance>().get_all({"alice", "bob"}, isolation))
            found.push_back(row.value_or(Balance{}).cents);
        return found;
    }
};

TEST_F(ShownInParts, a_snapshot_sees_all_of_it) {
    put(100, 0);
    store_->late = "bob";
    EXPECT_EQ(put(40, 60).path, Path::native);
    EXPECT_EQ(balances(Isolation::committed), (std::vector<std::int64_t>{40, 0})) << "each row for itself";
    EXPECT_EQ(balances(Isolation::snapshot), (std::vector<std::int64_t>{40, 60}));
}

TEST_F(ShownInParts, a_transaction_that_only_reads_sees_all_of_it) {
    put(100, 0);
    store_->late = "bob";
    EXPECT_EQ(put(40, 60).path, Path::native);
    std::vector<std::int64_t> seen;
    const Outcome outcome = other_.transact([&](Transaction& tx) {
        seen = {tx.rows<Balance>().get("alice").value().cents, tx.rows<Balance>().get("bob").value().cents};
    });
    EXPECT_TRUE(outcome);
    EXPECT_EQ(seen, (std::vector<std::int64_t>{40, 60}));
}

TEST_F(ShownInParts, a_row_that_is_new_to_its_range_goes_by_the_protocol_and_a_change_of_it_does_not) {
    put(100, 0);
    const auto visit = [&](const std::string& name, std::int64_t cents) {
        return bank_
            .transact([&](Transaction& tx) {
                tx.rows<Guest>().put({"room", "1"}, {name});
                tx.rows<Balance>().put("alice", {cents});
            })
            .value()
            .path;
    };
    EXPECT_EQ(visit("ann", 1), Path::protocol);
    world_.later.drain();
    store_->late = "room";
    EXPECT_EQ(visit("ben", 2), Path::native);
    std::string seen;
    std::int64_t alice = 0;
    for (const auto& row : other_.rows<Guest>().range({.partition = "room"}, {}, Isolation::snapshot).rows)
        seen += row.value.name;
    EXPECT_EQ(seen, "ben");
    store_->late = "alice";
    EXPECT_EQ(visit("cid", 3), Path::native);
    const Outcome outcome = other_.transact([&](Transaction& tx) {
        seen.clear();
        alice = tx.rows<Balance>().get("alice").value().cents;
        for (const auto& row : tx.rows<Guest>().range({.partition = "room"})) seen += row.value.name;
    });
    EXPECT_TRUE(outcome);
    EXPECT_EQ(seen, "cid");
    EXPECT_EQ(alice, 3);
}

TEST_F(ShownInParts, what_one_request_checks_by_itself_is_not_read_isolated) {
    put(100, 0);
    const std::size_t before = store_->isolated_reads;
    const Outcome outcome = bank_.transact([&](Transaction& tx) {
        const std::int64_t alice = tx.rows<Balance>().get("alice").value().cents;
        tx.rows<Balance>().put("bob", {alice});
    });
    EXPECT_EQ(outcome->path, Path::native);
    EXPECT_EQ(store_->isolated_reads, before);
}

}  // namespace
}  // namespace varve
