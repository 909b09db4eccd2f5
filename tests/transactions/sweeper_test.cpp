#include "transactions/sweeper.h"

#include "support/account.h"
#include "support/coordinator_of.h"
#include "support/hooked_store.h"
#include "transactions/system_table.h"

#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>
#include <varve/testing/recorded_log.h>
#include <varve/transactions/metrics.h>

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>
#include <malloc.h>

extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));  // sanitizers have it

namespace varve::transactions {
namespace {

using namespace account;
using std::chrono::hours;
using std::chrono::seconds;

constexpr seconds lease{5};

struct Died {};

/// Whether the store keeps an order of changes.
enum class Order { kept, not_kept };

constexpr ScanOptions at_once{.page_interval = Duration{0}, .pause = Duration{0}};

struct World : testing::ManualWorld {
    testing::RecordedLog log;
    std::shared_ptr<store::ItemStore> inner =
        open("memory:?item_bytes_max=32768");  // many of which may be read at once
    testing::SeededRandom random{1};
    testing::Network network{{clock, random}};
    const bool marks;                         ///< whether primaries get a done mark
    std::shared_ptr<store::ItemStore> shown;  ///< what the store says that it is
    std::shared_ptr<HookedStore> store;
    std::unique_ptr<Application> owner;
    std::unique_ptr<Application> other;

    explicit World(Order order)
        : marks(order == Order::not_kept),
          shown(order == Order::kept
                    ? inner
                    : std::make_shared<testing::FaultyStore>(inner, network, testing::Disguise{.no_changes = true})),
          store(std::make_shared<HookedStore>(shown)),
          owner(make(lease)),
          other(make(lease)) {
        owner->project<Account>(ProjectBalance{});
        static_cast<void>(owner->rows<Balance>());
    }

    std::unique_ptr<Application> make(Duration of) {
        return std::make_unique<Application>(store,
                                             options({.transactions = {.strategy = Strategy::protocol, .lease = of},
                                                      .feed = false,  // else scans also look for what was not announced
                                                      .runtime = {.log = log}}));
    }
    Sweeper sweeper(const ScanOptions& scan = at_once) { return Sweeper{coordinator_of(*other), {"balances"}, scan}; }

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

std::string name_of(const ::testing::TestParamInfo<Order>& info) {
    return info.param == Order::kept ? "by_changes" : "by_scans";
}

struct Sweeping : World, ::testing::TestWithParam<Order> {
    Sweeping() : World(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Each, Sweeping, ::testing::Values(Order::kept, Order::not_kept), name_of);

struct SweepingByChanges : World, ::testing::Test {
    SweepingByChanges() : World(Order::kept) {}
};

struct SweepingByScans : World, ::testing::Test {
    std::shared_ptr<testing::CountingStore> counting = std::make_shared<testing::CountingStore>(shown);

