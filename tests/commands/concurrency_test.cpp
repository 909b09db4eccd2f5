#include "support/account.h"
#include "support/coordinator_of.h"
#include "support/hooked_store.h"
#include "transactions/sweeper.h"

#include <varve/store/item_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>

#include <set>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using transactions::Path;
using transactions::Strategy;
using transactions::Verdict;

class BothStrategies : public ::testing::TestWithParam<Strategy>, protected testing::ManualWorld {
  protected:
    std::shared_ptr<store::ItemStore> store_ = open("memory:");
    Application make(RetryPolicy retry = {}, Duration lease = std::chrono::seconds{5}) {
        return Application{store_, options({.retry = retry, .transactions = {.strategy = GetParam(), .lease = lease}})};
    }
};

INSTANTIATE_TEST_SUITE_P(Strategies, BothStrategies, ::testing::Values(Strategy::automatic, Strategy::protocol),
                         [](const auto& info) { return info.param == Strategy::automatic ? "native" : "protocol"; });

/// Of two accounts together at least 100 must stay: each withdrawal reads both and writes one.
void withdraw_if_covered(Transaction& tx, const char* from, const char* other, std::int64_t cents) {
    if (tx.load<Account>(from).balance + tx.load<Account>(other).balance < cents + 100) tx.reject({"not_covered"});
    tx.execute<Account>(from, Withdraw{cents});
}

TEST_P(BothStrategies, write_skew_is_impossible) {
    Application a = make();
    Application b = make();
    ASSERT_TRUE(a.execute<Account>("x", Deposit{100}));
    ASSERT_TRUE(a.execute<Account>("y", Deposit{100}));
    int runs = 0;
    const Outcome first = a.transact([&](Transaction& tx) {
        static_cast<void>(tx.load<Account>("x"));
        static_cast<void>(tx.load<Account>("y"));
        if (++runs == 1) {  // the other one reads the same, and commits first
            ASSERT_TRUE(b.transact([](Transaction& other) { withdraw_if_covered(other, "y", "x", 100); }));
        }
        withdraw_if_covered(tx, "x", "y", 100);
    });
    EXPECT_FALSE(first);
    EXPECT_EQ(runs, 2) << "what it had read was no longer true";
    later.drain();
    EXPECT_EQ(a.load<Account>("x").state.balance + a.load<Account>("y").state.balance, 100);
}

TEST_P(BothStrategies, write_skew_is_impossible_between_rows) {
    Application a = make();
    Application b = make();
    static_cast<void>(a.rows<Balance>());
    const auto move = [](Transaction& tx, const char* from, const char* other) {
        if (tx.rows<Balance>().get(from).value_or(Balance{1}).cents +
                tx.rows<Balance>().get(other).value_or(Balance{1}).cents <
            2) {
            tx.reject({"not_covered"});
        }
        tx.rows<Balance>().put(from, {0});
    };
    int runs = 0;
    const Outcome first = a.transact([&](Transaction& tx) {
        static_cast<void>(tx.rows<Balance>().get("x"));
        static_cast<void>(tx.rows<Balance>().get("y"));
        if (++runs == 1) {
            ASSERT_TRUE(b.transact([&](Transaction& other) { move(other, "y", "x"); }));
        }
        move(tx, "x", "y");
    });
    EXPECT_FALSE(first);
    EXPECT_EQ(runs, 2);
}

TEST_P(BothStrategies, a_rejection_rests_on_what_was_true_at_one_moment) {
    Application a = make();
    Application b = make();
    ASSERT_TRUE(a.execute<Account>("x", Deposit{100}));
    int runs = 0;
    const Outcome outcome = a.transact([&](Transaction& tx) {
        std::int64_t sum = tx.load<Account>("x").balance;
        if (++runs == 1) {
            ASSERT_TRUE(b.transact([](Transaction& other) {
                other.execute<Account>("x", Withdraw{100});
                other.execute<Account>("y", Deposit{100});
            }));
        }
        sum += tx.load<Account>("y").balance;
        tx.reject({"sum_" + std::to_string(sum)});
    });
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, "sum_100");
    EXPECT_EQ(runs, 2);
}

TEST_P(BothStrategies, a_stale_write_is_refused_and_decided_again) {
    Application a = make();
    Application b = make();
    int runs = 0;
    const Outcome outcome = a.transact([&](Transaction& tx) {
        static_cast<void>(tx.load<Account>("x"));
        if (++runs == 1) {
            ASSERT_TRUE(b.execute<Account>("x", Deposit{1}));
        }
        tx.execute<Account>("x", Deposit{2});
        tx.execute<Account>("y", Deposit{2});
    });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->attempts, 2u);
    EXPECT_EQ(a.load<Account>("x").state.balance, 3);
    EXPECT_EQ(a.load<Account>("y").state.balance, 2);
}

