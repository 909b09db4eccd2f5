#include "events/snapshot.h"

#include "support/hooked_store.h"

#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>
#include <varve/testing/recorded_log.h>
#include <varve/varve.h>

#include <set>
#include <unordered_map>

#include <gtest/gtest.h>

namespace varve {
namespace {

using transactions::Strategy;

struct Added {
    std::int64_t by = 0;
    std::string note;
};
struct Add {
    std::int64_t by = 0;
    std::string note;
};

/// The same stream, folded by programs of different ages.
struct Sum {
    static constexpr std::string_view name = "sum";
    static constexpr SnapshotPolicy snapshots{.every_slots = 10};
    using Event = std::variant<Added>;
    std::int64_t total = 0;
    std::unordered_map<std::string, std::int64_t> by_note;

    void apply(const Added& e) {
        total += e.by;
        by_note[e.note] += e.by;
    }
    Decision<Event> decide(const Add& c) const { return Added{c.by, c.note}; }
};
struct SumWithAnotherField {
    static constexpr std::string_view name = "sum";
    static constexpr SnapshotPolicy snapshots{.every_slots = 10};
    using Event = std::variant<Added>;
    std::int64_t total = 0;
    std::int64_t count = 0;

    void apply(const Added& e) {
        total += e.by;
        ++count;
    }
    Decision<Event> decide(const Add& c) const { return Added{c.by, c.note}; }
};
struct SumOfAnotherMeaning {
    static constexpr std::string_view name = "sum";
    static constexpr SnapshotPolicy snapshots{.version = 2, .every_slots = 10};
    using Event = std::variant<Added>;
    std::int64_t total = 0;
    std::unordered_map<std::string, std::int64_t> by_note;

    void apply(const Added& e) { total += 2 * e.by; }
    Decision<Event> decide(const Add& c) const { return Added{c.by, c.note}; }
};
struct SumByBytes {
    static constexpr std::string_view name = "bytes";
    static constexpr SnapshotPolicy snapshots{.every_bytes = 1000};
    using Event = std::variant<Added>;
    std::int64_t total = 0;

    void apply(const Added& e) { total += e.by; }
    Decision<Event> decide(const Add& c) const { return Added{c.by, c.note}; }
};
template <class Unit>
struct Waited {
    static constexpr std::string_view name = "waited";
    static constexpr SnapshotPolicy snapshots{.every_slots = 10};
    using Event = std::variant<Added>;
    Unit total{};

    void apply(const Added& e) { total += Unit{e.by}; }
    Decision<Event> decide(const Add& c) const { return Added{c.by, c.note}; }
};
struct SumByTime {
    static constexpr std::string_view name = "time";
    static constexpr SnapshotPolicy snapshots{.load_time_max = std::chrono::milliseconds{50}};
    using Event = std::variant<Added>;
    std::int64_t total = 0;

    void apply(const Added& e) { total += e.by; }
    Decision<Event> decide(const Add& c) const { return Added{c.by, c.note}; }
};

struct Snapshots : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<HookedStore> hooked = std::make_shared<HookedStore>(open("memory:"));
    std::shared_ptr<testing::CountingStore> store = std::make_shared<testing::CountingStore>(hooked);
    testing::RecordedLog log;
    std::size_t slots_read = 0;

