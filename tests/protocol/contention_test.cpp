#include "protocol/domain.h"
#include "protocol/ledger.h"
#include "protocol/scheduling.h"

#include <varve/memory/memory.h>
#include <varve/store/item_store.h>
#include <varve/testing/passing_store.h>
#include <varve/transactions/metrics.h>

#include <gtest/gtest.h>

/// Transactions in each other's way, in virtual time. Nobody sweeps, so that whoever is blocked must free itself.
namespace varve::protocol {
namespace {

using namespace std::chrono_literals;

/// The process has died here, on the way to the store or back.
struct Died {};

/// One process's connection: every request takes 300 to 700 microseconds, while others go on.
class CrowdedStore final : public testing::PassingStore {
  public:
    CrowdedStore(std::shared_ptr<store::ItemStore> inner, Scheduler& scheduler, testing::SeededRandom& random)
        : PassingStore(std::move(inner)), scheduler_(scheduler), random_(random) {}

    /// Called before the n-th write that this process sends, counted from 1.
    std::function<void(std::size_t)> before_write = [](std::size_t) {};

    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        take_a_moment();
        return inner().read(keys);
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        std::vector<store::WriteAnswer> answers;
        for (const store::Write& one : writes) {
            before_write(++writes_);
            take_a_moment();
            answers.push_back(inner().write({&one, 1}).front());
        }
        return answers;
    }
    store::Page query(const store::Query& query) override {
        take_a_moment();
        return inner().query(query);
    }

  private:
    void take_a_moment() { scheduler_.sleep(300us + Duration{static_cast<Duration::rep>(random_.below(400))}); }

    Scheduler& scheduler_;
    testing::SeededRandom& random_;
    std::size_t writes_ = 0;
};

/// Some processes over one store, and the time they take.
struct Crowd {
    struct Process {
        SimulatedExecutor executor;
        std::shared_ptr<CrowdedStore> store;
        Application application;

        explicit Process(Crowd& crowd)
            : executor(crowd.scheduler, 4),
              store(std::make_shared<CrowdedStore>(crowd.ledger, crowd.scheduler, crowd.random)),
              application(store, {.retry = {.time_max = 120s},
                                  .transactions = {.strategy = transactions::Strategy::protocol},
                                  .sweep = false,
                                  .runtime = {crowd.clock, crowd.random, Log::standard_error()},
                                  .executor = &executor}) {}
    };

    explicit Crowd(std::uint64_t seed) : scheduler(seed), random(seed) {}

    /// Runs `body` as a simulated thread until all that it spawned has ended.
    void run(std::function<void()> body) {
        scheduler.spawn(std::move(body));
        scheduler.run();
    }
    /// Spawns a client and returns at once; `wait` waits for all of them.
    void client(std::function<void()> body) {
        ++clients;
        scheduler.spawn([this, body = std::move(body)] {
            try {
                body();
            } catch (const Died&) {
            } catch (const Error& error) {
                ADD_FAILURE() << error.what();
            }
            --clients;
        });
    }
    void wait() {
        while (clients > 0) scheduler.sleep(1ms);
    }
    /// All that was committed is whole, and nothing else has left anything.
    void expect_whole() {
        for (const std::string& violation : ledger->violations_at_rest({"events"})) ADD_FAILURE() << violation;
    }