TEST_P(BothStrategies, a_command_that_keeps_losing_reserves_its_aggregates_and_gets_through) {
    Application patient = make();
    Application hot = make(RetryPolicy::once(), std::chrono::milliseconds{100});
    unsigned refused = 0;
    const Outcome outcome = patient.transact([&](Transaction& tx) {
        tx.execute<Account>("x", Deposit{1});
        tx.execute<Account>("y", Deposit{1});
        clock.advance(std::chrono::milliseconds{1});
        try {
            ASSERT_TRUE(hot.execute<Account>("y", Deposit{100}));
        } catch (const ConflictError&) {
            ++refused;
        }
    });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->path, Path::reserved);
    EXPECT_EQ(outcome->attempts, Escalation{}.reserve_after + 1);
    EXPECT_EQ(refused, 1u) << "the hot writer waited for the reservation";
    later.drain();
    EXPECT_EQ(patient.load<Account>("x").state.balance, 1);
    EXPECT_EQ(patient.load<Account>("y").state.balance, 1 + 100 * Escalation{}.reserve_after);
    ASSERT_TRUE(hot.execute<Account>("y", Deposit{100}));
}

TEST_P(BothStrategies, what_a_reserved_command_wrote_is_visible_before_it_is_finalised) {
    Application patient = make();
    Application hot = make(RetryPolicy::once(), std::chrono::milliseconds{100});
    const Outcome outcome = patient.transact([&](Transaction& tx) {
        tx.execute<Account>("x", Deposit{1});
        static_cast<void>(tx.load<Account>("y"));
        try {
            static_cast<void>(hot.execute<Account>("x", Deposit{100}));
        } catch (const ConflictError&) {
        }
    });
    ASSERT_TRUE(outcome);
    ASSERT_EQ(outcome->path, Path::reserved);
    later.forget();  // its owner died
    Application reader = make();
    const Version version = reader.load<Account>("x").version;
    EXPECT_EQ(reader.load<Account>("x").state.balance, 1 + 100 * (version - 1));
    EXPECT_EQ(reader.load<Account>("y").version, 0);
    ASSERT_TRUE(reader.execute<Account>("y", Deposit{5})) << "a reserved slot that got nothing is void";
    EXPECT_EQ(reader.load<Account>("y").version, 1);
    ASSERT_TRUE(reader.execute<Account>("x", Deposit{5}));
    EXPECT_EQ(reader.load<Account>("x").version, version + 1);
}

struct Protocol : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(open("memory:"));
    Application bank{store, options({.transactions = {.strategy = Strategy::protocol}})};
};

TEST_F(Protocol, an_append_whose_answer_was_lost_is_recognised_as_ones_own) {
    bool lost = false;
    store->after_write = [&](auto, std::vector<store::WriteAnswer>& answers) {
        if (!std::exchange(lost, true)) answers[0] = Failure{ErrorKind::unavailable, true, "the answer was lost"};
    };
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}));
    EXPECT_EQ(bank.load<Account>("alice").version, 1);
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 5);
}

void deposit_to_three(Transaction& tx) {
    for (const char* id : {"x", "y", "z"}) tx.execute<Account>(id, Deposit{1});
}

/// Answers every write that puts a slot into `state` with a failure, although it was applied.
auto lose_answers_to(std::string state) {
    return [state = std::move(state)](std::span<const store::Write> writes, std::vector<store::WriteAnswer>& answers) {
        for (std::size_t i = 0; i < writes.size(); ++i) {
            const auto* put = std::get_if<store::Put>(&writes[i].action);
            if (put == nullptr || put->item.at("state") != store::Value{state}) continue;
            answers[i] = Failure{ErrorKind::unavailable, true, "no answer"};
        }
    };
}

TEST_F(Protocol, a_commit_that_nobody_answers_is_in_doubt_and_resolved_by_anybody) {
    store->after_write = lose_answers_to("committed");
    TransactionHandle handle;
    try {
        static_cast<void>(bank.transact([&](Transaction& tx) {
            deposit_to_three(tx);
            store->before_read = [] { throw UnavailableError("no answer"); };
        }));
        FAIL() << "committed without an answer";
    } catch (const InDoubtError& error) {
        handle = error.handle();
    }
    store->after_write = [](auto, auto&) {};
    store->before_read = [] {};
    Application other{store, options()};
    EXPECT_EQ(other.resolve(handle), Verdict::committed);
    for (const char* id : {"x", "y", "z"}) EXPECT_EQ(other.load<Account>(id).state.balance, 1);
    EXPECT_THROW(other.resolve(TransactionHandle{"nonsense"}), InvalidError);
}

