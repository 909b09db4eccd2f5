#include "support/account.h"
#include "support/hooked_store.h"
#include "support/later.h"

#include <varve/testing/counting_store.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/transactions/sweeper.h>
#include <varve/transactions/system_table.h>

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

namespace varve::transactions {
namespace {

using namespace account;
using std::chrono::hours;
using std::chrono::seconds;

constexpr seconds lease{5};

struct Died {};

struct Sweeping : ::testing::Test {
    std::shared_ptr<store::ItemStore> inner = open("memory:");
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(inner);
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    Later later;
    std::unique_ptr<Application> owner = make(lease);
    std::unique_ptr<Application> other = make(lease);

    Sweeping() {
        owner->project<Account>(ProjectBalance{});
        static_cast<void>(owner->rows<Balance>());
    }

    std::unique_ptr<Application> make(Duration of) {
        return std::make_unique<Application>(
            store, ApplicationOptions{.transactions = {.strategy = Strategy::protocol, .lease = of},
                                      .sweep = false,
                                      .runtime = {.clock = clock},
                                      .executor = &later});
    }
    Sweeper sweeper() { return Sweeper{other->coordinator(), {"balances"}}; }

    void transfer(Application& by) {
        static_cast<void>(by.transact([](Transaction& tx) {
            tx.execute<Account>("x", Deposit{1});
            tx.execute<Account>("y", Deposit{1});
        }));
    }
    /// A transaction over two streams and two rows whose owner dies as its commit is about to go out.
    void die_before_the_commit(Application& by) {
        store->before_write = [](std::span<const store::Write> writes) {
            const auto* put = std::get_if<store::Put>(&writes.front().action);
            if (put != nullptr && put->item.at("state") == store::Value{"committed"}) throw Died{};
        };
        EXPECT_THROW(transfer(by), Died);
        store->before_write = [](auto) {};
    }
    void die_after_the_commit() {
        transfer(*owner);
        later.forget();
    }

    std::optional<store::Item> item(const store::Key& key) { return inner->read({&key, 1}).front(); }
    std::size_t claimed() {
        std::size_t found = 0;
        for (const char* table : {"events", "balances"}) {
            for (const store::Change& change : inner->changes(table, 0, 10'000)) {
                found += claim_on(change.record.key, change.record.item) ? 1 : 0;
            }
        }
        return found;
    }
    bool is_done() { return item(slot_key("account-x", 1))->contains("done"); }
    std::int64_t checkpoint(const std::string& name) {
        const auto found = item({system_table().name, name});
        return found ? *store::integer(*found, "position") : 0;
    }
    void append_many(int n) {
        for (int i = 0; i < n; ++i) {
            const store::Write write = commit_free_slot(slot_key("s" + std::to_string(i), 1), 0,
                                                        {.write_id = "w" + std::to_string(i), .payload = {}});
            ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
        }
    }
};

TEST_F(Sweeping, an_owner_that_died_after_its_prepares_is_cleaned_up_one_lease_later) {
    die_before_the_commit(*owner);
    ASSERT_EQ(claimed(), 3u) << "one stream, two rows; the primary is not prepared";
    Sweeper sweeper = this->sweeper();
    EXPECT_EQ(sweeper.sweep(), 3u);
    clock.advance(lease - Duration{1});
    EXPECT_EQ(sweeper.sweep(), 3u);
    EXPECT_EQ(claimed(), 3u) << "it may be alive";
    clock.advance(Duration{1});
    sweeper.sweep();
    EXPECT_EQ(claimed(), 0u);
    EXPECT_EQ(other->metrics().fenced, 1u);
    EXPECT_EQ(item({"balances", "x"}), std::nullopt);
    EXPECT_EQ(other->load<Account>("x").version, 0);
    EXPECT_EQ(other->load<Account>("y").version, 0);
    clock.advance(lease);
    EXPECT_EQ(sweeper.sweep(), 0u);
}

TEST_F(Sweeping, an_owner_that_died_after_its_commit_is_finished_one_lease_later) {
    die_after_the_commit();
    ASSERT_EQ(claimed(), 3u);
    ASSERT_FALSE(is_done());
    Sweeper sweeper = this->sweeper();
    EXPECT_EQ(sweeper.sweep(), 4u) << "the primary waits for its mark";
    EXPECT_EQ(claimed(), 3u);
    clock.advance(lease);
    sweeper.sweep();
    EXPECT_EQ(claimed(), 0u);
    EXPECT_TRUE(is_done());
    EXPECT_EQ(other->rows<Balance>().get("x", Isolation::uncommitted), Balance{1});
    EXPECT_EQ(other->load<Account>("y").state.balance, 1);
    clock.advance(lease);
    EXPECT_EQ(sweeper.sweep(), 0u);
}

TEST_F(Sweeping, an_owner_that_died_between_two_finalises_is_finished) {
    die_after_the_commit();
    const store::Key y{"balances", "y"};
    const store::Write one = other->coordinator().resolver().finalise(y, item(y).value(), {});
    ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&one, 1}).front()));
    Sweeper sweeper = this->sweeper();
    EXPECT_EQ(sweeper.sweep(), 3u);
    clock.advance(lease);
    sweeper.sweep();
    EXPECT_EQ(claimed(), 0u);
    EXPECT_TRUE(is_done());
}

