#include "protocol/domain.h"
#include "protocol/ledger.h"
#include "protocol/scheduler.h"

#include <varve/memory/memory.h>

#include <gtest/gtest.h>

/// Transactions in each other's way, in virtual time; nobody sweeps, nothing fails.
namespace varve::protocol {
namespace {

using namespace std::chrono_literals;

/// Takes a moment for every request, and lets others go on meanwhile.
class SlowStore final : public store::ItemStore {
  public:
    SlowStore(std::shared_ptr<store::ItemStore> inner, Scheduler& scheduler)
        : inner_(std::move(inner)), scheduler_(scheduler) {}

    void ensure_table(const store::TableSchema& schema) override { inner_->ensure_table(schema); }
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        scheduler_.sleep(500us);
        return inner_->read(keys);
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        std::vector<store::WriteAnswer> answers;
        for (const store::Write& one : writes) {
            scheduler_.sleep(500us);
            answers.push_back(inner_->write({&one, 1}).front());
        }
        return answers;
    }
    store::Page query(const store::Query& query) override {
        scheduler_.sleep(500us);
        return inner_->query(query);
    }
    store::Page scan(const store::Scan& scan) override { return inner_->scan(scan); }
    store::Capabilities capabilities() const override { return inner_->capabilities(); }

  private:
    const std::shared_ptr<store::ItemStore> inner_;
    Scheduler& scheduler_;
};

struct Load {
    std::uint64_t seed;
    int pairs;      ///< of clients, one this way, one the other
    int transfers;  ///< of each, one after the other
};

class Contention : public ::testing::TestWithParam<Load> {};

TEST_P(Contention, opposing_transfers_settle_without_a_sweeper_and_none_half_commits) {
    const auto [seed, pairs, transfers] = GetParam();
    Scheduler scheduler{seed};
    const auto ledger = std::make_shared<Ledger>(memory::open());
    TrueClock clock{scheduler};
    testing::SeededRandom random{seed};
    const Time began = scheduler.now();
    std::size_t committed = 0;
    std::int64_t sum = 0;
    scheduler.spawn([&, pairs = pairs, transfers = transfers] {
        SimulatedExecutor executor{scheduler, 4};
        Application bank{std::make_shared<SlowStore>(ledger, scheduler),
                         {.retry = {.time_max = 120s},
                          .transactions = {.strategy = transactions::Strategy::protocol},
                          .sweep = false,
                          .runtime = {clock, random, Log::standard_error()},
                          .executor = &executor}};
        for (const char* name : {"a", "b"}) bank.execute<Account>(name, Deposit{1000, 0}).value();
        std::size_t running = 2 * pairs;
        for (int i = 0; i < 2 * pairs; ++i) {
            scheduler.spawn([&, i, transfers = transfers] {
                const char* from = i % 2 == 0 ? "a" : "b";
                const char* to = i % 2 == 0 ? "b" : "a";
                for (int n = 0; n < transfers; ++n) {
                    try {
                        committed += bank.transact([&](Transaction& tx) {
                                             tx.execute<Account>(from, Withdraw{1, i});
                                             tx.execute<Account>(to, Deposit{1, i});
                                         })
                                         .has_value();
                    } catch (const Error& error) {
                        ADD_FAILURE() << error.what();
                    }
                }
                --running;
            });
        }
        while (running > 0) scheduler.sleep(10ms);
        executor.drain();
        sum = bank.load<Account>("a").state.cents + bank.load<Account>("b").state.cents;
    });
    scheduler.run();
    EXPECT_EQ(committed, static_cast<std::size_t>(2 * pairs * transfers));
    EXPECT_EQ(sum, 2000);
    EXPECT_LT(scheduler.now() - began, 30s);
    for (const std::string& violation : ledger->violations_at_rest({"events"})) ADD_FAILURE() << violation;
}

INSTANTIATE_TEST_SUITE_P(Loads, Contention,
                         ::testing::Values(Load{1, 50, 1}, Load{2, 50, 1}, Load{3, 10, 8}, Load{4, 10, 8},
                                           Load{5, 1, 100}));

}  // namespace
}  // namespace varve::protocol
