#include "operations/checksum.h"
#include "operations/shop.h"

#include <varve/testing/manual_world.h>

#include <tuple>

namespace varve::operations {
namespace {

constexpr const char* kinds[] = {"memory", "sqlite", "one_by_one", "log", "atomic_log"};

struct Archive : ::testing::TestWithParam<std::tuple<const char*, const char*>> {
    AStore source{std::get<0>(GetParam())};
    AStore target{std::get<1>(GetParam())};
};

TEST_P(Archive, all_goes_on_in_the_new_store_where_it_was) {
    Shop shop;
    shop.fill(source.store);
    const std::string file = exported_when_quiet(*source.store);
    const Moved moved = import_text(file, *target.store);
    EXPECT_TRUE(moved.is_complete);
    EXPECT_EQ(moved.bytes, file.size());
    EXPECT_EQ(sections(exported(*target.store)), sections(file));
    EXPECT_EQ(events_of(target.store).size(), events_of(source.store).size());
    shop.goes_on(target.store);
}

INSTANTIATE_TEST_SUITE_P(, Archive, ::testing::Combine(::testing::ValuesIn(kinds), ::testing::ValuesIn(kinds)),
                         [](const auto& info) {
                             return std::string{std::get<0>(info.param)} + "_to_" + std::get<1>(info.param);
                         });

/// A small store's file, and stores that it is brought into.
struct ImportOf : ::testing::Test {
    AStore source{"memory"};
    std::string file = [&] {
        Application app{source.store, options()};
        app.project<Till, KeepCustomers>();
        for (int i = 0; i < 6; ++i)
            app.execute<Till>(i % 2 == 0 ? "a" : "b", Pay{"ada", 1}, {.command_id = std::to_string(i)}).value();
        app.subscribe("search", [](std::span<const RecordedEvent>) {});
        EXPECT_TRUE(app.wait_for("search", Receipt{}, patience));
        app.unfollow("search");
        return exported_when_quiet(*source.store);
    }();
    Texts lines() const {
        Texts lines;
        std::istringstream text{file};
        for (std::string line; std::getline(text, line);) lines.push_back(line + "\n");
        return lines;
    }
    /// Is refused, with a message that names the line; what was applied goes on with the right file.
    void expect_refused(const Texts& damaged, std::size_t line, const std::string& what) {
        SCOPED_TRACE(what);
        AStore target{"memory"};
        std::string text;
        for (const std::string& one : damaged) text += one;
        try {
            import_text(text, *target.store);
            FAIL() << "it was accepted";
        } catch (const CorruptionError& error) {
            EXPECT_NE(std::string{error.what()}.find("line " + std::to_string(line) + " "), std::string::npos)
                << error.what();
        }
        if (line == 1) return;
        EXPECT_THROW((Application{target.store, options()}), ConfigError);
        import_text(file, *target.store);
        EXPECT_EQ(sections(exported(*target.store)), sections(file));
    }
};

TEST_F(ImportOf, a_damaged_line_is_named_and_nothing_behind_it_is_applied) {
    const Texts right = lines();
    ASSERT_GT(right.size(), 20u);
    for (std::size_t i = 0; i < right.size(); ++i) {
        Texts damaged = right;
        damaged[i][damaged[i].size() / 2] ^= 1;
        expect_refused(damaged, i + 1, "a bit of line " + std::to_string(i + 1));

        damaged = right;
        damaged.insert(damaged.begin() + static_cast<std::ptrdiff_t>(i), right[i]);
        expect_refused(damaged, std::min(i + 2, right.size()), "a line twice");

        damaged = right;
        damaged.erase(damaged.begin() + static_cast<std::ptrdiff_t>(i));
        expect_refused(damaged, i + 1, "a line left out");

        damaged = right;
        damaged.resize(i + 1);
        damaged.back().resize(damaged.back().size() / 2);
        expect_refused(damaged, i + 1, "the rest of a line, and all behind it");

        if (i + 1 == right.size()) continue;
        damaged = right;
        damaged.resize(i + 1);
        expect_refused(damaged, i + 2, "all behind a line");

        damaged = right;
        std::swap(damaged[i], damaged[i + 1]);
        expect_refused(damaged, i + 1, "two lines in another order");
    }
    Texts longer = right;
    longer.push_back(right.back());
    expect_refused(longer, right.size(), "more behind the end");
    expect_refused({}, 1, "an empty file");
    expect_refused({"{}\n"}, 1, "no export");
}

TEST_F(ImportOf, a_sum_is_the_xxh3_of_all_before_it) {
    const std::size_t at = file.rfind(",\"sum\":\"");
    Checksum sum;
    EXPECT_EQ(sum.hex(), "99aa06d3014798d86001c324468d497f") << "of nothing";
    sum.add(std::string_view{file}.substr(0, 100));
    static_cast<void>(sum.hex());
    sum.add(std::string_view{file}.substr(100, at - 100));
    EXPECT_EQ(file.substr(at + 8, Checksum::digits), sum.hex());
}

TEST_F(ImportOf, a_store_in_which_something_is_takes_none) {
    AStore target{"memory"};
    { Application app{target.store, options()}; }
    EXPECT_THROW(import_text(file, *target.store), ConfigError);
    Application{target.store, options()}.execute<Till>("a", Pay{"ada", 1}).value();
    try {
        import_text(file, *target.store);
        FAIL() << "it was accepted";
    } catch (const ConfigError& error) {
        EXPECT_NE(std::string{error.what()}.find("events/till-a/1 is in it"), std::string::npos) << error.what();
    }
}

TEST_F(ImportOf, the_same_file_once_more_changes_nothing_and_another_one_is_refused) {
    AStore target{"memory"};
    import_text(file, *target.store);
    EXPECT_TRUE(import_text(file, *target.store).is_complete);
    Application{target.store, options()}.execute<Till>("a", Pay{"ada", 1}).value();
    EXPECT_TRUE(import_text(file, *target.store).is_complete);
    EXPECT_EQ(events_of(target.store).size(), 7u);
    EXPECT_THROW(import_text(exported_when_quiet(*source.store), *target.store), ConfigError);
}

TEST_F(ImportOf, one_that_was_stopped_goes_on_and_no_other_file_may) {
    AStore target{"memory"};
    const Texts all = lines();
    std::string half;
    for (std::size_t i = 0; i < all.size() / 2; ++i) half += all[i];
    EXPECT_THROW(import_text(half, *target.store), CorruptionError);
    EXPECT_THROW((Application{target.store, options()}), ConfigError);
    EXPECT_THROW(import_text(exported_when_quiet(*source.store), *target.store), ConfigError);
    EXPECT_THROW(exported(*target.store), ConfigError);
    EXPECT_TRUE(import_text(file, *target.store).is_complete);
    EXPECT_EQ(sections(exported(*target.store)), sections(file));
}

/// Stops at each request in turn, before or after it takes effect, and goes on.
TEST_F(ImportOf, whoever_is_killed_at_whatever_request_goes_on) {
    struct Kind {
        const char* name;
        testing::Disguise disguise;
    };
    const Kind kinds[] = {{"ordered", {.atomic_writes_max = 4}},
                          {"one by one", {.atomic_writes_max = 0}},
                          {"log", {.atomic_writes_max = 0, .no_changes = true}}};
    for (const Kind& kind : kinds) {
        for (const auto moment : {testing::RequestInfo::Moment::before, testing::RequestInfo::Moment::after}) {
            for (std::uint64_t dies_at = 1;; ++dies_at) {
                SCOPED_TRACE(std::string{kind.name} + ", dies at request " + std::to_string(dies_at));
                World world;
                const std::shared_ptr<store::ItemStore> memory = open("memory:");
                const auto dying = world.hidden(memory, kind.disguise);
                dying->on_request([&](const testing::RequestInfo& request) {
                    return request.number == dies_at && request.moment == moment ? testing::Next::stop
                                                                                 : testing::Next::proceed;
                });
                bool has_died = false;
                try {
                    import_text(file, *dying, {.runtime = {.clock = world.clock}});
                } catch (const testing::ProcessStopped&) {
                    has_died = true;
                }
                const auto heir = world.hidden(memory, kind.disguise);
                EXPECT_TRUE(import_text(file, *heir, {.runtime = {.clock = world.clock}}).is_complete);
                ASSERT_EQ(sections(exported(*heir)), sections(file));
                if (!has_died) break;
            }
        }
    }
}

TEST_F(ImportOf, lost_answers_change_nothing) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
        testing::SeededRandom random{seed};
        testing::Network network{{clock, random},
                                 {.request_lost = 0.05,
                                  .answer_lost = 0.1,
                                  .request_late = 0.05,
                                  .delivered_again = 0.1,
                                  .error_with_effect = 0.05,
                                  .answered_again = 0.1,
                                  .throttled = 0.02,
                                  .read_failed = 0.05,
                                  .small_page = 0.2}};
        const testing::Disguise disguise = seed % 3 == 0 ? testing::Disguise{.atomic_writes_max = 4}
                                           : seed % 3 == 1
                                               ? testing::Disguise{.atomic_writes_max = 0}
                                               : testing::Disguise{.atomic_writes_max = 0, .no_changes = true};
        const std::shared_ptr<store::ItemStore> memory = open("memory:");
        const auto faulty = std::make_shared<testing::FaultyStore>(memory, network, disguise);
        for (;;) {
            try {
                import_text(file, *faulty, {.runtime = {.clock = clock}});
                break;
            } catch (const Error& error) {
                ASSERT_TRUE(error.retryable()) << error.what();
            }
        }
        network.deliver_everything();
        network.set_rates({});
        ASSERT_EQ(sections(exported(*faulty)), sections(file));
    }
}