    void SetUp() override {
        hooked->after_query = [&](const store::Page& page) { slots_read += page.records.size(); };
    }
    /// A process that knows nothing yet.
    std::unique_ptr<Application> process(Strategy strategy = Strategy::automatic) {
        return std::make_unique<Application>(
            store, options({.transactions = {.strategy = strategy}, .runtime = {.log = log}}));
    }
    template <class A = Sum>
    void add(int times, const std::string& note = "n") {
        const auto writer = process();
        for (int i = 0; i < times; ++i) {
            ASSERT_TRUE(writer->execute<A>("a", Add{1, note}));
            later.drain();
        }
    }
    template <class A = Sum>
    Version stored_version() {
        return process()->check_snapshot<A>("a").version;
    }
    template <class A>
    void overwrite(std::int64_t version, const std::string& state) {
        const store::Write write{{"snapshots", std::string{A::name} + "-a", aggregate_type<A>().snapshots->schema},
                                 store::Put{{{"version", version}, {"state", state}}}};
        ASSERT_TRUE(std::holds_alternative<store::Applied>(hooked->write({&write, 1}).front()));
    }
};

TEST_F(Snapshots, let_a_stream_of_any_length_load_with_two_reads_and_the_slots_since) {
    add(1000 + 7);
    for (const char* why : {"a load", "a command"}) {
        const auto fresh = process();
        ASSERT_FALSE(fresh->load<Sum>("other").version);  // ensures the table
        slots_read = 0;
        store->reset();
        if (why == std::string{"a load"}) {
            EXPECT_EQ(fresh->load<Sum>("a").state.total, 1007);
        } else {
            ASSERT_TRUE(fresh->execute<Sum>("a", Add{1, "n"}));
        }
        EXPECT_EQ(store->counts().reads, 1u) << why;
        if (why == std::string{"a load"}) {
            EXPECT_EQ(store->counts().queries, 1u);
            EXPECT_EQ(slots_read, 8u) << "the snapshot's own slot, and those since";
        } else {
            EXPECT_EQ(store->counts().queries, 0u) << "what a command reads goes out together";
            EXPECT_EQ(store->counts().joint_queries, 1u);
            EXPECT_EQ(slots_read, 11u) << "as many as there may be since a snapshot, which is not known yet";
        }
    }
}

TEST_F(Snapshots, are_taken_off_the_way_of_the_command) {
    add(9);
    const auto writer = process();
    store->reset();
    ASSERT_TRUE(writer->execute<Sum>("a", Add{1, "n"}));
    EXPECT_EQ(store->counts().writes, 1u);
    later.drain();
    EXPECT_EQ(store->counts().writes, 2u);
    EXPECT_EQ(stored_version(), 10);
}

TEST_F(Snapshots, are_taken_by_the_number_of_slots_or_the_bytes_or_the_time_of_a_load) {
    add(25);
    EXPECT_EQ(stored_version(), 20);
    add<SumByBytes>(9, std::string(100, 'x'));
    EXPECT_EQ(stored_version<SumByBytes>(), 9)
        << "the ninth event is the one with which there are more than 1000 bytes";
    add<SumByTime>(30);
    EXPECT_EQ(stored_version<SumByTime>(), 0);
    hooked->after_query = [&](const store::Page&) { clock.advance(std::chrono::milliseconds{60}); };
    EXPECT_EQ(process()->load<SumByTime>("a").state.total, 30);
    later.drain();
    EXPECT_EQ(stored_version<SumByTime>(), 30);
}

TEST_F(Snapshots, of_another_shape_or_meaning_are_not_used) {
    add(20);
    EXPECT_EQ(process()->load<SumWithAnotherField>("a").state.count, 20);
    EXPECT_EQ(process()->load<SumOfAnotherMeaning>("a").state.total, 40);
    later.drain();
    EXPECT_EQ(stored_version<SumWithAnotherField>(), 20);
    EXPECT_EQ(stored_version<SumOfAnotherMeaning>(), 20);
    EXPECT_EQ(stored_version<Sum>(), 20) << "programs of two ages do not take each other's away";
    EXPECT_EQ(process()->load<Sum>("a").state.total, 20);
}

TEST_F(Snapshots, that_cannot_be_read_are_passed_over) {
    add(20);
    for (const char* state : {"nonsense", R"({"total":"many","by_note":{}})", R"({"total":1})"}) {
        overwrite<Sum>(20, state);
        EXPECT_EQ(process()->load<Sum>("a").state.total, 20) << state;
        EXPECT_NE(log.text().find("sum-a"), std::string::npos);
        log.text().clear();
        later.drain();
    }
}

TEST_F(Snapshots, of_a_version_that_the_stream_does_not_have_are_passed_over) {
    add(5);
    overwrite<Sum>(900, R"({"total":900,"by_note":{}})");
    const Loaded<Sum> loaded = process()->load<Sum>("a");
    EXPECT_EQ(loaded.version, 5);
    EXPECT_EQ(loaded.state.total, 5);
    EXPECT_NE(log.text().find("900"), std::string::npos);
    const auto writer = process();
    ASSERT_TRUE(writer->execute<Sum>("a", Add{1, "n"}));
    EXPECT_EQ(writer->history<Sum>("a").head, 6) << "no hole";
}

TEST_F(Snapshots, are_never_replaced_by_older_ones) {
    add(20);
    const std::string& schema = aggregate_type<Sum>().snapshots->schema;
    const store::Write late = events::write_snapshot("sum-a", schema, {.version = 10, .state = "{}"});
    EXPECT_TRUE(std::holds_alternative<store::Refused>(hooked->write({&late, 1}).front()));
    EXPECT_EQ(stored_version(), 20);
}

TEST_F(Snapshots, are_checked_against_the_events) {
    add(10, "x");
    add(10, "y");
    EXPECT_EQ(process()->check_snapshot<Sum>("nobody").version, 0);
    const SnapshotCheck good = process()->check_snapshot<Sum>("a");
    EXPECT_EQ(good.version, 20);
    EXPECT_TRUE(good.holds()) << good.stored << " " << good.folded;
    overwrite<Sum>(20, R"({"by_note":{"y":10,"x":10},"total":20})");
    EXPECT_TRUE(process()->check_snapshot<Sum>("a").holds()) << "the order of members tells nothing";
    overwrite<Sum>(20, R"({"total":21,"by_note":{"x":10,"y":10}})");
    const SnapshotCheck bad = process()->check_snapshot<Sum>("a");
    EXPECT_FALSE(bad.holds());
    EXPECT_NE(bad.stored, bad.folded);
}

TEST_F(Snapshots, are_not_taken_of_what_is_not_finalised) {
    const auto writer = process(Strategy::protocol);
    for (int i = 0; i < 9; ++i) {
        ASSERT_TRUE(writer->execute<Sum>("a", Add{1, "n"}));
    }
    const auto move = [&](Transaction& tx) {
        tx.execute<Sum>("0", Add{1, "n"});  // the primary
        tx.execute<Sum>("a", Add{1, "n"});
    };
    ASSERT_TRUE(writer->transact(move));
    later.forget();
    EXPECT_EQ(stored_version(), 0);
    ASSERT_TRUE(writer->execute<Sum>("a", Add{1, "n"}));
    later.drain();
    EXPECT_EQ(stored_version(), 11);
}

TEST_F(Snapshots, that_do_not_fit_an_item_are_left_out_and_the_stream_goes_on) {
    const auto small = open("memory:?item_bytes_max=4096");
    Application bank{small, options({.runtime = {.log = log}})};
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(bank.execute<Sum>("a", Add{1, std::string(1000, static_cast<char>('a' + i))}));
    }
    EXPECT_THROW(later.drain(), InvalidError) << "the executor's own threads would log it";
    EXPECT_EQ(bank.check_snapshot<Sum>("a").version, 0);
    ASSERT_TRUE(bank.execute<Sum>("a", Add{1, "n"}));
}

TEST(SnapshotSchemas, tell_apart_what_does_not_read_each_others_text) {
    const std::set<std::string> schemas{aggregate_type<Sum>().snapshots->schema,
                                        aggregate_type<SumWithAnotherField>().snapshots->schema,
                                        aggregate_type<SumOfAnotherMeaning>().snapshots->schema,
                                        aggregate_type<SumByBytes>().snapshots->schema,
                                        aggregate_type<Waited<std::chrono::seconds>>().snapshots->schema,
                                        aggregate_type<Waited<std::chrono::milliseconds>>().snapshots->schema};
    EXPECT_EQ(schemas.size(), 6u);
    EXPECT_EQ(aggregate_type<SumByBytes>().snapshots->schema, aggregate_type<SumByTime>().snapshots->schema)
        << "the shape counts, not the type's name";
}

}  // namespace
}  // namespace varve
