#include "protocol/domain.h"
#include "protocol/ledger.h"
#include "protocol/scheduling.h"
#include "transactions/claim.h"

#include <varve/memory/memory.h>
#include <varve/store/item_store.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/passing_store.h>

#include <algorithm>

#include <gtest/gtest.h>

/// Who gets through, and how soon, when everybody wants the same: in virtual time, by the protocol, without any fault
/// and without a sweeper, each client a process of its own. What is asserted is stated in docs/trust.md.
namespace varve::protocol {
namespace {

using namespace std::chrono_literals;

/// A store that is far away: each request is one way underway, and its answer as long. What goes out together takes
/// effect at about the same time, others' requests between.
class FarStore final : public testing::PassingStore {
    auto there_and_back(auto request) {
        go_one_way();
        auto answer = request();
        go_one_way();
        return answer;
    }
    void go_one_way() const {
        if (dies_) throw testing::ProcessStopped{};
        scheduler_.sleep(one_way_);
        if (dies_) throw testing::ProcessStopped{};
    }

  public:
    FarStore(std::shared_ptr<store::ItemStore> inner, Scheduler& scheduler, Duration one_way)
        : PassingStore(std::move(inner)), scheduler_(scheduler), one_way_(one_way) {}

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
        return there_and_back([&] {
            std::vector<store::WriteAnswer> answers;
            for (const store::Write& one : writes) {
                if (!answers.empty()) scheduler_.step();
                answers.push_back(inner().write({&one, 1}).front());
                dies_ = dies_ || (dies_at_next_claim_ && has_laid_a_claim(one, answers.back()));
            }
            return answers;
        });
    }
    store::Page query(const store::Query& query) override {
        return there_and_back([&] { return inner().query(query); });
    }
    store::FoundTogether read_together(std::span<const store::Key> keys,
                                       std::span<const store::Query> queries) override {
        return there_and_back([&] {
            store::FoundTogether found{.items = inner().read(keys), .pages = {}};
            for (const store::Query& query : queries) {
                scheduler_.step();
                found.pages.push_back(inner().query(query));
            }
            return found;
        });
    }

    /// Its process dies as soon as it has a claim on something: no answer comes any more.
    void die_at_next_claim() { dies_at_next_claim_ = true; }
    bool is_dead() const { return dies_; }

  private:
    bool has_laid_a_claim(const store::Write& write, const store::WriteAnswer& answer) {
        if (!std::holds_alternative<store::Applied>(answer)) return false;
        const std::optional<store::Item> item = inner().read({&write.key, 1}).front();
        return item && transactions::claim_on(write.key, *item);
    }

    Scheduler& scheduler_;
    const Duration one_way_;
    bool dies_at_next_claim_ = false;
    bool dies_ = false;
};

const std::vector<std::string> accounts{"a", "b", "c", "d", "e"};

struct Counter {
    static constexpr std::string_view table = "counters";
    std::int64_t count = 0;
};

struct World {
    struct Process {
        SimulatedExecutor executor;
        std::shared_ptr<FarStore> store;
        Application application;

        explicit Process(World& world)
            : executor(world.scheduler, 2),
              store(std::make_shared<FarStore>(world.ledger, world.scheduler, world.one_way)),
              application(store, {.retry = {.time_max = 120s},
                                  .escalation = {.queue_time_max = 120s},
                                  .transactions = {.strategy = transactions::Strategy::protocol},
                                  .sweep = false,
                                  .runtime = {world.clock, world.random, Log::standard_error()},
                                  .executor = &executor}) {
            application.project<Account>(ProjectOwnBalance{});
        }
    };

    World(std::uint64_t seed, Duration one_way_) : one_way(one_way_), scheduler(seed), random(seed) {}