TEST_F(Protocol, what_an_earlier_attempt_could_not_undo_keeps_nobody_waiting_least_of_all_its_own_command) {
    // The first attempt meets a slot of z that it did not know, and may not undo what it has prepared.
    std::size_t failed = 0;
    store->before_write = [&, is_first = true](std::span<const store::Write> writes) mutable {
        const auto* put = std::get_if<store::Put>(&writes.front().action);
        store->hold_back_writes = put != nullptr && put->item.at("state") == store::Value{"void"} && failed++ < 3;
        if (writes.size() < 2 || !std::exchange(is_first, false)) return;
        Application other{store, options()};
        EXPECT_TRUE(other.execute<Account>("z", Deposit{5}));
    };
    store->after_write = [&](auto, std::vector<store::WriteAnswer>& answers) {
        if (store->hold_back_writes.exchange(false))
            std::ranges::fill(answers, Failure{ErrorKind::unavailable, false, "throttled"});
    };
    const SteadyTime began = clock.steady_now();
    const Outcome outcome = bank.transact(deposit_to_three);
    ASSERT_TRUE(outcome);
    EXPECT_LE(outcome->attempts, 3u);
    EXPECT_GT(failed, 0u);
    EXPECT_LT(clock.steady_now() - began, std::chrono::milliseconds{500});
    later.drain();  // what the hook sees ends here
}

TEST_F(Protocol, a_read_without_an_answer_is_asked_for_again) {
    int silent = 5;
    store->after_query = [&](auto&) {
        if (silent-- > 0) throw UnavailableError("no answer");
    };
    EXPECT_TRUE(bank.transact(deposit_to_three));
    EXPECT_LE(silent, 0);
}

TEST_F(Protocol, a_store_that_answers_no_read_is_asked_no_longer_than_the_caller_has_time) {
    Application hasty{store, options({.retry = {.time_max = std::chrono::seconds{1}},
                                      .transactions = {.strategy = Strategy::protocol}})};
    store->after_query = [](auto&) { throw UnavailableError("no answer"); };
    const SteadyTime began = clock.steady_now();
    EXPECT_THROW(static_cast<void>(hasty.transact(deposit_to_three)), UnavailableError);
    EXPECT_GE(clock.steady_now() - began, std::chrono::seconds{1});
    EXPECT_LT(clock.steady_now() - began, std::chrono::milliseconds{1100});
}

TEST_F(Protocol, a_transaction_without_an_answer_to_its_prepares_is_certain_to_be_aborted) {
    store->after_write = lose_answers_to("pending");
    EXPECT_THROW(static_cast<void>(bank.transact(deposit_to_three)), UnavailableError);
    store->after_write = [](auto, auto&) {};
    for (const char* id : {"x", "y", "z"}) {
        EXPECT_EQ(bank.load<Account>(id).version, 0);
        ASSERT_TRUE(bank.execute<Account>(id, Deposit{7}));
    }
}

TEST_F(Protocol, a_repeat_that_raced_with_the_first_execution_is_not_rejected) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{10}));
    Application other{store, options()};
    const CommandOptions once{.command_id = "withdraw-1"};
    int runs = 0;
    const Outcome repeat = bank.transact(
        [&](Transaction& tx) {
            if (++runs == 1) {
                ASSERT_TRUE(
                    other.transact([](Transaction& its) { its.execute<Account>("alice", Withdraw{10}); }, once));
            }
            tx.execute<Account>("alice", Withdraw{10});
        },
        once);
    ASSERT_TRUE(repeat);
    EXPECT_TRUE(repeat->repeated);
}

TEST_F(Protocol, the_ids_of_a_transactions_events_differ) {
    ASSERT_TRUE(bank.transact(deposit_to_three));
    later.drain();
    std::set<std::string> ids;
    for (const char* id : {"x", "y", "z"}) ids.insert(bank.history<Account>(id).events.at(0).id);
    EXPECT_EQ(ids.size(), 3u);
}

TEST_F(Protocol, a_store_that_takes_no_writes_says_so_instead_of_being_asked_for_ever) {
    ASSERT_TRUE(bank.transact(deposit_to_three));
    later.forget();  // its owner died before it finalised
    store->after_write = [](auto, std::vector<store::WriteAnswer>& answers) {
        for (auto& answer : answers) answer = Failure{ErrorKind::read_only, false, "the store is read-only"};
    };
    store->hold_back_writes = true;
    try {
        static_cast<void>(bank.execute<Account>("z", Deposit{1}));
        FAIL() << "written to a read-only store";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::read_only);
    }
}

struct Note {
    static constexpr std::string_view table = "notes";
    std::string text;
};

