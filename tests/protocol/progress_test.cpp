#include "protocol/domain.h"
#include "protocol/ledger.h"
#include "protocol/scheduler.h"
#include "support/passing_store.h"

#include <varve/memory/memory.h>

#include <algorithm>

#include <gtest/gtest.h>

/// Who gets through, and how soon, when everybody wants the same: in virtual time, by the protocol, with default
/// options, without any fault and without a sweeper. What is asserted is stated in docs/trust.md.
namespace varve::protocol {
namespace {

using namespace std::chrono_literals;

/// The process has died here, on the way to the store.
struct Died {};

/// A store that is far away: each request is one way underway, and its answer as long. What goes out together takes
/// effect at about the same time, others' requests between.
class FarStore final : public PassingStore {
    auto there_and_back(auto request) {
        scheduler_.sleep(one_way_);
        auto answer = request();
        scheduler_.sleep(one_way_);
        return answer;
    }

  public:
    FarStore(std::shared_ptr<store::ItemStore> inner, Scheduler& scheduler, Duration one_way)
        : PassingStore(std::move(inner)), scheduler_(scheduler), one_way_(one_way) {}

    /// Called before each request that has writes.
    std::function<void()> before_writes = [] {};

    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        return there_and_back([&] {
            std::vector<std::optional<store::Item>> items;
            for (const store::Key& key : keys) {
                if (!items.empty()) scheduler_.step();
                items.push_back(inner().read({&key, 1}).front());
            }
            return items;
        });
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        before_writes();
        return there_and_back([&] {
            std::vector<store::WriteAnswer> answers;
            for (const store::Write& one : writes) {
                if (!answers.empty()) scheduler_.step();
                answers.push_back(inner().write({&one, 1}).front());
            }
            return answers;
        });
    }
    store::Page query(const store::Query& query) override {
        return there_and_back([&] { return inner().query(query); });
    }

  private:
    Scheduler& scheduler_;
    const Duration one_way_;
};

const std::vector<std::string> accounts{"a", "b", "c", "d", "e"};

struct World {
    struct Process {
        SimulatedExecutor executor;
        std::shared_ptr<FarStore> store;
        Application application;

        explicit Process(World& world)
            : executor(world.scheduler, 2),
              store(std::make_shared<FarStore>(world.ledger, world.scheduler, world.one_way)),
              application(store, {.transactions = {.strategy = transactions::Strategy::protocol},
                                  .sweep = false,
                                  .runtime = {world.clock, world.random, Log::standard_error()},
                                  .executor = &executor}) {
            application.project<Account>(ProjectBalance{});
        }
    };

    World(std::uint64_t seed, Duration one_way_) : one_way(one_way_), scheduler(seed), random(seed) {}

    void run(std::function<void()> body) {
        scheduler.spawn(std::move(body));
        scheduler.run();
        for (const std::string& violation : ledger->violations_at_rest({"events", "balances"}))
            ADD_FAILURE() << violation;
    }

    const Duration one_way;
    Scheduler scheduler;
    std::shared_ptr<Ledger> ledger = std::make_shared<Ledger>(memory::open());
    TrueClock clock{scheduler};
    testing::SeededRandom random;
};

/// Commands that compete, and how they fare.
class Race {
  public:
    explicit Race(Scheduler& scheduler) : scheduler_(scheduler) {}

    /// One command after the other until the race ends; `body` may run several times for each.
    void runner(Application& application, std::function<void(Transaction&)> body) {
        const std::size_t me = runners_.size();
        runners_.emplace_back();
        scheduler_.spawn([this, me, &application, body = std::move(body)] {
            while (!ended()) one_command(me, application, body);
            ++finished_;
        });
    }
    void start(std::size_t commits, Duration at_most) {
        last_commit_ = began_ = scheduler_.now();
        commits_max_ = commits;
        until_ = began_ + at_most;
    }
    void wait() {
        while (finished_ < runners_.size()) scheduler_.sleep(1ms);
    }

    std::size_t commits = 0;
    Duration longest_gap{};             ///< without anybody's commit
    unsigned attempts_as_oldest = 0;    ///< at most
    Duration longest{};                 ///< of one command
    std::vector<std::string> failures;  ///< of commands
    unsigned attempts_max = 0;

  private:
    struct Runner {
        Time began = Time::max();
        unsigned bodies = 0;
        unsigned before = 0;  ///< attempts before it was the oldest
    };
    bool ended() const { return commits >= commits_max_ || scheduler_.now() >= until_; }