TEST_F(ImportOf, one_that_is_asked_to_stop_says_so) {
    AStore target{"memory"};
    std::stop_source stop;
    stop.request_stop();
    Application app{source.store, options()};
    for (int i = 0; i < 1500; ++i) app.append<Till>("many", {Paid{"ada", 1}}).value();
    std::ostringstream cut;
    EXPECT_FALSE(export_store(*source.store, cut, {.events_only = true, .stop = stop.get_token()}).is_complete);
    EXPECT_THROW(import_text(cut.str(), *AStore{"memory"}.store), CorruptionError);
    const std::string all = exported(*source.store, {.events_only = true});
    EXPECT_FALSE(import_text(all, *target.store, {.stop = stop.get_token()}).is_complete);
    std::uint64_t items = 0;
    EXPECT_TRUE(import_text(all, *target.store, {.progress = [&](const Progress& p) { items = p.items; }}).is_complete);
    EXPECT_EQ(items, 1507u);
    EXPECT_EQ(events_of(target.store).size(), 1506u);
}

TEST(Export, of_events_only_takes_them_from_a_store_that_is_written_to) {
    for (const char* kind : {"memory", "log"}) {
        AStore source{kind};
        Application app{source.store, options()};
        std::jthread writer{[&](const std::stop_token& stop) {
            for (int i = 0; !stop.stop_requested(); ++i, std::this_thread::sleep_for(500us))
                app.execute<Till>(std::to_string(i % 7), Pay{"ada", i}, {.command_id = std::to_string(i)}).value();
        }};
        std::size_t before = 0;
        for (int i = 0; i < 10; ++i) {
            const std::string file = exported(*source.store, {.events_only = true});
            AStore target{i % 2 == 0 ? "log" : "memory"};
            import_text(file, *target.store);
            const std::vector<RecordedEvent> events = events_of(target.store);
            EXPECT_GE(events.size(), before);
            before = events.size();
            std::map<std::string, Version> last;
            for (const RecordedEvent& event : events) EXPECT_EQ(event.version, ++last[event.stream]);
        }
    }
}

