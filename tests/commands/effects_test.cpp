#include "support/account.h"
#include "support/held_write.h"

#include <varve/events/event_store.h>
#include <varve/testing/manual_world.h>

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace varve {
namespace {

using account::Balance;
using account::Deposit;
using account::Deposited;

struct Thank {
    std::string whom;
};
struct Wave {};
struct Audit {
    std::int64_t cents = 0;
    std::string by;
};

/// Says thank you for large gifts; refuses those of nothing.
struct Box {
    static constexpr std::string_view name = "box";
    using Event = std::variant<Deposited>;

    std::int64_t cents = 0;

    void apply(const Deposited& e) { cents += e.cents; }
    Decision<Event> decide(const Deposit& c) const {
        if (c.cents == 0) return reject("nothing");
        Decision<Event> decision{Deposited{c.cents}};
        return c.cents < 100 ? std::move(decision) : std::move(decision).effect(Thank{"the donor"});
    }
    Decision<Event> decide(const Wave&) const { return Decision<Event>{}.effect(Thank{"everybody"}); }
};

struct AuditLarge {
    void operator()(const Deposited& e, ProjectionContext& context) const {
        const Metadata& metadata = context.metadata();
        if (e.cents >= 1000) context.effect(Audit{e.cents, metadata.headers.at("user") + " " + metadata.correlation});
    }
};

struct Effects : ::testing::Test {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Application app{store};

    std::vector<std::string> of(const Receipt& receipt) {
        std::vector<std::string> found;
        if (!receipt.effects_slot) return found;
        for (const Effect& one : app.events().effects(receipt.effects_slot->stream, receipt.effects_slot->version))
            found.push_back(one.effect.type + one.effect.data);
        return found;
    }
};

using Texts = std::vector<std::string>;

TEST_F(Effects, are_decided_by_execute_and_by_projections_as_by_a_transaction) {
    app.project<Box>(AuditLarge{});
    const CommandOptions by_ann{.command_id = "gift-1", .correlation = "party", .headers = {{"user", "ann"}}};
    EXPECT_EQ(of(app.execute<Box>("red", Deposit{5}).value()), Texts{});
    EXPECT_EQ(of(app.execute<Box>("red", Deposit{100}).value()), Texts{R"(Thank{"whom":"the donor"})"});
    const Texts both{R"(Audit{"cents":1000,"by":"ann party"})", R"(Thank{"whom":"the donor"})"};
    EXPECT_EQ(of(app.execute<Box>("red", Deposit{1000}, by_ann).value()), both);
    EXPECT_EQ(app.execute<Box>("red", Deposit{0}).error().code, "nothing");

    const Outcome two = app.transact([](Transaction& tx) {
        tx.execute<Box>("red", Deposit{100});
        tx.effect(Thank{"all"});
        tx.execute<Box>("blue", Deposit{200});
    });
    const Texts three{R"(Thank{"whom":"the donor"})", R"(Thank{"whom":"all"})", R"(Thank{"whom":"the donor"})"};
    EXPECT_EQ(of(*two), three);
}

TEST_F(Effects, of_commands_that_are_written_together_are_all_there) {
    std::vector<std::future<Outcome>> futures;
    for (int i = 0; i < 20; ++i) futures.push_back(app.submit<Box>("red", Deposit{i % 2 == 0 ? 100 : 0}));
    std::map<Version, std::size_t> slots;
    std::size_t accepted = 0;
    for (auto& future : futures) {
        if (const Outcome outcome = future.get()) {
            ++accepted;
            slots[outcome->effects_slot->version] = of(*outcome).size();
        }
    }
    EXPECT_EQ(accepted, 10u);
    std::size_t effects = 0;
    for (const auto& [version, count] : slots) effects += count;
    EXPECT_EQ(effects, 10u);
}

struct Gift {
    static constexpr std::string_view table = "gifts";
    std::int64_t cents = 0;
};

TEST_F(Effects, are_in_the_slot_of_the_aggregate_that_got_the_first_event_by_whichever_way_it_commits) {
    using Written = Receipt::Written;
    const auto two_boxes = [](Transaction& tx) {
        tx.execute<Box>("red", Deposit{1});
        tx.execute<Box>("blue", Deposit{1});
        tx.effect(Thank{"all"});
    };
    Version version = 0;
    for (const auto strategy : {transactions::Strategy::automatic, transactions::Strategy::protocol}) {
        Application bank{store, {.transactions = {.strategy = strategy}}};
        const std::string id = "gift-" + std::to_string(static_cast<int>(strategy));
        EXPECT_EQ(bank.transact(two_boxes)->effects_slot, (Written{"box-red", ++version}));
        EXPECT_EQ(bank.transact(two_boxes, {.command_id = id})->effects_slot, (Written{"box-red", ++version}));
        EXPECT_EQ(bank.transact(two_boxes, {.command_id = id})->effects_slot, std::nullopt) << "it is a repeat";

        const Outcome of_rows = bank.transact([](Transaction& tx) {
            tx.rows<Gift>().put("red", {tx.rows<Gift>().get("red").value_or(Gift{}).cents + 1});
            tx.effect(Thank{"nobody"});
        });
        EXPECT_EQ(of_rows->effects_slot, (Written{"$tx-" + of_rows->transaction, 1}));
        EXPECT_EQ(of(*of_rows), Texts{R"(Thank{"whom":"nobody"})"});
    }
    EXPECT_EQ(app.execute<Box>("red", Deposit{1})->effects_slot, std::nullopt);
}

TEST_F(Effects, have_the_time_and_the_metadata_of_the_command_that_decided_them) {
    const Outcome alone = app.execute<Box>("red", Deposit{100}, {.correlation = "party"});
    const Outcome of_rows = app.transact([](Transaction& tx) { tx.effect(Thank{"all"}); }, {.correlation = "party"});
    for (const Outcome* outcome : {&alone, &of_rows}) {
        const Effect effect =
            app.events().effects((*outcome)->effects_slot->stream, (*outcome)->effects_slot->version).front();
        EXPECT_EQ(effect.metadata->correlation, "party");
        EXPECT_GT(effect.time, Time{});
    }
}

TEST(EffectsOfALane, have_the_metadata_of_their_own_commands) {
    const auto hooked = std::make_shared<HookedStore>(open("memory:"));
    Application app{hooked};
    app.execute<Box>("red", Deposit{1}).value();
    HeldWrite held{*hooked};
    std::vector<std::future<Outcome>> futures;
    futures.push_back(app.submit<Box>("red", Deposit{1}, {.correlation = "before"}));
    held.wait();
    for (const char* name : {"first", "second", "none", "fourth"}) {
        const std::int64_t cents = std::string_view{name} == "none" ? 1 : 100;
        futures.push_back(app.submit<Box>("red", Deposit{cents}, {.correlation = name}));
    }
    held.release();
    std::set<Version> versions;
    for (auto& future : futures) versions.insert(future.get()->written.front().version);
    ASSERT_EQ(versions.size(), 2u) << "the last four are written together";
    Texts correlations;
    for (const Effect& effect : app.events().effects("box-red", *versions.rbegin()))
        correlations.push_back(effect.metadata->correlation);
    EXPECT_EQ(correlations, (Texts{"first", "second", "fourth"}));
}

TEST(EffectsOfALane, without_events_are_told_to_whose_they_are_and_to_nobody_else) {
    const auto hooked = std::make_shared<HookedStore>(open("memory:"));
    Application app{hooked};
    app.execute<Box>("red", Deposit{1}).value();
    HeldWrite held{*hooked};
    std::future<Outcome> before = app.submit<Box>("red", Deposit{1});
    held.wait();
    std::vector<std::future<Outcome>> waving;
    for (const char* name : {"first", "second"})
        waving.push_back(app.submit<Box>("red", Wave{}, {.correlation = name}));
    held.release();
    std::set<std::string> correlations;
    for (auto& future : waving) {
        const Receipt receipt = future.get().value();
        ASSERT_TRUE(receipt.effects_slot);
        EXPECT_FALSE(receipt.transaction.empty());
        for (const Effect& effect : app.events().effects(receipt.effects_slot->stream, receipt.effects_slot->version))
            correlations.insert(effect.metadata->correlation);
    }
    EXPECT_EQ(correlations, (std::set<std::string>{"first", "second"}));
    EXPECT_EQ(before.get()->effects_slot, std::nullopt);
}

TEST(EffectsOnTheirWay, are_there_as_soon_as_their_command_is_acknowledged) {
    testing::ManualWorld world;
    const auto store = open("memory:");
    Application app{store, world.options({.transactions = {.strategy = transactions::Strategy::protocol}})};
    const Outcome outcome = app.execute<Box>("red", Deposit{100}, {.command_id = "c-1"});
    ASSERT_EQ(outcome->effects_slot, (Receipt::Written{"box-red", 1}));
    const store::Key slot{"events", "box-red", std::int64_t{1}};
    EXPECT_TRUE(store->read({&slot, 1}).front()->contains("_tx")) << "it is not in place yet";
    EXPECT_EQ(app.events().effects("box-red", 1).size(), 1u);
    world.later.drain();
    EXPECT_EQ(app.events().effects("box-red", 1).size(), 1u);
    EXPECT_TRUE(app.events().effects("box-red", 2).empty());
    EXPECT_THROW(static_cast<void>(app.events().effects("box-red", 0)), InvalidError);
}

TEST_F(Effects, that_name_a_command_which_is_not_there_are_damage) {
    const auto store_effects = [&](const std::string& stream, store::Item payload) {
        payload.merge(store::Item{{"state", "committed"}, {"write_id", "w"}, {"time", 5}, {"events", "[]"}});
        const store::Write write{{"events", stream, std::int64_t{1}}, store::Put{std::move(payload)}};
        ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&write, 1}).front()));
    };
    const std::string of_second = R"([{"type":"Thank","data":{},"command":1}])";
    store_effects("box-a", {{"effects", of_second}, {"commands", R"([{"events":0},{"events":0}])"}});
    EXPECT_EQ(app.events().effects("box-a", 1).size(), 1u);
    store_effects("box-b", {{"effects", of_second}, {"commands", R"([{"events":0}])"}});
    store_effects("box-c", {{"effects", of_second}});
    for (const char* stream : {"box-b", "box-c"})
        EXPECT_THROW(static_cast<void>(app.events().effects(stream, 1)), CorruptionError) << stream;
}

TEST_F(Effects, that_an_older_version_has_stored_on_the_slot_that_decided_can_be_read) {
    app.execute<Box>("red", Deposit{1}).value();
    const store::Write write{
        {"events", "$tx-old", std::int64_t{1}},
        store::Put{
            {{"state", "committed"}, {"write_id", "old"}, {"effects", R"([{"type":"Thank","data":{"whom":"ann"}}])"}}}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&write, 1}).front()));
    const std::vector<Effect> effects = app.events().effects("$tx-old", 1);
    ASSERT_EQ(effects.size(), 1u);
    EXPECT_EQ(effects[0].effect.data, R"({"whom":"ann"})");
    EXPECT_EQ(effects[0].id, "old:0");
    EXPECT_EQ(*effects[0].metadata, Metadata{});
}

TEST_F(Effects, of_a_rejection_are_refused) {
    EXPECT_THROW(static_cast<void>(Decision<Box::Event>{reject("no")}.effect(Thank{"nobody"})), InvalidError);
}

}  // namespace
}  // namespace varve