    SweepingByScans() : World(Order::not_kept) {}
    std::uint64_t pages() const { return counting->counts().scans; }
    /// One that is counted.
    std::unique_ptr<Application> counted() { return std::make_unique<Application>(counting, options()); }
};

TEST_P(Sweeping, an_owner_that_died_after_its_prepares_is_cleaned_up_one_lease_later) {
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

TEST_P(Sweeping, an_application_settles_what_the_dead_left_when_it_is_told_to_and_says_if_it_could_not) {
    die_before_the_commit(*owner);
    static_cast<void>(other->rows<Balance>());
    EXPECT_FALSE(other->settle(lease / 2)) << "its owner may be alive";
    EXPECT_EQ(claimed(), 3u);
    EXPECT_TRUE(other->settle(2 * lease));
    EXPECT_EQ(claimed(), 0u);
}

TEST_P(Sweeping, an_owner_that_died_after_its_commit_is_finished_one_lease_later) {
    die_after_the_commit();
    ASSERT_EQ(claimed(), 3u);
    ASSERT_FALSE(is_done());
    Sweeper sweeper = this->sweeper();
    EXPECT_EQ(sweeper.sweep(), 4u) << "the primary waits for its rows";
    EXPECT_EQ(claimed(), 3u);
    clock.advance(lease);
    sweeper.sweep();
    EXPECT_EQ(claimed(), 0u);
    EXPECT_EQ(is_done(), marks);
    EXPECT_EQ(other->rows<Balance>().get("x", Isolation::uncommitted), Balance{1});
    EXPECT_EQ(other->load<Account>("y").state.balance, 1);
    clock.advance(lease);
    EXPECT_EQ(sweeper.sweep(), 0u);
}

TEST_P(Sweeping, an_owner_that_died_between_two_finalises_is_finished) {
    die_after_the_commit();
    const store::Key y{"balances", "y"};
    const store::Write one = coordinator_of(*other).resolver().finalise(y, item(y).value(), {});
    ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&one, 1}).front()));
    Sweeper sweeper = this->sweeper();
    EXPECT_EQ(sweeper.sweep(), 3u);
    clock.advance(lease);
    sweeper.sweep();
    EXPECT_EQ(claimed(), 0u);
    EXPECT_EQ(is_done(), marks);
}

TEST_F(SweepingByScans, an_owner_that_died_before_its_done_mark_gets_it) {
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

TEST_P(Sweeping, what_is_not_yet_expired_is_waited_for_and_never_skipped) {
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
    EXPECT_TRUE(successor.is_through());
    EXPECT_EQ(checkpoint("sweeper/events") >= 1200, GetParam() == Order::kept);
}

TEST_P(Sweeping, a_sweeper_is_through_when_it_has_come_to_the_end) {
    append_many(12'000);
    Sweeper sweeper = this->sweeper();
    EXPECT_FALSE(sweeper.is_through());
    sweeper.sweep();
    EXPECT_FALSE(sweeper.is_through()) << "one sweep reads some ten thousand";
    sweeper.sweep();
    EXPECT_TRUE(sweeper.is_through());
}

TEST_P(Sweeping, what_cannot_be_read_keeps_nothing_else_from_being_settled) {
    die_before_the_commit(*owner);
    for (const store::Write& write : {store::Write{slot_key("broken", 1), store::Put{{{"state", std::string{"?"}}}}},
                                      store::Write{{"balances", "broken"}, store::Put{{{"data", std::int64_t{1}}}}}}) {
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
    }
    Sweeper sweeper = this->sweeper();
    EXPECT_EQ(sweeper.sweep(), 4u);
    clock.advance(lease);
    sweeper.sweep();
    EXPECT_EQ(claimed(), 0u);
    clock.advance(lease);
    EXPECT_EQ(sweeper.sweep(), 1u) << "the slot is there still";
}

TEST_P(Sweeping, a_participant_that_was_lost_or_changed_by_hand_is_reported_and_nothing_is_called_done) {
    const store::Key slot = slot_key("account-y", 1);
    const Claim foreign{.tx = "theirs",
                        .primary = slot_key("account-z", 1),
                        .primary_epoch = 0,
                        .lease = testing::ManualClock::default_start + hours{24},
                        .priority = {},
                        .lease_length = hours{24}};
    const std::map<std::string, std::vector<store::Write>> ways{
        {"is gone", {{slot, store::Erase{}, {}}}},
        {"was emptied", {{slot, store::Erase{}, {}}, fence_free_slot(slot, 0)}},
        {"holds what theirs wrote",
         {{slot, store::Erase{}, {}}, commit_free_slot(slot, 0, {.write_id = "theirs", .payload = {}})}},
        {"is claimed by theirs", {{slot, store::Erase{}, {}}, prepare_slot(slot, 0, foreign, {})}},
    };
    for (const auto& [how, by_hand] : ways) {
        SCOPED_TRACE(how);
        World world{GetParam()};
        world.die_after_the_commit();
        for (const store::Write& write : by_hand)
            ASSERT_TRUE(std::holds_alternative<store::Applied>(world.inner->write({&write, 1}).front()));
        const std::optional<store::Item> changed = world.item(slot);
        const std::string tx = *store::text(world.item(slot_key("account-x", 1)).value(), "write_id");
        Sweeper sweeper = world.sweeper();
        sweeper.sweep();
        for (int pass = 0; pass < 3; ++pass) {
            world.clock.advance(lease);
            EXPECT_GE(sweeper.sweep(), 1u) << "it stays listed";
            EXPECT_FALSE(world.is_done());
            EXPECT_EQ(world.item(slot), changed);
            const std::string said = world.log.text();
            EXPECT_NE(said.find(tx), std::string::npos) << said;
            EXPECT_NE(said.find("account-y"), std::string::npos) << said;
            EXPECT_NE(said.find(how), std::string::npos) << said;
            world.log.clear();
        }
    }
}

TEST_P(Sweeping, a_row_that_was_erased_by_hand_is_reported_until_its_tombstone_might_have_gone_as_well) {
    die_after_the_commit();
    const store::Key row{"balances", "y", {}};
    const store::Write loss{row, store::Erase{}, {}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&loss, 1}).front()));
    const std::string tx = *store::text(item(slot_key("account-x", 1)).value(), "write_id");
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    for (int pass = 0; pass < 3; ++pass) {
        clock.advance(lease);
        EXPECT_GE(sweeper.sweep(), 1u) << "it stays listed";
        EXPECT_FALSE(is_done());
        for (const std::string& part : {tx, store::to_string(row), std::string{"is gone"}})
            EXPECT_NE(log.text().find(part), std::string::npos) << log.text();
        log.clear();
    }
    clock.advance(Options{}.retention / 2);
    sweeper.sweep();
    EXPECT_EQ(is_done(), marks);
    EXPECT_EQ(log.text(), "");
}