TEST(Export, of_all_finds_whoever_writes_meanwhile) {
    for (const char* kind : {"memory", "log"}) {
        AStore source{kind};
        Application app{source.store, options()};
        app.project<Till, KeepCustomers>();
        for (int i = 0; i < 2500; ++i) app.execute<Till>(std::to_string(i), Pay{"ada", i}).value();
        static_cast<void>(exported_when_quiet(*source.store));
        std::ostringstream file;
        bool has_written = false;
        EXPECT_THROW(export_store(*source.store, file,
                                  {.progress =
                                       [&](const Progress&) {
                                           if (!std::exchange(has_written, true))
                                               app.execute<Till>("late", Pay{"ada", 1}).value();
                                       }}),
                     ConflictError)
            << kind;
        EXPECT_TRUE(has_written);
        EXPECT_THROW(import_text(file.str(), *AStore{"sqlite"}.store), CorruptionError);
    }
}

TEST(Export, of_a_store_with_an_unfinished_transaction_is_refused) {
    AStore source{"memory"};
    {
        testing::ManualWorld world;
        ApplicationOptions by_protocol = world.options();
        by_protocol.transactions.strategy = transactions::Strategy::protocol;
        Application app{source.store, by_protocol};
        app.transact([](Transaction& tx) {
               tx.execute<Till>("a", Pay{"ada", 1});
               tx.execute<Till>("b", Pay{"ada", 1});
           })
            .value();
        std::ostringstream file;
        EXPECT_THROW(export_store(*source.store, file), ConflictError) << "nobody has put b in place";
    }
    EXPECT_NO_THROW(exported_when_quiet(*source.store));
}

TEST(Export, of_what_is_no_store_of_varves_is_refused) {
    std::ostringstream file;
    EXPECT_THROW(export_store(*open("memory:"), file), ConfigError);
}

TEST(Export, tells_who_takes_no_more) {
    AStore source{"memory"};
    { Application app{source.store, options()}; }
    std::ostringstream full;
    full.setstate(std::ios::badbit);
    EXPECT_THROW(export_store(*source.store, full), UnavailableError);
}

}  // namespace
}  // namespace varve::operations