TEST_F(Sweeping, an_owner_that_died_before_its_done_mark_gets_it) {
    transfer(*owner);
    store->before_write = [](std::span<const store::Write> writes) {
        const auto* update = std::get_if<store::Update>(&writes.front().action);
        if (update != nullptr && update->set.contains("done")) throw Died{};
    };
    EXPECT_THROW(later.drain(), Died);
    store->before_write = [](auto) {};
    ASSERT_EQ(claimed(), 0u);
    ASSERT_FALSE(is_done());
    Sweeper sweeper = this->sweeper();
    EXPECT_EQ(sweeper.sweep(), 1u);
    clock.advance(lease);
    sweeper.sweep();
    EXPECT_TRUE(is_done());
}

TEST_F(Sweeping, what_is_not_yet_expired_is_waited_for_and_never_skipped) {
    const auto patient = make(seconds{60});
    patient->project<Account>(ProjectBalance{});
    die_before_the_commit(*patient);
    append_many(1200);
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    clock.advance(lease);
    EXPECT_EQ(sweeper.sweep(), 3u);
    EXPECT_EQ(checkpoint("sweeper/events"), 0) << "a new sweeper must meet it again";
    EXPECT_EQ(claimed(), 3u);

    Sweeper successor = this->sweeper();
    EXPECT_EQ(successor.sweep(), 3u);
    clock.advance(seconds{60});
    successor.sweep();
    EXPECT_EQ(claimed(), 0u);
    clock.advance(lease);
    EXPECT_EQ(successor.sweep(), 0u);
    EXPECT_GE(checkpoint("sweeper/events"), 1200);
}

TEST_F(Sweeping, a_checkpoint_is_kept_and_resumed) {
    append_many(700);
    sweeper().sweep();
    const std::int64_t saved = checkpoint("sweeper/events");
    EXPECT_EQ(saved, 700);

    const auto counting = std::make_shared<testing::CountingStore>(inner);
    Application next{counting, {.sweep = false, .runtime = {.clock = clock}, .executor = &later}};
    Sweeper successor{next.coordinator(), {}};
    counting->start_recording();
    successor.sweep();
    EXPECT_EQ(counting->recorded(), (std::vector<std::string>{"changes: events after 700"}));
}

TEST_F(Sweeping, a_slow_sweeper_does_not_set_the_checkpoint_back) {
    append_many(600);
    Sweeper slow = this->sweeper();
    Sweeper fast = this->sweeper();
    const store::Write ahead{{system_table().name, "sweeper/events"}, store::Put{{{"position", std::int64_t{5000}}}}};
    static_cast<void>(inner->write({&ahead, 1}));
    slow.sweep();
    EXPECT_EQ(checkpoint("sweeper/events"), 5000);
}

TEST_F(Sweeping, several_sweepers_at_once_do_no_harm) {
    die_after_the_commit();
    Sweeper first = this->sweeper();
    Sweeper second = this->sweeper();
    first.sweep();
    second.sweep();
    clock.advance(lease);
    // The second one comes in before each write of the first one.
    store->before_write = [&, inside = false](auto) mutable {
        if (std::exchange(inside, true)) return;
        second.sweep();
        inside = false;
    };
    first.sweep();
    store->before_write = [](auto) {};
    EXPECT_EQ(claimed(), 0u);
    EXPECT_TRUE(is_done());
    EXPECT_EQ(other->rows<Balance>().get("x"), Balance{1});
    clock.advance(lease);
    EXPECT_EQ(first.sweep(), 0u);
    EXPECT_EQ(second.sweep(), 0u);
}

TEST_F(Sweeping, several_sweepers_on_threads_do_no_harm_while_transfers_run) {
    Application bank{
        inner,
        {.transactions = {.strategy = Strategy::protocol, .lease = std::chrono::milliseconds{1}}, .sweep = false}};
    bank.project<Account>(ProjectBalance{});
    constexpr int transfers = 40;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back([&](const std::stop_token& stop) {
                Sweeper aggressive{bank.coordinator(), {"balances"}};
                while (!stop.stop_requested()) {
                    aggressive.sweep();
                    std::this_thread::yield();
                }
            });
        }
        for (int i = 0; i < transfers; ++i) transfer(bank);
    }
    for (const char* id : {"x", "y"}) {
        EXPECT_EQ(bank.load<Account>(id).version, transfers);
        EXPECT_EQ(bank.load<Account>(id).state.balance, transfers);
        EXPECT_EQ(bank.rows<Balance>().get(id), Balance{transfers});
    }
}