TEST_F(SweepingByScans, an_owner_marks_nothing_done_where_its_row_was_erased_by_hand) {
    transfer(*owner);
    const store::Write loss{{"balances", "y", {}}, store::Erase{}, {}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&loss, 1}).front()));
    later.drain();
    EXPECT_FALSE(is_done());
}

TEST_F(SweepingByScans, an_owner_marks_nothing_done_where_its_finalise_was_refused) {
    transfer(*owner);
    const store::Key slot = slot_key("account-y", 1);
    const store::Write loss{slot, store::Erase{}, {}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&loss, 1}).front()));
    later.drain();
    EXPECT_FALSE(is_done());
}

TEST_P(Sweeping, an_owner_says_which_row_was_lost) {
    transfer(*owner);
    const std::string tx = *store::text(item(slot_key("account-x", 1)).value(), "write_id");
    const store::Key row{"balances", "y", {}};
    const store::Write loss{row, store::Erase{}, {}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&loss, 1}).front()));
    later.drain();
    for (const std::string& part : {tx, store::to_string(row), std::string{"is gone"}})
        EXPECT_NE(log.text().find(part), std::string::npos) << log.text();
}

TEST_P(Sweeping, an_owner_says_which_slot_was_lost_though_there_is_no_done_mark_to_withhold) {
    transfer(*other);
    const std::string tx = *store::text(item(slot_key("account-x", 1)).value(), "write_id");
    const store::Write loss{slot_key("account-y", 1), store::Erase{}, {}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&loss, 1}).front()));
    later.drain();
    for (const std::string& part : {tx, std::string{"account-y"}, std::string{"is gone"}})
        EXPECT_NE(log.text().find(part), std::string::npos) << log.text();
}

struct ForeignClient : Sweeping {
    const store::Key row{"balances", "y", {}};
    const store::Key primary = slot_key("account-x", 2);
    std::string tx;

    ForeignClient() {
        transfer(*owner);
        later.drain();
        transfer(*owner);
        tx = *store::text(item(primary).value(), "write_id");
    }
    void change(store::Update update) {
        const store::Write write{row, std::move(update), {}};
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
    }
    void expect_names_both(const std::string& said) const {
        for (const std::string& part : {tx, store::to_string(row)})
            EXPECT_NE(said.find(part), std::string::npos) << said;
    }
};
INSTANTIATE_TEST_SUITE_P(Each, ForeignClient, ::testing::Values(Order::kept, Order::not_kept), name_of);