TEST(BigTransactions, too_large_for_the_store_by_a_byte_are_refused_before_anything_is_written) {
    const std::string little = "x", first = "alice", second = "bob";
    enum class Large { primary, secondary, row };
    for (const Large large : {Large::primary, Large::secondary, Large::row}) {
        unsigned committed = 0, refused = 0;
        std::size_t largest_committed = 0, smallest_refused = SIZE_MAX;
        for (std::size_t size = 3'200; size <= 4'096; ++size) {
            const auto store = std::make_shared<HookedStore>(open("memory:?item_bytes_max=4096"));
            testing::ManualWorld world;
            Application bank{store, world.options({.transactions = {.strategy = Strategy::protocol}})};
            static_cast<void>(bank.rows<Note>());
            const std::string text(size, 'x');
            std::size_t written = 0;
            store->before_write = [&](std::span<const store::Write> writes) { written += writes.size(); };
            try {
                ASSERT_TRUE(bank.transact([&](Transaction& tx) {
                    tx.execute<Account>(first, Open{large == Large::primary ? text : little});
                    tx.execute<Account>(second, Open{large == Large::secondary ? text : little});
                    if (large == Large::row) tx.rows<Note>().put("n", Note{text});
                }));
                world.later.drain();
                ++committed;
                largest_committed = size;
                EXPECT_EQ(bank.load<Account>(first).version, 1);
                EXPECT_EQ(bank.load<Account>(second).version, 1);
            } catch (const InvalidError& error) {
                ++refused;
                smallest_refused = std::min(smallest_refused, size);
                ASSERT_EQ(written, 0u) << size << ": " << error.what();
            }
        }
        EXPECT_GT(committed, 0u);
        EXPECT_GT(refused, 0u);
        EXPECT_LT(largest_committed, smallest_refused);
    }
}

TEST(BigTransactions, that_never_committed_leave_nothing_although_a_sweeper_meets_a_part_of_their_list) {
    const auto inner = open("memory:?item_bytes_max=4096");
    const auto hooked = std::make_shared<HookedStore>(inner);
    testing::ManualWorld world;
    const ApplicationOptions options = world.options({.transactions = {.strategy = Strategy::protocol}});
    Application bank{hooked, options};
    bank.project<Account>(ProjectBalance{});
    struct Died {};
    hooked->before_write = [](std::span<const store::Write> writes) {
        const auto* put = std::get_if<store::Put>(&writes[0].action);
        if (put != nullptr && put->item.contains("continued")) throw Died{};
    };
    EXPECT_THROW(static_cast<void>(bank.transact([](Transaction& tx) {
                     for (int i = 0; i < 50; ++i) tx.execute<Account>("a" + std::to_string(i), Deposit{1});
                 })),
                 Died);
    hooked->before_write = [](auto) {};
    transactions::Sweeper sweeper{coordinator_of(bank), {"balances"}};
    for (int pass = 0; pass < 10; ++pass) {
        sweeper.sweep();
        world.clock.advance(std::chrono::seconds{10});
    }
    EXPECT_EQ(sweeper.sweep(), 0u);
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(bank.load<Account>("a" + std::to_string(i)).version, 0);
        EXPECT_EQ(bank.rows<Balance>().get("a" + std::to_string(i)), std::nullopt);
    }
}

TEST(WrongClocks, a_command_has_the_time_that_it_was_given_wherever_the_wall_clock_jumps) {
    for (const Duration jump : {Duration{-std::chrono::hours{1}}, Duration{std::chrono::hours{1}}}) {
        const auto store = open("memory:");
        testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
        Application bank{store, {.sweep = false, .runtime = {.clock = clock}}};
        Application other{store, {.sweep = false}};
        int runs = 0;
        const Outcome outcome = bank.transact([&](Transaction& tx) {
            tx.execute<Account>("a", Deposit{1});
            if (++runs > 3) return;
            ASSERT_TRUE(other.execute<Account>("a", Deposit{1}));  // it has lost
            clock.jump(jump);
        });
        ASSERT_TRUE(outcome);
        EXPECT_EQ(outcome->attempts, 4u);
        EXPECT_EQ(bank.load<Account>("a").state.balance, 4);
    }
}

TEST(BigTransactions, of_a_thousand_participants_commit_although_their_list_does_not_fit_one_item) {
    const auto store = open("memory:?item_bytes_max=4096");
    testing::ManualWorld world;
    const auto make = [&] {
        return std::make_unique<Application>(store, world.options({.transactions = {.strategy = Strategy::protocol}}));
    };
    const auto bank = make();
    bank->project<Account>(ProjectBalance{});
    const Outcome outcome = bank->transact([](Transaction& tx) {
        for (int i = 0; i < 500; ++i) tx.execute<Account>("a" + std::to_string(i), Deposit{i});
    });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->written.size(), 500u);
    world.later.forget();  // nobody but others finalises
    const auto other = make();
    EXPECT_EQ(other->rows<Balance>().get("a499"), Balance{499});
    EXPECT_EQ(other->load<Account>("a499").state.balance, 499);
    ASSERT_TRUE(other->execute<Account>("a499", Withdraw{499}));
}

}  // namespace
}  // namespace varve