    Scheduler scheduler;
    std::shared_ptr<Ledger> ledger = std::make_shared<Ledger>(memory::open());
    TrueClock clock{scheduler};
    testing::SeededRandom random;
    std::size_t clients = 0;
};

Outcome transfer(Application& bank, const std::string& from, const std::string& to) {
    return bank.transact([&](Transaction& tx) {
        tx.execute<Account>(from, Withdraw{1, 0});
        tx.execute<Account>(to, Deposit{1, 0});
    });
}

struct Load {
    std::uint64_t seed;
    int processes;
    int pairs;      ///< of clients, one this way, one the other
    int transfers;  ///< of each, one after the other
};

class OpposingTransfers : public ::testing::TestWithParam<Load> {};

TEST_P(OpposingTransfers, in_a_loop_settle_within_20_ms_each) {
    const Load load = GetParam();
    Crowd crowd{load.seed};
    const int transfers = 2 * load.pairs * load.transfers;
    Duration took{};
    crowd.run([&] {
        std::vector<std::unique_ptr<Crowd::Process>> processes;
        for (int i = 0; i < load.processes; ++i) processes.push_back(std::make_unique<Crowd::Process>(crowd));
        Application& bank = processes.front()->application;
        for (const char* name : {"a", "b"}) bank.execute<Account>(name, Deposit{1000, 0}).value();
        const Time began = crowd.scheduler.now();
        int committed = 0;
        for (int i = 0; i < 2 * load.pairs; ++i) {
            crowd.client([&, i] {
                Application& mine = processes[static_cast<std::size_t>(i / 2 % load.processes)]->application;
                for (int n = 0; n < load.transfers; ++n) {
                    committed += transfer(mine, i % 2 == 0 ? "a" : "b", i % 2 == 0 ? "b" : "a").has_value();
                }
            });
        }
        crowd.wait();
        took = crowd.scheduler.now() - began;
        for (const auto& process : processes) process->executor.drain();
        EXPECT_EQ(committed, transfers);
        EXPECT_EQ(bank.load<Account>("a").state.cents + bank.load<Account>("b").state.cents, 2000);
    });
    // One transfer alone takes 2 ms: two reads or one, two writes one after the other.
    EXPECT_LT(took, 200ms + transfers * 20ms);
    std::cout << "[ " << std::chrono::duration<double>(took).count() << " s simulated ]\n";
    crowd.expect_whole();
}

INSTANTIATE_TEST_SUITE_P(Loads, OpposingTransfers,
                         ::testing::Values(Load{1, 1, 50, 4}, Load{2, 5, 50, 4}, Load{3, 10, 50, 2}, Load{4, 1, 50, 1},
                                           Load{5, 5, 10, 8}, Load{6, 2, 1, 100}));

class Seeds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, a_command_over_five_aggregates_gets_through_hot_writers_in_a_bounded_number_of_attempts) {
    Crowd crowd{GetParam()};
    crowd.run([&] {
        Crowd::Process hot{crowd};
        Crowd::Process cold{crowd};
        const std::vector<std::string> accounts{"a", "b", "c", "d", "e"};
        for (const std::string& account : accounts) hot.application.execute<Account>(account, Deposit{1000, 0}).value();
        bool done = false;
        std::size_t deposits = 0;
        for (const std::string& account : accounts) {
            for (int n = 0; n < 2; ++n) {
                crowd.client([&] {
                    while (!done) deposits += hot.application.execute<Account>(account, Deposit{1, 0}).has_value();
                });
            }
        }
        crowd.client([&] {
            for (int n = 0; n < 5; ++n) {
                const Time began = crowd.scheduler.now();
                const Outcome outcome = cold.application.transact([&](Transaction& tx) {
                    for (const std::string& account : accounts) tx.execute<Account>(account, Withdraw{1, n});
                });
                ASSERT_TRUE(outcome);

                // Once it reserves, only who is older can end it: each of the writers with one command at most.
                EXPECT_LE(outcome->attempts, Escalation{}.reserve_after + 1 + 2 * accounts.size());
                EXPECT_LT(crowd.scheduler.now() - began, 1s);
            }
            done = true;
        });
        crowd.wait();
        for (Crowd::Process* process : {&hot, &cold}) process->executor.drain();
        EXPECT_GT(deposits, 1000u) << "the writers were not hot";
        EXPECT_GT(cold.application.metrics().committed_by[static_cast<std::size_t>(transactions::Path::reserved)], 0u)
            << "nobody was in its way";
    });
    crowd.expect_whole();
}

/// As many processes as there are seats at a round table. Each pays its neighbour, from the account between them to the
/// next.
struct Ring {
    Crowd& crowd;
    std::vector<std::unique_ptr<Crowd::Process>> seats;