TEST_P(ForeignClient, that_changes_a_row_beneath_an_intent_is_reported_by_everybody_who_meets_it) {
    change({.set = {{"data", R"({"cents":1000})"}}, .remove = {}});
    const std::optional<store::Item> changed = item(row);
    later.drain();
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    for (int pass = 0; pass < 3; ++pass) {
        log.clear();
        clock.advance(lease);
        EXPECT_GE(sweeper.sweep(), 1u) << "it stays listed";
        expect_names_both(log.text());
        EXPECT_EQ(item(row), changed);
        EXPECT_FALSE(item(primary)->contains("done"));
    }
    for (const auto& meet : std::initializer_list<std::function<void()>>{
             [&] { static_cast<void>(owner->rows<Balance>().get("y")); },
             [&] { static_cast<void>(owner->execute<Account>("y", Deposit{1})); }}) {
        try {
            meet();
            ADD_FAILURE() << "nobody was told";
        } catch (const CorruptionError& error) {
            expect_names_both(error.what());
        }
    }
    EXPECT_EQ(item(row), changed);
}

TEST_P(ForeignClient, that_has_changed_a_row_can_let_the_transaction_end_upon_that) {
    change({.set = {{"data", R"({"cents":1000})"}}, .remove = {"_was_data"}});
    later.drain();
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    clock.advance(lease);
    sweeper.sweep();
    EXPECT_EQ(owner->rows<Balance>().get("y")->cents, 2);
    EXPECT_EQ(item(primary)->contains("done"), marks);
}

TEST_P(ForeignClient, that_writes_an_intent_without_a_trace_is_believed_as_old_versions_are) {
    change({.set = {}, .remove = {"_was_data"}});
    later.drain();
    EXPECT_EQ(owner->rows<Balance>().get("y")->cents, 2);
    EXPECT_EQ(item(primary)->contains("done"), marks);
}

/// Slots that as many owners have prepared, none of whom has come to its commit.
std::vector<store::Key> prepare_many(store::ItemStore& store, int n, Time lease) {
    std::vector<store::Key> keys;
    for (int i = 0; i < n; ++i) {
        const std::string number = std::to_string(i);
        keys.push_back(slot_key("stuck-" + number, 1));
        const Claim claim{.tx = "t" + number,
                          .primary = slot_key("primary-" + number, 1),
                          .primary_epoch = 0,
                          .lease = lease,
                          .priority = lease};
        const store::Write write = prepare_slot(keys.back(), 0, claim, {});
        EXPECT_TRUE(std::holds_alternative<store::Applied>(store.write({&write, 1}).front()));
    }
    return keys;
}

TEST_P(Sweeping, hundreds_that_are_stuck_are_settled_together_and_all_in_one_pass) {
    prepare_many(*inner, 1200, clock.now());
    const auto counting = std::make_shared<testing::CountingStore>(shown);
    Application bank{counting, options()};
    Sweeper sweeper{coordinator_of(bank), {}, at_once};
    EXPECT_EQ(sweeper.sweep(), 1200u);
    clock.advance(lease);
    counting->reset();
    sweeper.sweep();
    EXPECT_EQ(claimed(), 0u);
    EXPECT_EQ(bank.metrics().swept, 1200u);
    // Of three chunks: what lies there, their primaries; fences, what clears them.
    EXPECT_EQ(counting->counts().read_batches, 3u * 2u);
    EXPECT_LE(counting->counts().write_batches, 3u * 2u + 1u) << "and the checkpoint";
}

TEST_F(SweepingByScans, hundreds_of_commits_are_finished_together_and_all_in_one_pass) {
    for (int i = 0; i < 600; ++i) {
        static_cast<void>(
            owner->transact([&](Transaction& tx) { tx.execute<Account>(std::to_string(i), Deposit{1}); }));
    }
    later.forget();
    ASSERT_EQ(claimed(), 600u);
    const auto counting = std::make_shared<testing::CountingStore>(shown);
    Application bank{counting, options()};
    Sweeper sweeper{coordinator_of(bank), {}, at_once};  // meets the primaries alone
    EXPECT_EQ(sweeper.sweep(), 600u);
    clock.advance(lease);
    counting->reset();
    EXPECT_EQ(sweeper.sweep(), 0u);
    EXPECT_EQ(claimed(), 0u);
    EXPECT_EQ(bank.metrics().finalised_for_others, 600u);
    // Of two chunks: the primaries, what they name; what is finalised, the marks.
    EXPECT_EQ(counting->counts().read_batches, 2u * 2u);
    EXPECT_LE(counting->counts().write_batches, 2u * 2u + 1u) << "and the checkpoint";
}

