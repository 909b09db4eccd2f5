#include "operations/shop.h"

#include <varve/operations/copy.h>

#include <atomic>
#include <tuple>

namespace varve::operations {
namespace {

constexpr const char* stores[] = {"memory", "sqlite", "one_by_one", "log", "atomic_log"};

struct Copies : ::testing::TestWithParam<std::tuple<const char*, const char*>> {
    AStore source{std::get<0>(GetParam())};
    AStore target{std::get<1>(GetParam())};
};

TEST_P(Copies, all_goes_on_in_the_new_store_where_it_was) {
    Shop shop;
    shop.fill(source.store);
    const std::string file = exported_when_quiet(*source.store);
    const Copied copied = copy_store(*source.store, *target.store);
    EXPECT_TRUE(copied.moved.is_complete);
    EXPECT_TRUE(copied.differences.empty());
    EXPECT_EQ(sections(exported(*target.store)), sections(file));
    EXPECT_THROW(copy_store(*source.store, *target.store), ConfigError) << "it is complete";
    shop.goes_on(target.store);
}

TEST_P(Copies, nothing_is_lost_of_what_four_write_until_the_switch) {
    std::atomic<bool> ends = false;
    std::atomic<int> written = 0;
    Handed search;
    Copied copied;
    {
        auto app = std::make_unique<Application>(source.store, options());
        app->project<Till, KeepCustomers>();
        app->subscribe("search", std::ref(search));
        std::vector<std::jthread> writers;
        for (int writer = 0; writer < 4; ++writer) {
            writers.emplace_back([&, writer] {
                for (int i = 0; i < 20 || (!ends && i < 2000); ++i) {
                    const std::string name = std::to_string(writer) + "-" + std::to_string(i);
                    app->transact(
                           [&](Transaction& tx) {
                               tx.execute<Till>(std::to_string(i % 5), Pay{"ada", 1});
                               tx.execute<Till>("own" + std::to_string(writer), Pay{"bea" + std::to_string(writer), 1});
                           },
                           {.command_id = name})
                        .value();
                    ++written;
                    std::this_thread::sleep_for(100us);
                }
            });
        }
        int looked = 0;
        std::string quiet;
        copied = copy_store(*source.store, *target.store,
                            {.finish =
                                 [&] {
                                     if (++looked < 5) return false;
                                     ends = true;
                                     writers.clear();
                                     if (app) app->unfollow("search");
                                     app.reset();
                                     if (quiet.empty()) quiet = exported_when_quiet(*source.store);
                                     return true;
                                 },
                             .poll_interval = 20ms});
        EXPECT_EQ(sections(exported(*target.store)), sections(quiet));
    }
    EXPECT_TRUE(copied.moved.is_complete);
    EXPECT_EQ(copied.moved.slots, 2u * written);
    Application app{target.store, options()};
    Handed more;
    app.subscribe("search", std::ref(more));
    EXPECT_TRUE(app.wait_for("search", Receipt{}, patience));
    Texts both = search.all();
    for (std::string& id : more.all()) both.push_back(std::move(id));
    EXPECT_EQ(both.size(), 2u * written);
    std::ranges::sort(both);
    EXPECT_EQ(std::ranges::adjacent_find(both), both.end());
    EXPECT_EQ(app.rows<Customer>().get("ada")->cents, written);
}

INSTANTIATE_TEST_SUITE_P(, Copies, ::testing::Combine(::testing::ValuesIn(stores), ::testing::ValuesIn(stores)),
                         [](const auto& info) {
                             return std::string{std::get<0>(info.param)} + "_to_" + std::get<1>(info.param);
                         });

struct CopyOf : ::testing::Test {
    AStore source{"memory"};
    void write(const std::string& id) {
        Application app{source.store, options()};
        app.project<Till, KeepCustomers>();
        app.execute<Till>(id, Pay{id, 1}, {.command_id = "pays-" + id}).value();
    }
    void erase(const std::string& id) {
        Application app{source.store, options()};
        app.transact([&](Transaction& tx) { tx.rows<Customer>().erase(id); }).value();
    }
};

bool has_begun_with_the_rest(store::ItemStore& target) {
    const store::Key mark{"varve", "import"};
    if (!target.has_table({.name = "varve", .partition_attribute = "name"})) return false;
    const std::optional<store::Item> item = target.read({&mark, 1}).front();
    return item && item->contains("rest");
}

TEST_F(CopyOf, of_two_runs_the_one_that_began_earlier_writes_no_more) {
    for (const char* kind : {"memory", "log"}) {
        SCOPED_TRACE(kind);
        source = AStore{"memory"};
        for (const char* id : {"a", "b"}) write(id);
        AStore target{kind};
        bool is_complete = false;
        const auto overtake = [&] {
            is_complete = copy_store(*source.store, *target.store).moved.is_complete;
            Application{target.store, options()}.execute<Till>("new", Pay{"ada", 1}).value();
            return true;
        };
        EXPECT_THROW(copy_store(*source.store, *target.store, {.finish = overtake}), ConflictError);
        EXPECT_TRUE(is_complete);
        Application app{target.store, options()};
        EXPECT_EQ(app.load<Till>("new").version, 1) << "what was made in the new store is gone";
    }
}

TEST_F(CopyOf, whoever_is_killed_at_whatever_request_goes_on_though_all_has_changed_meanwhile) {
    struct Kind {
        const char* name;
        testing::Disguise disguise;
    };
    const Kind kinds[] = {{"ordered", {.atomic_writes_max = 4}},
                          {"one by one", {.atomic_writes_max = 0}},
                          {"log", {.atomic_writes_max = 0, .no_changes = true}}};
    for (const Kind& kind : kinds) {
        for (std::uint64_t dies_at = 1;; ++dies_at) {
            SCOPED_TRACE(std::string{kind.name} + ", dies at request " + std::to_string(dies_at));
            source = AStore{"memory"};
            for (const char* id : {"a", "b", "c"}) write(id);
            World world;
            const std::shared_ptr<store::ItemStore> memory = open("memory:");
            const auto dying = world.hidden(memory, kind.disguise);
            dying->on_request([&](const testing::RequestInfo& request) {
                return request.number == dies_at && request.moment == testing::RequestInfo::Moment::after
                           ? testing::Next::stop
                           : testing::Next::proceed;
            });
            bool is_complete = false;
            try {
                is_complete = copy_store(*source.store, *dying, {.runtime = {.clock = world.clock}}).moved.is_complete;
            } catch (const testing::ProcessStopped&) {
            }
            if (is_complete) break;
            const auto heir = world.hidden(memory, kind.disguise);
            bool was_complete = false;
            try {
                static_cast<void>(Application{heir, options()});
                was_complete = true;  // it died after that
            } catch (const ConfigError&) {
            }
            if (was_complete) continue;
            erase("b");
            write("a2");
            write("d");
            const CopyOptions once_more{.runtime = {.clock = world.clock}};
            if (has_begun_with_the_rest(*memory) && heir->capabilities().ordered_changes) {
                // What was written since would get places behind what is no slot.
                ASSERT_THROW(copy_store(*source.store, *heir, once_more), ConflictError);
                continue;
            }
            ASSERT_TRUE(copy_store(*source.store, *heir, once_more).moved.is_complete);
            ASSERT_EQ(sections(exported(*heir)), sections(exported(*source.store)));
        }
    }
}

TEST_F(CopyOf, whoever_writes_after_the_end_is_found_and_nothing_is_opened) {
    write("a");
    AStore target{"sqlite"};  // a batch of more partitions than ThreadSanitizer can follow locks
    for (int i = 0; i < 1100; ++i) write("b" + std::to_string(i));
    bool has_written = false;
    const auto write_late = [&](const Progress& progress) {
        if (progress.items > 1000 && !std::exchange(has_written, true)) write("late");
    };
    EXPECT_THROW(copy_store(*source.store, *target.store, {.progress = write_late}), ConflictError);
    EXPECT_TRUE(has_written);
    EXPECT_THROW((Application{target.store, options()}), ConfigError);
    EXPECT_THROW(copy_store(*source.store, *target.store), ConflictError) << "followers would be at other places";
    AStore another{"sqlite"};
    EXPECT_TRUE(copy_store(*source.store, *another.store).moved.is_complete);
    EXPECT_EQ(sections(exported(*another.store)), sections(exported(*source.store)));
}

TEST_F(CopyOf, what_differs_is_named_and_nothing_is_opened) {
    write("a");
    write("b");
    AStore target{"memory"};
    int looked = 0;
    const auto spoil = [&] {
        if (++looked == 1) return false;
        const store::Write damage{{"events", "till-b", std::int64_t{1}},
                                  store::Update{{{"time", std::int64_t{7}}}, {}}};
        EXPECT_TRUE(std::holds_alternative<store::Applied>(target.store->write({&damage, 1}).front()));
        return true;
    };
    const Copied copied = copy_store(*source.store, *target.store, {.finish = spoil, .poll_interval = 1ms});
    EXPECT_FALSE(copied.moved.is_complete);
    ASSERT_FALSE(copied.differences.empty());
    EXPECT_EQ(copied.differences.front().item, "events/till-b/1");
    EXPECT_NE(copied.differences.front().to.find("\"time\":7"), std::string::npos);
    EXPECT_THROW((Application{target.store, options()}), ConfigError);
}

TEST_F(CopyOf, another_store_is_not_taken_for_the_one_it_began_with) {
    write("a");
    AStore target{"memory"};
    std::stop_source stop;
    const auto stop_now = [&] {
        stop.request_stop();
        return false;
    };
    EXPECT_FALSE(
        copy_store(*source.store, *target.store, {.finish = stop_now, .stop = stop.get_token()}).moved.is_complete);
    const AStore first = std::exchange(source, AStore{"memory"});
    write("a");
    EXPECT_THROW(copy_store(*source.store, *target.store), ConfigError);
    EXPECT_TRUE(copy_store(*first.store, *target.store).moved.is_complete);
}

}  // namespace
}  // namespace varve::operations
