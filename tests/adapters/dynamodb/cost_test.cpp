// What commands cost on the wire: round trips are counted, not timed.

#include "each_server.h"
#include "support/account.h"
#include "support/scripted_server.h"

#include <varve/dynamodb/dynamodb.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/later.h>

#include <condition_variable>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using namespace account;
using transactions::Strategy;

/// A server that answers nobody until so many requests are with it at once.
class Gate {
  public:
    explicit Gate(std::size_t opens_at) : opens_at_(opens_at) {}

    ScriptedServer::Reply pass() {
        std::unique_lock lock{mutex_};
        ++waiting_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return waiting_ >= opens_at_; });
        return {ScriptedServer::answer(200, "{}")};
    }

  private:
    const std::size_t opens_at_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t waiting_ = 0;  // guarded by mutex_
};

TEST(RoundTrips, the_writes_of_a_batch_are_all_in_flight_at_once) {
    constexpr int writes = 100;
    Gate gate{writes};
    ScriptedServer server{[&gate](const ScriptedServer::Request& request, std::size_t) {
        if (request.header("x-amz-target").ends_with("PutItem")) return gate.pass();
        return ScriptedServer::Reply{ScriptedServer::answer(
            200, R"({"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],)"
                 R"("AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}})")};
    }};
    const auto store = dynamodb::open({.host = server.address(), .prefix = "bank", .region = "eu-west-1"});
    store->ensure_table({.name = "items", .partition_attribute = "id"});
    std::vector<store::Write> batch;
    for (int i = 0; i < writes; ++i)
        batch.push_back({{.table = "items", .partition = std::to_string(i)}, store::Put{}, !store::item_exists()});
    for (const store::WriteAnswer& answer : store->write(batch))
        EXPECT_TRUE(std::holds_alternative<store::Applied>(answer));
}

class Costs : public EachServer {
  protected:
    void SetUp() override {
        EachServer::SetUp();
        if (!server_) return;
        store_ = std::make_shared<testing::CountingStore>(varve::open(server_->url("bank")));
    }

    /// Round trips until `command` is acknowledged; what comes after it is done before the next.
    double round_trips(testing::Later& later, const std::function<void(int i)>& command) {
        constexpr int times = 20;
        for (int i = 0; i < times; ++i) {
            command(i);
            later.drain();
        }
        std::uint64_t sum = 0;
        for (int i = 0; i < times; ++i) {
            store_->reset();
            command(i);
            sum += store_->counts().round_trips();
            later.drain();
        }
        return static_cast<double>(sum) / times;
    }

    std::shared_ptr<testing::CountingStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Each, Costs, each_kind(), name_of_kind);

TEST_P(Costs, a_command_on_a_known_aggregate_takes_one_round_trip) {
    testing::Later later;
    Application bank{store_, {.sweep = false, .executor = &later}};
    EXPECT_LE(round_trips(later, [&](int) { ASSERT_TRUE(bank.execute<Account>("alice", Deposit{1})); }), 1.1);
}

struct KeepBalance : ProjectBalance {
    using OwnRows = Balance;
};

TEST_P(Costs, a_transfer_with_rows_reads_in_one_round_trip_and_nothing_that_is_known) {
    const std::vector<std::string> ids{"alice", "bob"};
    testing::Later later;
    {
        Application bank{store_, {.sweep = false, .executor = &later}};
        bank.project<Account>(KeepBalance{});
        for (const std::string& id : ids) ASSERT_TRUE(bank.execute<Account>(id, Deposit{100}));
        later.drain();
    }
    Application bank{store_, {.sweep = false, .executor = &later}};
    bank.project<Account>(KeepBalance{});
    static_cast<void>(bank.rows<Balance>().get("nobody"));  // a table's first use reads what indexes it has
    const auto reads = [&] {
        store_->reset();
        EXPECT_TRUE(bank.transact([&](Transaction& tx) {
            tx.load_all<Account>(ids);
            tx.execute<Account>("alice", Withdraw{1});
            tx.execute<Account>("bob", Deposit{1});
        }));
        const testing::RequestCounts counts = store_->counts();
        later.drain();
        return counts.round_trips() - counts.atomic_batches - counts.write_batches;
    };
    EXPECT_EQ(reads(), 1U) << "cold";
    // Rows are only intended when the commit is acknowledged, so they are read again.
    for (int again = 0; again < 3; ++again) EXPECT_EQ(reads(), 1U) << "warm";
}

TEST(RoundTrips, what_is_read_together_is_all_in_flight_at_once) {
    constexpr int queries = 5;
    Gate gate{queries + 1};
    ScriptedServer server{[&gate](const ScriptedServer::Request& request, std::size_t) {
        const std::string target{request.header("x-amz-target")};
        if (target.ends_with("DescribeTable")) {
            return ScriptedServer::Reply{ScriptedServer::answer(
                200, R"({"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"id","KeyType":"HASH"},)"
                     R"({"AttributeName":"n","KeyType":"RANGE"}],"AttributeDefinitions":[)"
                     R"({"AttributeName":"id","AttributeType":"S"},{"AttributeName":"n","AttributeType":"N"}]}})")};
        }
        static_cast<void>(gate.pass());
        return ScriptedServer::Reply{ScriptedServer::answer(
            200, target.ends_with("Query") ? R"({"Items":[]})" : R"({"Responses":{},"UnprocessedKeys":{}})")};
    }};
    const auto store = dynamodb::open({.host = server.address(), .prefix = "bank", .region = "eu-west-1"});
    store->ensure_table(
        {.name = "items", .partition_attribute = "id", .sort_attribute = "n", .sort = store::SortType::integer});
    const std::vector<store::Key> keys{{"items", "a", 1}, {"items", "b", 1}};
    std::vector<store::Query> ranges;
    for (int i = 0; i < queries; ++i) ranges.push_back({.table = "items", .partition = std::to_string(i)});
    EXPECT_EQ(store->read_together(keys, ranges).pages.size(), ranges.size());
}

TEST_P(Costs, a_transfer_takes_as_many_round_trips_whatever_its_size) {
    for (const int n : {2, 5, 25}) {
        testing::Later later;
        Application bank{store_,
                         {.transactions = {.strategy = Strategy::protocol}, .sweep = false, .executor = &later}};
        const double taken = round_trips(later, [&](int) {
            ASSERT_TRUE(bank.transact([&](Transaction& tx) {
                for (int i = 0; i < n; ++i)
                    tx.execute<Account>(std::to_string(n) + "." + std::to_string(i), Deposit{1});
            }));
        });
        EXPECT_LE(taken, 2.2) << n;
    }
}

}  // namespace
}  // namespace varve::dynamodb