    void one_command(std::size_t me, Application& application, const std::function<void(Transaction&)>& body) {
        const Time began = scheduler_.now();
        runners_[me] = {.began = began};
        note_oldest();
        try {
            const Outcome outcome = application.transact([&](Transaction& tx) {
                ++runners_[me].bodies;
                if (oldest_ == me)
                    attempts_as_oldest = std::max(attempts_as_oldest, runners_[me].bodies - runners_[me].before);
                body(tx);
            });
            ++commits;
            attempts_max = std::max(attempts_max, outcome.value().attempts);
            longest_gap = std::max(longest_gap, scheduler_.now() - last_commit_);
            last_commit_ = scheduler_.now();
            longest = std::max(longest, scheduler_.now() - began);
        } catch (const Error& error) {
            failures.emplace_back(error.what());
        }
        runners_[me].began = Time::max();
        note_oldest();
    }
    void note_oldest() {
        const auto oldest =
            static_cast<std::size_t>(std::ranges::min_element(runners_, {}, &Runner::began) - runners_.begin());
        if (oldest == oldest_) return;
        oldest_ = oldest;
        runners_[oldest].before = runners_[oldest].bodies;
    }

    Scheduler& scheduler_;
    std::vector<Runner> runners_;
    std::size_t finished_ = 0;
    std::size_t oldest_ = SIZE_MAX;
    std::size_t commits_max_ = 0;
    Time began_{}, until_{}, last_commit_{};
};

struct Setting {
    Duration one_way;
    std::size_t clients;
    friend std::ostream& operator<<(std::ostream& out, const Setting& setting) {
        return out << setting.clients << " clients, " << setting.one_way.count() << " us each way";
    }
};

class Everybody : public ::testing::TestWithParam<Setting> {};

TEST_P(Everybody, gets_through_where_one_reads_all_that_the_others_write) {
    const Duration one_way = GetParam().one_way;
    const std::size_t clients = GetParam().clients;
    World world{clients, one_way};
    Race race{world.scheduler};
    world.run([&] {
        std::vector<std::unique_ptr<World::Process>> processes;
        for (std::size_t i = 0; i < clients; ++i) processes.push_back(std::make_unique<World::Process>(world));
        for (const std::string& account : accounts)
            processes[0]->application.execute<Account>(account, Deposit{1000, 0}).value();
        processes[0]->executor.drain();
        race.start(60 * clients, 60s);
        race.runner(processes[0]->application, [](Transaction& tx) {
            for (const std::string& account : accounts) {
                tx.load<Account>(account);
                static_cast<void>(tx.rows<Balance>().get(account));
            }
        });
        for (std::size_t i = 1; i < clients; ++i) {
            race.runner(processes[i]->application, [&world](Transaction& tx) {
                const std::uint64_t without = world.random.below(accounts.size());
                for (std::size_t k = 0; k < accounts.size(); ++k) {
                    if (k != without) tx.execute<Account>(accounts[k], Deposit{1, 0});
                }
            });
        }
        race.wait();
        for (const auto& process : processes) process->executor.drain();
    });
    for (const std::string& failure : race.failures) ADD_FAILURE() << failure;
    std::cout << "[ " << race.commits << " commits, longest gap " << to_string(race.longest_gap) << " = "
              << race.longest_gap / (2 * one_way) << " round trips, longest command " << to_string(race.longest)
              << ", attempts at most " << race.attempts_max << ", as the oldest " << race.attempts_as_oldest << " ]\n";
    EXPECT_LE(race.attempts_as_oldest, 10u);
}

INSTANTIATE_TEST_SUITE_P(Latencies, Everybody,
                         ::testing::Values(Setting{100us, 2}, Setting{1ms, 2}, Setting{20ms, 2}, Setting{60ms, 2},
                                           Setting{100us, 5}, Setting{1ms, 5}, Setting{20ms, 5}, Setting{60ms, 5},
                                           Setting{100us, 16}, Setting{1ms, 16}, Setting{20ms, 16}, Setting{60ms, 16}));

TEST_P(Everybody, gets_through_where_one_changes_the_rows_that_the_others_write_one_by_one) {
    const Duration one_way = GetParam().one_way;
    const std::size_t clients = GetParam().clients;
    World world{clients, one_way};
    Race race{world.scheduler};
    world.run([&] {
        std::vector<std::unique_ptr<World::Process>> processes;
        for (std::size_t i = 0; i < clients; ++i) processes.push_back(std::make_unique<World::Process>(world));
        race.start(60 * clients, 60s);
        race.runner(processes[0]->application, [](Transaction& tx) {
            for (int i = 0; i < 7; ++i)
                tx.rows<Balance>().update(std::to_string(i), [](Balance& balance) { ++balance.cents; });
        });
        for (std::size_t i = 1; i < clients; ++i) {
            race.runner(processes[i]->application, [i](Transaction& tx) {
                tx.rows<Balance>().update(std::to_string(i % 8), [](Balance& balance) { ++balance.cents; });
            });
        }
        race.wait();
        for (const auto& process : processes) process->executor.drain();
    });
    for (const std::string& failure : race.failures) ADD_FAILURE() << failure;
    std::cout << "[ " << race.commits << " commits, longest gap " << to_string(race.longest_gap) << " = "
              << race.longest_gap / (2 * one_way) << " round trips, longest command " << to_string(race.longest)
              << ", attempts at most " << race.attempts_max << ", as the oldest " << race.attempts_as_oldest << " ]\n";
    EXPECT_LE(race.attempts_as_oldest, 10u);
}

}  // namespace
}  // namespace varve::protocol