    Ring(Crowd& in, std::size_t count) : crowd(in) {
        for (std::size_t i = 0; i < count; ++i) {
            seats.push_back(std::make_unique<Crowd::Process>(crowd));
            seats.back()->application.execute<Account>(std::to_string(i), Deposit{1000, 0}).value();
        }
    }
    /// All at once, so often; returns how long it took until each was through, or dead.
    Duration pay(int times) {
        const Time began = crowd.scheduler.now();
        for (std::size_t i = 0; i < seats.size(); ++i) {
            crowd.client([this, i, times] {
                const std::string to = std::to_string((i + 1) % seats.size());
                for (int n = 0; n < times; ++n) transfer(seats[i]->application, std::to_string(i), to).value();
            });
        }
        crowd.wait();
        const Duration took = crowd.scheduler.now() - began;
        for (const auto& seat : seats) seat->executor.drain();
        return took;
    }
};

TEST_P(Seeds, who_dine_in_a_ring_all_finish) {
    Crowd crowd{GetParam()};
    Duration took{};
    crowd.run([&] { took = Ring{crowd, 7}.pay(20); });
    EXPECT_LT(took, 2s);
    crowd.expect_whole();
}

TEST_P(Seeds, who_dies_in_a_ring_blocks_its_neighbours_for_a_lease_and_nobody_for_ever) {
    Crowd crowd{GetParam()};
    const transactions::Options defaults;
    Duration took{};
    crowd.run([&] {
        Ring ring{crowd, 5};
        for (std::size_t i = 1; i < ring.seats.size(); i += 2) {  // dies at one of its next writes, whatever it holds
            ring.seats[i]->store->before_write = [left = 1 + crowd.random.below(12)](std::size_t) mutable {
                if (left == 0 || --left == 0) throw Died{};
            };
        }
        took = ring.pay(10);
        // Whoever comes by clears what the dead have left.
        Crowd::Process last{crowd};
        for (std::size_t i = 0; i < ring.seats.size(); ++i)
            last.application.execute<Account>(std::to_string(i), Deposit{1, 0}).value();
    });
    EXPECT_LT(took, 2 * defaults.lease);
    crowd.expect_whole();
}

INSTANTIATE_TEST_SUITE_P(Contention, Seeds, ::testing::Range(std::uint64_t{1}, std::uint64_t{9}));

TEST(Fenced, asleep_before_any_of_its_writes_a_transaction_commits_whole_or_leaves_nothing) {
    std::size_t at_commit = 0;
    bool reached = true;
    for (std::size_t at = 1; reached; ++at) {
        Crowd crowd{at};
        reached = false;
        std::size_t fenced = 0;
        unsigned attempts = 0;
        crowd.run([&] {
            Crowd::Process older{crowd};
            Crowd::Process younger{crowd};
            for (const char* name : {"a", "b", "c"}) older.application.execute<Account>(name, Deposit{1000, 0}).value();

            // One command has begun, and finds the other one in its way, which sleeps for more than a lease with a
            // write in hand.
            bool younger_sleeps = false;
            crowd.client([&] {
                const Outcome outcome = older.application.transact([&](Transaction& tx) {
                    tx.execute<Account>("c", Withdraw{1, 1});
                    while (!younger_sleeps) crowd.scheduler.sleep(100us);
                    tx.execute<Account>("b", Deposit{1, 1});
                });
                EXPECT_TRUE(outcome);
            });
            younger.store->before_write = [&, written = std::size_t{0}](std::size_t) mutable {
                if (++written != at) return;
                reached = younger_sleeps = true;
                crowd.scheduler.sleep(7s);
            };
            crowd.client([&] {
                crowd.scheduler.sleep(2ms);
                const Outcome outcome = younger.application.transact([&](Transaction& tx) {
                    for (const char* name : {"a", "b", "c"}) tx.execute<Account>(name, Deposit{1, 2});
                });
                attempts = outcome.value().attempts;
                younger_sleeps = true;
            });
            crowd.wait();
            for (Crowd::Process* process : {&older, &younger}) process->executor.drain();
            fenced = older.application.metrics().fenced;
            for (const char* name : {"b", "c"}) older.application.execute<Account>(name, Deposit{1, 0}).value();
        });
        crowd.expect_whole();
        if (!reached) break;
        // Its writes are two prepares and the commit, for which all stood ready.
        if (at == 3) {
            at_commit = fenced;
            EXPECT_EQ(attempts, 2u);
        }
    }
    EXPECT_EQ(at_commit, 1u) << "it was never fenced when it was about to commit";
}

}  // namespace
}  // namespace varve::protocol