/// Answers the finalise of one row with a failure, once.
auto fail_the_finalise_of_a_row() {
    return [failed = false](std::span<const store::Write> writes, std::vector<store::WriteAnswer>& answers) mutable {
        for (std::size_t i = 0; i < writes.size() && !failed; ++i) {
            if (writes[i].key.table != "balances") continue;
            answers[i] = Failure{ErrorKind::unavailable, true, "no answer"};
            failed = true;
        }
    };
}

TEST_F(Sweeping, an_owner_marks_done_only_after_all_finalises_were_answered) {
    transfer(*owner);
    store->after_write = fail_the_finalise_of_a_row();
    later.drain();
    store->after_write = [](auto, auto&) {};
    EXPECT_FALSE(is_done());
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    clock.advance(lease);
    sweeper.sweep();
    EXPECT_TRUE(is_done());
}

TEST_F(Sweeping, a_sweeper_marks_done_only_after_all_finalises_were_answered) {
    die_after_the_commit();
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    clock.advance(lease);
    store->after_write = fail_the_finalise_of_a_row();
    EXPECT_GT(sweeper.sweep(), 0u);
    store->after_write = [](auto, auto&) {};
    EXPECT_FALSE(is_done());
    sweeper.sweep();
    EXPECT_TRUE(is_done());
}

// ---- tombstones

struct Tombstones : Sweeping {
    const store::Key row{"balances", "x"};
    Tombstones() {
        put({1});
        static_cast<void>(other->transact([](Transaction& tx) { tx.rows<Balance>().erase("x"); }));
    }
    void put(const Balance& balance) {
        static_cast<void>(other->transact([&](Transaction& tx) { tx.rows<Balance>().put("x", balance); }));
    }
};

TEST_F(Tombstones, are_collected_after_their_retention_and_not_before) {
    Sweeper sweeper = this->sweeper();
    clock.advance(hours{1} - seconds{1});
    sweeper.sweep();
    ASSERT_TRUE(item(row));
    EXPECT_EQ(other->rows<Balance>().get("x"), std::nullopt);
    clock.advance(seconds{2});
    sweeper.sweep();
    EXPECT_FALSE(item(row));
}

TEST_F(Tombstones, written_over_are_left_alone) {
    put({2});
    clock.advance(hours{2});
    sweeper().sweep();
    EXPECT_EQ(other->rows<Balance>().get("x"), Balance{2});
}

TEST_F(Tombstones, beneath_an_intent_wait_for_its_outcome) {
    die_before_the_commit(*owner);  // it would put the row back
    ASSERT_TRUE(claim_on(row, item(row).value()));
    clock.advance(hours{2});
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    EXPECT_TRUE(claim_on(row, item(row).value())) << "met just now";
    clock.advance(lease);
    sweeper.sweep();
    sweeper.sweep();
    EXPECT_FALSE(item(row));
    EXPECT_EQ(claimed(), 0u);
}

TEST_F(Tombstones, the_collectors_checkpoint_stops_at_what_is_not_yet_due) {
    const auto row_of = [](int i) { return store::Key{"balances", "r" + std::to_string(i)}; };
    for (int i = 0; i < 600; ++i) {
        const store::Write write = write_row(row_of(i), {}, {.data = "{}", .rev = "w" + std::to_string(i)});
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
    }
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    EXPECT_EQ(checkpoint("collector/balances"), 0);
    clock.advance(hours{2});
    Sweeper successor = this->sweeper();
    successor.sweep();
    EXPECT_FALSE(item(row));
    EXPECT_GE(checkpoint("collector/balances"), 600);
}

TEST_F(Sweeping, a_store_without_an_order_of_changes_is_refused) {
    testing::SeededRandom random{1};
    testing::Network network{{clock, random}};
    const auto unordered =
        std::make_shared<testing::FaultyStore>(inner, network, testing::Disguise{.no_changes = true});
    Application bank{unordered, {.runtime = {.clock = clock}, .executor = &later}};
    EXPECT_THROW(Sweeper(bank.coordinator(), {}), InvalidError);
    ASSERT_TRUE(bank.execute<Account>("x", Deposit{1})) << "all else works without one";
}

}  // namespace
}  // namespace varve::transactions