/// Shows each slot of an account with megabytes of events in addition, and reports how much memory the program has
/// taken with that.
class LargeSlots final : public testing::PassingStore {
  public:
    using PassingStore::PassingStore;
    std::size_t bytes_most = 0;

    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        std::vector<std::optional<store::Item>> items = inner().read(keys);
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (items[i]) enlarge(keys[i], *items[i]);
        }
        look();
        return items;
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        look();
        return inner().write(writes);
    }
    std::vector<store::Change> changes(const std::string& table, store::Position after, std::size_t limit) override {
        std::vector<store::Change> page;
        for (std::size_t bytes = 0; page.size() < limit && bytes < store::page_bytes;) {
            std::vector<store::Change> one = inner().changes(table, after, 1);
            if (one.empty()) break;
            after = one.front().position;
            enlarge(one.front().record.key, one.front().record.item);
            bytes += store::bytes(one.front().record.key, one.front().record.item);
            page.push_back(std::move(one.front()));
        }
        look();
        return page;
    }
    store::Capabilities capabilities() const override {
        store::Capabilities capabilities = inner().capabilities();
        capabilities.item_bytes_max = std::size_t{8} << 20;
        return capabilities;
    }
    /// Of the whole program, in use.
    static std::size_t bytes_now() {
        if (__sanitizer_get_current_allocated_bytes != nullptr) return __sanitizer_get_current_allocated_bytes();
        const struct mallinfo2 info = mallinfo2();
        return info.uordblks + info.hblkhd;
    }

  private:
    static void enlarge(const store::Key& key, store::Item& item) {
        if (!key.partition.starts_with("account-")) return;
        const std::size_t mebibytes = 1 + std::hash<std::string>{}(key.partition) % 8;
        item["padding"] = std::string((mebibytes << 20) - 1000, 'x');
    }
    void look() { bytes_most = std::max(bytes_most, bytes_now()); }
};

TEST_F(SweepingByChanges, what_is_left_of_many_large_items_takes_little_memory) {
    static_cast<void>(owner->transact([](Transaction& tx) {
        for (int i = 0; i < 150; ++i) tx.execute<Account>(std::to_string(i), Deposit{1});
    }));
    later.forget();
    ASSERT_GE(claimed(), 298u) << "slots and rows, but for the primary";
    const auto large = std::make_shared<LargeSlots>(inner);
    Application idle{large, options()};
    Sweeper sweeper{coordinator_of(idle), {"balances"}, at_once};
    const std::size_t before = LargeSlots::bytes_now();
    while (!sweeper.is_through()) sweeper.sweep();
    clock.advance(lease);
    while (claimed() > 0) sweeper.sweep();
    EXPECT_GT(large->bytes_most, before + (std::size_t{8} << 20)) << "the program's memory cannot be seen";
    EXPECT_LT(large->bytes_most, before + (std::size_t{64} << 20));
}