    void run(const std::string& rows, std::function<void()> body) {
        scheduler.spawn(std::move(body));
        scheduler.run();
        for (const std::string& violation : ledger->violations_at_rest({"events", rows})) ADD_FAILURE() << violation;
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

    using Body = std::function<void(Transaction&)>;
    /// One command after the other until the race ends; `next` makes the body of each, which may run several times.
    void runner(Application& application, std::function<Body()> next) {
        const std::size_t me = runners_.size();
        runners_.emplace_back();
        scheduler_.spawn([this, me, &application, next = std::move(next)] {
            while (!has_ended() && !runners_[me].is_dead) one_command(me, application, next());
            ++finished_;
        });
    }
    void start(std::size_t commits, Duration at_most) {
        last_commit_ = began_ = scheduler_.now();
        commits_max_ = commits;
        until_ = began_ + at_most;
    }
    bool has_ended() const { return commits >= commits_max_ || scheduler_.now() >= until_; }
    void wait() {
        while (finished_ < runners_.size()) scheduler_.sleep(1ms);
    }

    Duration mean_gap() const { return (last_commit_ - began_) / std::max<std::size_t>(commits, 1); }
    void tell(Duration one_way) const {
        std::cout << "[ " << commits << " commits, one in " << to_string(mean_gap()) << " = "
                  << mean_gap() / (2 * one_way) << " round trips, longest gap " << to_string(longest_gap) << " = "
                  << longest_gap / (2 * one_way) << ", longest command " << to_string(longest) << ", attempts at most "
                  << attempts_max << ", as the oldest " << attempts_as_oldest << " ]\n";
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
        bool is_dead = false;
    };

    void one_command(std::size_t me, Application& application, const Body& body) {
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
        } catch (const testing::ProcessStopped&) {
            runners_[me].is_dead = true;
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

using Processes = std::vector<std::unique_ptr<World::Process>>;

Processes start(World& world, std::size_t clients) {
    Processes processes;
    for (std::size_t i = 0; i < clients; ++i) processes.push_back(std::make_unique<World::Process>(world));
    return processes;
}

/// One reads all accounts and their balances, each of the others deposits in four of the five.
void one_reads_all_that_the_others_write(World& world, Race& race, const Processes& processes) {
    race.runner(processes[0]->application, [] {
        return [](Transaction& tx) {
            tx.load_all<Account>(accounts);
            for (const std::string& account : accounts) {
                tx.load<Account>(account);
                static_cast<void>(tx.rows<Balance>().get(account));
            }
        };
    });
    for (std::size_t i = 1; i < processes.size(); ++i) {
        race.runner(processes[i]->application, [&world] {
            std::vector<std::string> some = accounts;
            some.erase(some.begin() + static_cast<std::ptrdiff_t>(world.random.below(accounts.size())));
            return [some](Transaction& tx) {
                tx.load_all<Account>(some);
                for (const std::string& account : some) tx.execute<Account>(account, Deposit{1, 0});
            };
        });
    }
}

void open_accounts(const Processes& processes) {
    for (const std::string& account : accounts)
        processes[0]->application.execute<Account>(account, Deposit{1000, 0}).value();
    processes[0]->executor.drain();
}

TEST_P(Everybody, gets_through_where_one_reads_all_that_the_others_write) {
    const Duration one_way = GetParam().one_way;
    constexpr std::size_t worlds = 3;  // one alone may be unlucky
    Duration gaps{};
    for (std::size_t i = 0; i < worlds; ++i) {
        World world{GetParam().clients + 100 * i, one_way};
        Race race{world.scheduler};
        world.run("balances", [&] {
            const Processes processes = start(world, GetParam().clients);
            open_accounts(processes);
            race.start(40 * processes.size(), 60s);
            one_reads_all_that_the_others_write(world, race, processes);
            race.wait();
            for (const auto& process : processes) process->executor.drain();
        });
        race.tell(one_way);
        EXPECT_TRUE(race.failures.empty()) << race.failures.front();
        EXPECT_LE(race.attempts_as_oldest, 10u);
        EXPECT_LE(race.longest_gap, std::max<Duration>(100ms, 80 * one_way)) << "nobody committed";
        EXPECT_LE(race.mean_gap(), std::max<Duration>(15ms, 30 * one_way));
        gaps += race.mean_gap();
    }
    EXPECT_LE(gaps / worlds, std::max<Duration>(10ms, 20 * one_way));
}

INSTANTIATE_TEST_SUITE_P(Latencies, Everybody,
                         ::testing::Values(Setting{100us, 2}, Setting{1ms, 2}, Setting{20ms, 2}, Setting{60ms, 2},
                                           Setting{100us, 5}, Setting{1ms, 5}, Setting{20ms, 5}, Setting{60ms, 5},
                                           Setting{100us, 16}, Setting{1ms, 16}, Setting{20ms, 16}, Setting{60ms, 16}));

using SomeDie = Everybody;

TEST_P(SomeDie, and_the_others_get_through_one_lease_later) {
    const Duration one_way = GetParam().one_way;
    World world{GetParam().clients, one_way};
    Race race{world.scheduler};
    const std::size_t deaths = GetParam().clients / 2;
    world.run("balances", [&] {
        const Processes processes = start(world, GetParam().clients);
        open_accounts(processes);
        race.start(SIZE_MAX, static_cast<int>(deaths + 1) * 20s);
        one_reads_all_that_the_others_write(world, race, processes);
        for (std::size_t i = 1; i <= deaths; ++i) {
            world.scheduler.sleep(10s + Duration{static_cast<Duration::rep>(world.random.below(5'000'000))});
            processes[i]->store->die_at_next_claim();
            while (!processes[i]->store->is_dead() && !race.has_ended()) world.scheduler.sleep(50ms);
        }
        EXPECT_TRUE(processes[1]->store->is_dead());
        race.wait();
        for (const auto& process : processes) process->executor.drain();
        EXPECT_TRUE(processes[0]->application.settle(60s));
    });
    race.tell(one_way);
    EXPECT_TRUE(race.failures.empty()) << race.failures.front();
    EXPECT_LE(race.longest_gap, transactions::Options{}.lease + 80 * one_way) << "nobody committed";
}

INSTANTIATE_TEST_SUITE_P(Latencies, SomeDie,
                         ::testing::Values(Setting{20ms, 2}, Setting{60ms, 2}, Setting{20ms, 5}, Setting{60ms, 5},
                                           Setting{20ms, 16}, Setting{60ms, 16}));

TEST_P(Everybody, gets_through_where_one_changes_the_rows_that_the_others_write_one_by_one) {
    const Duration one_way = GetParam().one_way;
    World world{GetParam().clients, one_way};
    Race race{world.scheduler};
    world.run("counters", [&] {
        const Processes processes = start(world, GetParam().clients);
        race.start(40 * processes.size(), 60s);
        race.runner(processes[0]->application, [] {
            return [](Transaction& tx) {
                for (int i = 0; i < 7; ++i)
                    tx.rows<Counter>().update(std::to_string(i), [](Counter& counter) { ++counter.count; });
            };
        });
        for (std::size_t i = 1; i < processes.size(); ++i) {
            race.runner(processes[i]->application, [i] {
                return [i](Transaction& tx) {
                    tx.rows<Counter>().update(std::to_string(i % 8), [](Counter& counter) { ++counter.count; });
                };
            });
        }
        race.wait();
        for (const auto& process : processes) process->executor.drain();
    });
    race.tell(one_way);
    EXPECT_TRUE(race.failures.empty()) << race.failures.front();
    EXPECT_LE(race.attempts_as_oldest, 10u);
    EXPECT_LE(race.longest_gap, std::max<Duration>(100ms, 40 * one_way)) << "nobody committed";
}

}  // namespace
}  // namespace varve::protocol
