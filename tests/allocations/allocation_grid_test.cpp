#include "failing_new.h"
#include "support/account.h"
#include "support/temporary_folder.h"
#ifdef VARVE_DYNAMODB_SERVERS
#include "adapters/dynamodb/each_server.h"
#endif
#ifdef VARVE_POSTGRES
#include "adapters/postgres/server.h"
#endif

#include <varve/core/executor.h>
#include <varve/locks/locks.h>
#include <varve/store/item_store.h>
#include <varve/testing/later.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/quiet_log.h>
#include <varve/testing/seeded_random.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

// Every allocation of everything that an application does fails once, one after the other; and once all that come
// after it as well. What the caller is told must be true, and the application must go on.
namespace varve {
namespace {

using namespace account;
using transactions::Strategy;
using Which = FailingNew::Which;

struct KeepBalance : ProjectBalance {
    using OwnRows = Balance;
};

/// What became of a command, as its caller was told.
enum class Told { done, not_done, in_doubt };

/// Takes no memory of its own.
Told tell(const auto& command) {
    try {
        return command() ? Told::done : Told::not_done;
    } catch (const Error& error) {
        return error.in_doubt() ? Told::in_doubt : Told::not_done;
    } catch (const std::exception&) {
        return Told::not_done;
    }
}

/// What is left to others is told at every point.
testing::QuietLog silent;

/// Keeps background work back until it is drained. Like the framework's own executor it goes on after a task that
/// throws.
class Persistent final : public testing::Later {
  public:
    void drain() override {
        for (bool more = true; more;) {
            try {
                more = run_next();
            } catch (const std::bad_alloc&) {
                // Its promises are kept by the sweeper, or by whoever meets what it has left.
            }
        }
    }
};

/// One application of its own for each point, on accounts of its own, in a store that all points share.
struct World {
    World(std::shared_ptr<store::ItemStore> on, Strategy strategy, std::string suffix)
        : store(std::move(on)), strategy_(strategy), alice("alice" + suffix), bob("bob" + suffix), id(suffix) {
        prepare(bank);
        if (!bank.execute<Account>(alice, Deposit{100})) ADD_FAILURE() << "no beginning";
        if (!bank.execute<Account>(bob, Deposit{100})) ADD_FAILURE() << "no beginning";
    }
    ~World() { later.drain(); }

    std::int64_t balance(const std::string& of) {
        return Application{store, {.sweep = false, .runtime = {.clock = clock, .log = silent}, .executor = &later}}
            .load<Account>(of)
            .state.balance;
    }
    static void prepare(Application& application) { application.project<Account>(KeepBalance{}); }