TEST_P(Sweeping, one_whose_primary_cannot_be_read_keeps_no_other_from_being_settled) {
    const std::vector<store::Key> keys = prepare_many(*inner, 10, clock.now());
    const store::Write write{slot_key("primary-4", 1), store::Put{{{"state", std::string{"?"}}}}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    clock.advance(lease);
    sweeper.sweep();
    EXPECT_EQ(claimed(), 1u);
    EXPECT_TRUE(claim_on(keys[4], item(keys[4]).value()));
}

TEST_F(SweepingByChanges, a_checkpoint_is_kept_and_resumed) {
    append_many(700);
    sweeper().sweep();
    const std::int64_t saved = checkpoint("sweeper/events");
    EXPECT_EQ(saved, 700);

    const auto counting = std::make_shared<testing::CountingStore>(inner);
    Application next{counting, options()};
    Sweeper successor{coordinator_of(next), {}};
    counting->start_recording();
    successor.sweep();
    EXPECT_EQ(counting->recorded(), (std::vector<std::string>{"changes: events after 700"}));
}

TEST_F(SweepingByChanges, a_stream_appears_in_the_order_of_its_versions_since_no_committed_slot_is_written_again) {
    transfer(*owner);
    transfer(*owner);
    later.drain();
    die_after_the_commit();
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    clock.advance(lease);
    sweeper.sweep();
    ASSERT_EQ(claimed(), 0u);
    std::vector<std::string> seen;
    for (const store::Change& change : inner->changes("events", 0, 100)) {
        seen.push_back(store::to_string(change.record.key));
        EXPECT_FALSE(change.record.item.contains("done")) << seen.back();
    }
    ASSERT_EQ(seen.size(), 6u);
    for (const char* stream : {"account-x", "account-y"}) {
        std::vector<std::string> of_stream;
        std::ranges::copy_if(seen, std::back_inserter(of_stream),
                             [&](const std::string& key) { return key.find(stream) != std::string::npos; });
        EXPECT_TRUE(std::ranges::is_sorted(of_stream)) << ::testing::PrintToString(of_stream);
    }
}

TEST_F(SweepingByChanges, a_commit_that_was_marked_done_reads_like_any_other) {
    transfer(*owner);
    later.drain();
    const store::Key primary = slot_key("account-x", 1);
    const store::Write mark = mark_done(primary, *store::text(item(primary).value(), "write_id"));
    ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&mark, 1}).front()));
    EXPECT_EQ(sweeper().sweep(), 0u);
    EXPECT_EQ(other->load<Account>("x").state.balance, 1);
    transfer(*other);
    EXPECT_EQ(owner->load<Account>("x").state.balance, 2);
}

TEST_F(SweepingByChanges, a_slow_sweeper_does_not_set_the_checkpoint_back) {
    append_many(600);
    Sweeper slow = this->sweeper();
    Sweeper fast = this->sweeper();
    const store::Write ahead{{system_table().name, "sweeper/events"}, store::Put{{{"position", std::int64_t{5000}}}}};
    static_cast<void>(inner->write({&ahead, 1}));
    slow.sweep();
    EXPECT_EQ(checkpoint("sweeper/events"), 5000);
}

TEST_P(Sweeping, several_sweepers_at_once_do_no_harm) {
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
    EXPECT_EQ(is_done(), marks);
    EXPECT_EQ(other->rows<Balance>().get("x"), Balance{1});
    clock.advance(lease);
    EXPECT_EQ(first.sweep(), 0u);
    EXPECT_EQ(second.sweep(), 0u);
}

