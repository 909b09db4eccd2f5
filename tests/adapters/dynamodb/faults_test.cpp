// Commands over a network that loses, repeats, delays and damages what passes: each happens exactly once, or never, or
// is told to be in doubt.

#include "adapters/on_servers/faulty_commands.h"
#include "each_server.h"
#include "fault_proxy.h"

#include <varve/dynamodb/dynamodb.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/seeded_random.h>

#include <algorithm>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using namespace on_servers;

class FaultyNetwork : public ::testing::TestWithParam<LocalServer::Kind> {
  protected:
    void SetUp() override {
        std::cout << "seed=" << seed() << '\n';
        server_ = server_or_skip(GetParam());
        if (!server_) return;
        proxy_.emplace(server_->port(), FaultProxy::Options{.fault = fault_of});
    }

    static Fault fault_of(std::size_t number) { return static_cast<Fault>(drawn_fault(number, fault_kinds, 10, 400)); }

    std::shared_ptr<store::ItemStore> open_through_proxy() {
        return dynamodb::open({.host = proxy_->address(),
                               .prefix = "bank",
                               .timeout = std::chrono::seconds{1},
                               .runtime = {.clock = clock_}});
    }

    void expect_faults(std::size_t at_least) const {
        EXPECT_GE(proxy_->faults(), at_least);
        for (std::size_t i = 1; i < fault_kinds; ++i)
            EXPECT_GE(proxy_->count(static_cast<Fault>(i)), 2U) << described(static_cast<Fault>(i));
    }

    testing::SeededRandom random_{seed()};
    testing::ManualClock clock_{testing::ManualClock::Mode::auto_advance};
    std::unique_ptr<LocalServer> server_;
    std::optional<FaultProxy> proxy_;
};

INSTANTIATE_TEST_SUITE_P(Each, FaultyNetwork, each_kind(), name_of_kind);

TEST_P(FaultyNetwork, lets_every_command_happen_exactly_once_or_never_or_be_told_in_doubt) {
    SCOPED_TRACE(replay());
    constexpr std::size_t faults = 500;
    Application clean{varve::open(server_->url("bank"))};
    open_accounts(clean);

    std::deque<Worker> workers;
    {
        // What sweeps and puts events in order waits in this clock, too, and so moves it on for the commands.
        Application bank{
            open_through_proxy(),
            {.retry = {.time_max = std::chrono::hours{1000}},
             .transactions = {.retention = std::chrono::hours{3}, .answer_time_max = std::chrono::hours{1}},
             .runtime = {.clock = clock_}}};
        workers = run_workers(
            bank, [&] { return proxy_->faults() >= faults; }, seed());
    }
    proxy_->heal();
    expect_faults(faults);

    std::cout << proxy_->requests() << " requests, " << proxy_->faults() << " faults; ";
    expect_told_truly(clean, workers);
}

/// What the port answers is true, whatever the network does; each key is written once.
TEST_P(FaultyNetwork, lets_no_write_be_answered_otherwise_than_it_went) {
    SCOPED_TRACE(replay());
    constexpr std::size_t faults = 300;
    constexpr int writes_max = 10'000;
    const store::TableSchema items{
        .name = "items", .partition_attribute = "p", .sort_attribute = "n", .sort = store::SortType::integer};
    const auto key_of = [](int i) { return store::Key{.table = "items", .partition = "a", .sort = i}; };
    const auto item_of = [](int i) { return store::Item{{"value", i}}; };
    const auto clean = varve::open(server_->url("bank"));
    clean->ensure_table(items);
    const auto store = open_through_proxy();
    store->ensure_table(items);

    enum class Must { be_there, be_absent, be_there_or_not };
    struct Batch {
        int first;
        int count;
        std::vector<Must> must;  ///< of each item
    };
    const auto must = [](const Failure& failure) { return failure.in_doubt ? Must::be_there_or_not : Must::be_absent; };
    std::vector<Batch> batches;
    int in_doubt = 0;
    int next = 0;
    while (proxy_->faults() < faults && next < writes_max) {
        Batch batch{.first = next, .count = 1 + static_cast<int>(random_.next() % 4), .must = {}};
        std::vector<store::Write> writes;
        for (int i = 0; i < batch.count; ++i, ++next)
            writes.push_back({key_of(next), store::Put{item_of(next)}, !store::item_exists()});
        for (const store::WriteAnswer& answer : store->write(writes)) {
            const auto* failure = std::get_if<Failure>(&answer);
            // What is delivered twice may be refused by itself.
            if (const auto* refused = std::get_if<store::Refused>(&answer)) {
                EXPECT_EQ(refused->current, item_of(batch.first + static_cast<int>(batch.must.size())));
            }
            batch.must.push_back(failure != nullptr ? must(*failure) : Must::be_there);
        }
        in_doubt += static_cast<int>(std::ranges::count(batch.must, Must::be_there_or_not));
        batches.push_back(std::move(batch));
        try {
            const int known = static_cast<int>(random_.next() % static_cast<std::uint64_t>(next));
            const store::Key key = key_of(known);
            const auto found = store->read({&key, 1}).at(0);
            if (found) {
                EXPECT_EQ(*found, item_of(known));
            }
            store::Query query{.table = "items", .partition = "a", .first = known, .last = known + 20};
            for (const store::Record& record : store->query(query).records)
                EXPECT_EQ(record.item, item_of(static_cast<int>(std::get<std::int64_t>(record.key.sort))));
        } catch (const UnavailableError&) {
        }
    }
    proxy_->heal();
    expect_faults(faults);
    EXPECT_GT(in_doubt, 0);

    for (const Batch& batch : batches) {
        std::vector<store::Key> keys;
        for (int i = 0; i < batch.count; ++i) keys.push_back(key_of(batch.first + i));
        const auto found = clean->read(keys);
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (batch.must[i] == Must::be_there_or_not) continue;
            EXPECT_EQ(found[i].has_value(), batch.must[i] == Must::be_there) << to_string(keys[i]);
        }
    }
    std::cout << proxy_->requests() << " requests, " << proxy_->faults() << " faults; " << next << " writes, "
              << in_doubt << " of them in doubt\n";
}

}  // namespace
}  // namespace varve::dynamodb