    std::shared_ptr<store::ItemStore> store;
    const Strategy strategy_;
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    Persistent later;
    const std::string alice;
    const std::string bob;
    const std::string id;
    Application bank{store,
                     {.transactions = {.strategy = strategy_},
                      .sweep = false,
                      .locks = {.heartbeat_thread = false},
                      .runtime = {.clock = clock, .log = silent},
                      .executor = &later}};
};

/// What is done while memory fails, and the judge of what came of it.
struct Deed {
    void (*act)(World&, std::vector<Told>& told);  // `told` has the memory that it needs
    void (*judge)(World&, const std::vector<Told>&);
};

void expect_moved(World& world, Told told, std::int64_t cents) {
    const std::int64_t alice = 100 - world.balance(world.alice);
    const std::int64_t bob = world.balance(world.bob) - 100;
    EXPECT_EQ(alice, bob) << "one half of it";
    if (told == Told::done) {
        EXPECT_EQ(alice, cents) << "told done";
    }
    if (told == Told::not_done) {
        EXPECT_EQ(alice, 0) << "told not done";
    }
    EXPECT_TRUE(alice == 0 || alice == cents);
}

void expect_deposited(World& world, const std::vector<Told>& told) {
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < told.size(); ++i) {
        const std::int64_t cents = std::int64_t{1} << i;  // each one shows in the sum
        if (told[i] == Told::done) least += cents;
        if (told[i] != Told::not_done) most += cents;
    }
    const std::int64_t deposited = world.balance(world.alice) - 100;
    EXPECT_EQ(deposited & least, least) << "what was told done is not there";
    EXPECT_EQ(deposited & ~most, 0) << "what was told not done is there";
}

const Deed command{
    [](World& world, std::vector<Told>& told) {
        told.push_back(tell([&] { return world.bank.execute<Account>(world.alice, Deposit{1}).has_value(); }));
    },
    expect_deposited};

const Deed command_under_an_id{
    [](World& world, std::vector<Told>& told) {
        told.push_back(tell([&] {
            return world.bank.execute<Account>(world.alice, Deposit{1}, {.command_id = "id" + world.id}).has_value();
        }));
    },
    [](World& world, const std::vector<Told>& told) {
        expect_deposited(world, told);
        const Outcome repeat = world.bank.execute<Account>(world.alice, Deposit{1}, {.command_id = "id" + world.id});
        ASSERT_TRUE(repeat);
        if (told[0] == Told::done) {
            EXPECT_TRUE(repeat->repeated);
        }
        if (told[0] == Told::not_done) {
            EXPECT_FALSE(repeat->repeated);
        }
        EXPECT_EQ(world.balance(world.alice), 101);
    }};

const Deed transfer{[](World& world, std::vector<Told>& told) {
                        told.push_back(tell([&] {
                            return world.bank
                                .transact([&](Transaction& tx) {
                                    tx.load_all<Account>({world.alice, world.bob});
                                    tx.execute<Account>(world.alice, Withdraw{10});
                                    tx.execute<Account>(world.bob, Deposit{10});
                                })
                                .has_value();
                        }));
                    },
                    [](World& world, const std::vector<Told>& told) { expect_moved(world, told[0], 10); }};

const Deed batch{[](World& world, std::vector<Told>& told) {
                     std::array<std::optional<std::future<Outcome>>, 4> futures;
                     for (std::size_t i = 0; i < futures.size(); ++i) {
                         static_cast<void>(tell([&] {
                             futures[i] = world.bank.submit<Account>(world.alice, Deposit{std::int64_t{1} << i});
                             return true;
                         }));
                     }
                     world.later.drain();
                     for (std::optional<std::future<Outcome>>& future : futures) {
                         told.push_back(future ? tell([&] { return future->get().has_value(); }) : Told::not_done);
                     }
                 },
                 expect_deposited};

const Deed load{
    [](World& world, std::vector<Told>& told) {
        told.push_back(tell([&] {
            Application cold{
                world.store,
                {.sweep = false, .runtime = {.clock = world.clock, .log = silent}, .executor = &world.later}};
            const std::int64_t balance = cold.load<Account>(world.alice).state.balance;
            return balance == 100 && cold.rows<Balance>().get(world.alice) == Balance{100};
        }));
    },
    [](World& world, const std::vector<Told>&) { expect_deposited(world, {}); }};

const Deed lock{[](World& world, std::vector<Told>& told) {
                    told.push_back(tell([&] {
                        const Lock held =
                            world.bank.locks().acquire("lock" + world.id, {.wait = std::chrono::seconds{1}});
                        held.check();
                        return world.bank.execute<Account>(world.alice, Deposit{1}, {.fenced_by = &held}).has_value();
                    }));
                },
                [](World& world, const std::vector<Told>& told) {
                    expect_deposited(world, told);
                    // Given back, or free as soon as its time is over.
                    const Lock next = world.bank.locks().acquire("lock" + world.id, {.wait = std::chrono::seconds{30}});
                    next.check();
                }};

/// Which of a deed's allocations fail, each in a world of its own.
struct Points {
    Which which;
    /// 1: every one. Else some, drawn with `seed`, so many apart on average.
    std::uint64_t apart = 1;
    std::uint64_t seed = 0;
};

void allocations_fail(const char* what, const Deed& deed, const std::shared_ptr<store::ItemStore>& on,
                      Strategy strategy, const Points& which_points) {
    const Which which = which_points.which;
    testing::SeededRandom random{which_points.seed};
    long points = 0;
    std::size_t counts[3] = {};
    for (long n = 1 + static_cast<long>(random.below(which_points.apart));;
         n += 1 + static_cast<long>(random.below(2 * which_points.apart - 1))) {
        World world{on, strategy,
                    std::string{"-"} + what + (which == Which::one ? "-one-" : "-all-") + std::to_string(n)};
        SCOPED_TRACE(std::string{what} + ", allocation " + std::to_string(n) +
                     (which == Which::one ? " fails" : " and all after it fail"));
        std::vector<Told> told;
        told.reserve(8);
        bool failed = false;
        {
            FailingNew failing{n, which};
            deed.act(world, told);
            failing.stop();
            failed = failing.has_failed();
        }
        for (const Told one : told) ++counts[static_cast<std::size_t>(one)];
        world.later.drain();
        const Time began = world.clock.now();
        deed.judge(world, told);
        EXPECT_TRUE(world.bank.execute<Account>(world.alice, Deposit{1000})) << "it does not go on";
        EXPECT_TRUE(world.bank.execute<Account>(world.bob, Deposit{1000})) << "it does not go on";
        EXPECT_LT(world.clock.now() - began, std::chrono::seconds{40}) << "it is slow to go on";
        if (!failed || ::testing::Test::HasFailure()) break;
        ++points;
    }
    EXPECT_GT(points, 10) << "hardly anything was allocated";
    std::printf("%s, %s: %ld points; told done %zu, not done %zu, in doubt %zu\n", what,
                which == Which::one ? "one fails" : "all after it fail", points, counts[0], counts[1], counts[2]);
}

void all_deeds(const std::shared_ptr<store::ItemStore>& on, const Points& points) {
    allocations_fail("command", command, on, Strategy::automatic, points);
    allocations_fail("command under an id", command_under_an_id, on, Strategy::automatic, points);
    allocations_fail("native transfer", transfer, on, Strategy::automatic, points);
    allocations_fail("transfer by the protocol", transfer, on, Strategy::protocol, points);
    allocations_fail("batch in a lane", batch, on, Strategy::automatic, points);
    allocations_fail("load", load, on, Strategy::automatic, points);
    allocations_fail("lock", lock, on, Strategy::automatic, points);
}

TEST(AllocationGrid, in_memory_each_allocation_fails_once) {
    all_deeds(open("memory:"), {Which::one});
}

TEST(AllocationGrid, on_SQLite_each_allocation_fails_once) {
    // On a disk of memory where there is one: what is tested needs no flush.
    const std::filesystem::path shared_memory = "/dev/shm";
    const TemporaryFolder folder{"allocations", std::filesystem::is_directory(shared_memory)
                                                    ? shared_memory
                                                    : std::filesystem::temp_directory_path()};
    all_deeds(open("sqlite:" + (folder.path() / "grid.db").string()), {Which::one});
}

TEST(AllocationGrid, in_memory_all_allocations_from_each_one_on_fail) {
    all_deeds(open("memory:"), {Which::all_after});
}

/// A point takes some 20 requests to a server, so these are samples, `apart` each: VARVE_SEED draws others.
[[maybe_unused]] Points sample(unsigned apart, Which which) {
    const char* given = std::getenv("VARVE_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    std::printf("seed=%llu replay: VARVE_SEED=%llu\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(seed));
    return {which, apart, seed};
}

#ifdef VARVE_POSTGRES
TEST(PostgresAllocations, each_of_a_sample_fails_once) {
    all_deeds(open(postgres::fresh_url(postgres::shared_server())), sample(8, Which::one));
}

TEST(PostgresAllocations, all_from_each_of_a_sample_on_fail) {
    all_deeds(open(postgres::fresh_url(postgres::shared_server())), sample(8, Which::all_after));
}
#endif

#ifdef VARVE_DYNAMODB_SERVERS
// By the protocol, which is all that dynalite has, a command allocates three times as often.
unsigned apart(dynamodb::LocalServer::Kind server) {
    return server == dynamodb::LocalServer::Kind::dynalite ? 120U : 40U;
}

class DynamoDbAllocations : public dynamodb::EachServer {};
INSTANTIATE_TEST_SUITE_P(Each, DynamoDbAllocations, dynamodb::each_kind(), dynamodb::name_of_kind);

TEST_P(DynamoDbAllocations, each_of_a_sample_fails_once) {
    all_deeds(open(server_->url("grid")), sample(apart(GetParam()), Which::one));
}

TEST_P(DynamoDbAllocations, all_from_each_of_a_sample_on_fail) {
    all_deeds(open(server_->url("grid")), sample(apart(GetParam()), Which::all_after));
}
#endif

}  // namespace
}  // namespace varve