TEST_P(Sweeping, several_sweepers_on_threads_do_no_harm_while_transfers_run) {
    // Who takes longer than this lease is ended, and does so again: attempts stay short.
    Application bank{
        shown,
        {.retry = {.time_max = hours{1}},
         .escalation = {.queue_after = 1'000'000, .reserve_after = 1'000'000, .reserve_after_time = hours{1}},
         .transactions = {.strategy = Strategy::protocol, .lease = std::chrono::milliseconds{1}},
         .sweep = false}};
    bank.project<Account>(ProjectBalance{});
    constexpr int transfers = 40;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back([&](const std::stop_token& stop) {
                Sweeper aggressive{coordinator_of(bank), {"balances"}, at_once};
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

/// Answers the finalise of one row with a failure, always.
auto fail_the_finalise_of_a_row() {
    return [failing = store::Key{}](std::span<const store::Write> writes,
                                    std::vector<store::WriteAnswer>& answers) mutable {
        for (std::size_t i = 0; i < writes.size(); ++i) {
            if (writes[i].key.table != "balances") continue;
            if (failing == store::Key{}) failing = writes[i].key;
            if (writes[i].key == failing) answers[i] = Failure{ErrorKind::unavailable, true, "no answer"};
        }
    };
}

TEST_F(SweepingByScans, an_owner_marks_done_only_after_all_finalises_were_answered) {
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

TEST_F(SweepingByScans, a_sweeper_marks_done_only_after_all_finalises_were_answered) {
    die_after_the_commit();
    Sweeper sweeper{coordinator_of(*other), {}, at_once};  // meets the rows as the primary names them
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

struct Tombstones : World, ::testing::TestWithParam<Order> {
    const store::Key row{"balances", "x"};
    Tombstones() : World(GetParam()) {
        put({1});
        static_cast<void>(other->transact([](Transaction& tx) { tx.rows<Balance>().erase("x"); }));
    }
    void put(const Balance& balance) {
        static_cast<void>(other->transact([&](Transaction& tx) { tx.rows<Balance>().put("x", balance); }));
    }
};

INSTANTIATE_TEST_SUITE_P(Each, Tombstones, ::testing::Values(Order::kept, Order::not_kept), name_of);

TEST_P(Tombstones, are_collected_after_their_retention_and_not_before) {
    Sweeper sweeper = this->sweeper();
    clock.advance(hours{1} - seconds{1});
    sweeper.sweep();
    ASSERT_TRUE(item(row));
    EXPECT_EQ(other->rows<Balance>().get("x"), std::nullopt);
    clock.advance(seconds{2});
    sweeper.sweep();
    EXPECT_FALSE(item(row));
}

TEST_P(Tombstones, written_over_are_left_alone) {
    put({2});
    clock.advance(hours{2});
    sweeper().sweep();
    EXPECT_EQ(other->rows<Balance>().get("x"), Balance{2});
}

TEST_P(Tombstones, beneath_an_intent_wait_for_its_outcome) {
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

TEST_P(Tombstones, one_that_a_clock_far_ahead_has_left_keeps_no_other_from_being_collected) {
    const auto leave_one = [&](const std::string& id) {
        const auto expires = std::chrono::ceil<seconds>(clock.now() + hours{1}).time_since_epoch().count();
        const store::Write write = write_row({"balances", id}, {}, {.rev = "w" + id, .expires = expires});
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
    };
    clock.advance(hours{2});  // the fixture's own
    clock.jump(hours{240});
    leave_one("ahead");
    clock.jump(-hours{240});
    leave_one("later");
    Sweeper sweeper = this->sweeper();
    sweeper.sweep();
    clock.advance(hours{1} - seconds{1});
    sweeper.sweep();
    ASSERT_TRUE(item({"balances", "later"}));
    ASSERT_TRUE(item({"balances", "ahead"}));
    clock.advance(seconds{2});
    sweeper.sweep();
    EXPECT_FALSE(item({"balances", "later"}));
    EXPECT_EQ(item({"balances", "ahead"}).has_value(), GetParam() == Order::not_kept)
        << "a scan keeps no notes; there it hinders nobody";
}

TEST_P(Tombstones, of_one_row_that_a_clock_far_ahead_has_left_twice_are_collected_in_their_time) {
    clock.advance(hours{2});  // the fixture's own
    Sweeper sweeper = this->sweeper();
    const auto leave_one = [&](const std::string& rev) {
        const auto expires = std::chrono::ceil<seconds>(clock.now() + hours{241}).time_since_epoch().count();
        const store::Write write = {{"balances", "ahead"}, store::Put{{{"_rev", rev}, {"_expires", expires}}}, {}};
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
        sweeper.sweep();
    };
    leave_one("w1");
    leave_one("w2");
    clock.advance(hours{2});
    sweeper.sweep();
    clock.advance(hours{240});
    sweeper.sweep();
    EXPECT_FALSE(item({"balances", "ahead"}));
}

TEST_P(Tombstones, the_collectors_checkpoint_stops_at_what_is_not_yet_due) {
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
    EXPECT_EQ(checkpoint("collector/balances") >= 600, GetParam() == Order::kept);
}

// ---- how fast a store is scanned

constexpr ScanOptions slowly{.page_interval = std::chrono::milliseconds{200}, .pause = seconds{60}};
constexpr std::uint64_t parts = 8;  // four segments of each of two tables, each of one page here

TEST_F(SweepingByScans, pages_are_read_no_faster_than_asked_for) {
    const auto bank = counted();
    Sweeper sweeper{coordinator_of(*bank), {"balances"}, slowly};
    sweeper.sweep();
    EXPECT_EQ(pages(), 1u);
    sweeper.sweep();
    EXPECT_EQ(pages(), 1u);
    clock.advance(std::chrono::milliseconds{600});
    sweeper.sweep();
    EXPECT_EQ(pages(), 4u) << "what was not read since the last sweep may be read now";
    EXPECT_FALSE(sweeper.is_through());
    for (int i = 0; i < 10; ++i) {
        clock.advance(std::chrono::milliseconds{100});
        sweeper.sweep();
    }
    EXPECT_EQ(pages(), parts);
    EXPECT_TRUE(sweeper.is_through());
}

TEST_F(SweepingByScans, a_scan_is_followed_by_a_pause_in_which_what_was_met_is_settled) {
    die_before_the_commit(*owner);
    const auto bank = counted();
    Sweeper sweeper{coordinator_of(*bank), {"balances"}, {.page_interval = Duration{0}, .pause = seconds{60}}};
    EXPECT_EQ(sweeper.sweep(), 3u);
    EXPECT_EQ(pages(), parts);
    clock.advance(lease);
    EXPECT_EQ(sweeper.sweep(), 3u) << "until it has seen them without a claim";
    EXPECT_EQ(sweeper.sweep(), 0u);
    EXPECT_EQ(claimed(), 0u);
    EXPECT_EQ(pages(), parts);
    clock.advance(seconds{60} - lease - Duration{1});
    sweeper.sweep();
    EXPECT_EQ(pages(), parts);
    clock.advance(Duration{1});
    sweeper.sweep();
    EXPECT_EQ(pages(), 2 * parts);
}

TEST_F(SweepingByScans, a_slow_scan_settles_what_it_has_met_before_it_is_through) {
    die_before_the_commit(*owner);
    const auto bank = counted();
    Sweeper sweeper{coordinator_of(*bank), {"balances"}, {.page_interval = lease / 2, .pause = seconds{60}}};
    std::size_t before_the_end = 0;
    do {
        before_the_end = bank->metrics().swept;
        clock.advance(lease / 2);
        sweeper.sweep();
    } while (!sweeper.is_through());
    EXPECT_GT(before_the_end, 0u);
}

TEST_F(SweepingByScans, a_clock_that_is_set_back_stops_nothing) {
    const auto bank = counted();
    Sweeper sweeper{coordinator_of(*bank), {"balances"}, slowly};
    const auto scan = [&] {
        clock.advance(seconds{60});
        do {
            clock.advance(seconds{1});
            sweeper.sweep();
        } while (!sweeper.is_through());
    };
    scan();
    clock.jump(-hours{5});
    sweeper.sweep();
    scan();
    EXPECT_EQ(pages(), 2 * parts);
}

TEST_F(SweepingByScans, small_and_empty_pages_bring_all_there_is) {
    die_before_the_commit(*owner);
    append_many(100);
    network.set_rates({.small_page = 1});
    Sweeper sweeper = this->sweeper();
    do sweeper.sweep();
    while (!sweeper.is_through());
    EXPECT_GT(network.counts().empty_page, 0u);
    EXPECT_EQ(sweeper.sweep(), 3u);
}

TEST_F(SweepingByScans, a_page_that_could_not_be_read_is_read_again) {
    append_many(2000);
    die_before_the_commit(*owner);
    network.set_rates({.read_failed = 0.3});
    Sweeper sweeper = this->sweeper();
    int failures = 0;
    do {
        try {
            sweeper.sweep();
        } catch (const UnavailableError&) {
            ++failures;
        }
    } while (!sweeper.is_through());
    EXPECT_GT(failures, 0);
    network.set_rates({});
    EXPECT_EQ(sweeper.sweep(), 3u);
}

TEST_F(SweepingByScans, an_application_has_a_sweeper_without_being_told) {
    die_after_the_commit();
    ApplicationOptions options{.transactions = {.lease = Duration{1}}, .sweep_interval = Duration{1}};
    options.scan = at_once;
    Application bank{shown, options};
    static_cast<void>(bank.rows<Balance>());
    while (!is_done()) std::this_thread::yield();
    EXPECT_EQ(claimed(), 0u);
    EXPECT_GT(bank.metrics().swept, 0u);
}

}  // namespace
}  // namespace varve::transactions
