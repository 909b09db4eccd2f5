#include "commands/checkpoint.h"
#include "projections/following.h"
#include "support/dying_store.h"
#include "support/unordered_store.h"

#include <varve/commands/stream_list.h>
#include <varve/events/event_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_world.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

/// All names of a list, page by page.
template <class Page>
Lines each(Page page, std::size_t limit) {
    Lines names;
    PageOptions options{.limit = limit};
    do {
        StreamListPage found = page(options);
        EXPECT_LE(found.streams.size(), limit);
        for (ListedStream& one : found.streams) names.push_back(std::move(one.name));
        options.next = std::move(found.next);
    } while (!options.next.empty());
    return names;
}

Lines streams(Application& bank, const std::string& prefix = "", std::size_t limit = 100) {
    return each([&](const PageOptions& page) { return bank.streams(prefix, page); }, limit);
}

Lines accounts(Application& bank, std::size_t limit = 100) {
    return each([&](const PageOptions& page) { return bank.aggregates<Account>(page); }, limit);
}

void append(Application& bank, const std::string& stream) {
    ASSERT_TRUE(bank.events().append(stream, {{"Happened", 1, "{}"}}, Expected::any())) << stream;
}

void transfer(Application& bank, const std::string& from, const std::string& to) {
    bank.transact([&](Transaction& tx) {
            tx.execute<Account>(from, Deposit{1});
            tx.execute<Account>(to, Deposit{1});
        })
        .value();
}

std::int64_t noted(Application& bank) {
    return bank.rows<detail::Checkpoint>().get("$streams").value_or(detail::Checkpoint{}).events;
}

std::string number(int i) {
    return std::to_string(1000 + i);
}

/// A read model under a name that is taken.
struct Streams {
    static constexpr std::string_view table = "streams";
    static constexpr bool sorted = true;
};

struct StreamList : Following {
    testing::ManualWorld world;
};

TEST_F(StreamList, has_all_aggregates_of_a_type_in_the_order_of_their_ids_and_when_they_began) {
    Application bank{store, world.options()};
    const Time began = world.clock.now();
    for (const char* id : {"carol", "alice", "bob"}) {
        deposit(bank, id, 1);
        world.clock.advance(1h);
        deposit(bank, id, 1);
    }
    append(bank, "order-1");
    const StreamListPage page = bank.aggregates<Account>();
    ASSERT_EQ(page.streams.size(), 3u);
    EXPECT_EQ(page.next, "");
    EXPECT_EQ(page.streams[0].name, "account-alice");
    EXPECT_EQ(page.streams[0].id(), "alice");
    EXPECT_EQ(page.streams[0].since, began + 1h);
    EXPECT_EQ(page.streams[1].id(), "bob");
    EXPECT_EQ(page.streams[2].id(), "carol");
    EXPECT_EQ(page.streams[2].since, began);
}

TEST_F(StreamList, has_those_that_begin_with_a_text_in_the_order_of_names) {
    Application bank{store, world.options()};
    const Lines all{"account-a",  "account-a-b", "account-ab", "account-b", "account-ä",
                    "account2-a", "accounts-a",  "order-1",    "weird",     "weird\U0010FFFF"};
    bank.execute<Account>("b", Deposit{1}, {.command_id = "once"}).value();  // has a stream of the framework's own
    for (auto name = all.rbegin(); name != all.rend(); ++name) append(bank, *name);
    for (const std::size_t limit : {1u, 2u, 3u, 100u}) {
        EXPECT_EQ(streams(bank, "", limit), all) << limit;
        EXPECT_EQ(streams(bank, "account-a", limit), (Lines{"account-a", "account-a-b", "account-ab"})) << limit;
        EXPECT_EQ(streams(bank, "account-ä", limit), (Lines{"account-ä"})) << limit;
        EXPECT_EQ(streams(bank, "account", limit), Lines(all.begin(), all.begin() + 7)) << limit;
        EXPECT_EQ(streams(bank, "w", limit), Lines(all.end() - 2, all.end())) << limit;
        EXPECT_EQ(streams(bank, "weird\U0010FFFF", limit), Lines(all.end() - 1, all.end())) << limit;
        EXPECT_EQ(streams(bank, "$", limit), Lines{}) << limit;
        EXPECT_EQ(streams(bank, "account-c", limit), Lines{}) << limit;
        EXPECT_EQ(accounts(bank, limit), Lines(all.begin(), all.begin() + 5)) << limit;
    }
}

TEST_F(StreamList, has_also_streams_without_an_aggregate) {
    Application bank{store, world.options()};
    append(bank, "-x");
    append(bank, "-");
    append(bank, std::string(1024, 'x'));
    EXPECT_EQ(streams(bank, "", 1), (Lines{"-", "-x", std::string(1024, 'x')}));
    EXPECT_EQ(streams(bank, "-"), (Lines{"-", "-x"}));
}

TEST_F(StreamList, refuses_what_is_no_question) {
    Application bank{store, world.options()};
    for (const char* id : {"alice", "bob"}) deposit(bank, id, 1);
    const std::string next = bank.streams("account-", {.limit = 1}).next;
    EXPECT_EQ(bank.aggregates<Account>({.limit = 1, .next = next}).streams.at(0).id(), "bob") << "it is the same list";
    EXPECT_NE(refusal<InvalidError>([&] {
                  (void)bank.streams("account-b", {.next = next});
              }).find("belongs to no page of the streams that begin with 'account-b'"),
              std::string::npos);
    EXPECT_NE(refusal<InvalidError>([&] { (void)bank.streams("", {.next = "no token"}); }).find("of all streams"),
              std::string::npos);
    EXPECT_NE(refusal<InvalidError>([&] { (void)bank.streams("", {.limit = 0}); }).find("limit 0"), std::string::npos);
    EXPECT_NE(refusal<InvalidError>([&] { (void)bank.streams("account-\xC3"); }).find("is not UTF-8"),
              std::string::npos);
    EXPECT_NE(refusal<InvalidError>([&] {
                  bank.transact([&](Transaction&) { (void)bank.streams(""); }).value();
              }).find("streams was called from inside"),
              std::string::npos);
    EXPECT_NE(refusal<InvalidError>([&] {
                  bank.transact([&](Transaction& tx) { tx.rows<Streams>().put({"a", "b"}, {}); }).value();
              }).find("'streams' is the framework's own"),
              std::string::npos);
    EXPECT_NE(refusal<ConfigError>([&] { bank.subscribe("$streams", [](auto) {}); }).find("the framework's own"),
              std::string::npos);
}

TEST_F(StreamList, is_complete_and_repeats_nothing_while_others_add_to_it) {
    Application bank{store, options()};
    Application other{store, options()};
    constexpr int before = 60;
    for (int i = 0; i < before; ++i) deposit(bank, "there-" + number(i), 1);
    std::atomic<bool> stop = false;
    std::atomic<int> added = 0;
    std::thread writer{[&] {
        for (int i = 0; !stop; ++i, ++added) deposit(other, (i % 2 == 0 ? "a-" : "z-") + number(i), 1);
    }};
    for (int round = 0; round < 5; ++round) {
        const int from = added;
        while (added == from) std::this_thread::yield();
        const Lines found = accounts(bank, 7);
        EXPECT_EQ(std::set(found.begin(), found.end()).size(), found.size());
        EXPECT_TRUE(std::ranges::is_sorted(found));
        EXPECT_EQ(std::ranges::count_if(found, [](const auto& name) { return name.starts_with("account-there-"); }),
                  before);
        EXPECT_GE(found.size(), static_cast<std::size_t>(before + from));
    }
    stop = true;
    writer.join();
    EXPECT_EQ(accounts(bank).size(), static_cast<std::size_t>(before + added));
    EXPECT_EQ(noted(bank), before + added) << "each of them once";
}

TEST_F(StreamList, is_right_where_several_applications_bring_it_up_to_date_at_once) {
    Application first{store, options()};
    Application second{store, options()};
    constexpr int rounds = 20;
    constexpr int at_once = 30;
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < at_once; ++i) deposit(first, number(round * at_once + i), 1);
        std::vector<std::thread> asking;
        for (Application* const bank : {&first, &second, &first, &second}) {
            asking.emplace_back([&, bank] {
                EXPECT_EQ(accounts(*bank, 1000).size(), static_cast<std::size_t>((round + 1) * at_once));
            });
        }
        for (std::thread& one : asking) one.join();
    }
    EXPECT_EQ(noted(first), rounds * at_once) << "each of them once";
}

TEST_F(StreamList, is_right_whenever_whoever_brings_it_up_to_date_dies) {
    const Lines all{"account-a", "account-b", "account-c", "order-1", "order-2"};
    const auto run = [&](int dies_at, std::uint64_t applies) {
        const std::shared_ptr<store::ItemStore> store = open("memory:");
        Application bank{store, world.options()};
        for (const char* id : {"a", "b"}) deposit(bank, id, 1);
        EXPECT_EQ(streams(bank).size(), 2u);
        for (const char* stream : {"account-c", "order-1", "order-2", "account-b"}) append(bank, stream);
        const auto dying = std::make_shared<DyingStore>(store, dies_at, applies);
        bool lives = false;
        try {
            Application asks{dying, world.options({.transactions = {.answer_time_max = 1s}})};
            lives = streams(asks) == all;
        } catch (const Error&) {
        }
        Application heir{store, world.options()};
        EXPECT_EQ(streams(heir, "", 2), all) << "died at " << dies_at << ", applied " << applies;
        EXPECT_EQ(noted(heir), 5) << "each of them once";
        return !lives && !HasFailure();
    };
    int requests = 1;
    while (run(requests, 0) && run(requests, ~std::uint64_t{0})) ++requests;
    EXPECT_GT(requests, 6) << "it has died at so many requests";
}

TEST_F(StreamList, has_what_was_answered_also_if_it_is_not_in_place_yet) {
    const ApplicationOptions by_protocol =
        world.options({.transactions = {.strategy = transactions::Strategy::protocol}});
    Application bank{store, by_protocol};
    for (int i = 0; i < 5; ++i) {
        transfer(bank, "a" + number(i), "b" + number(i));  // nobody puts the second one into place
        Application other{store, world.options()};
        EXPECT_EQ(accounts(i % 2 == 0 ? bank : other).size(), 2u * static_cast<unsigned>(i + 1));
    }
}

TEST_F(StreamList, does_not_wait_for_ever_for_who_is_about_to_begin_a_stream) {
    ApplicationOptions by_protocol = world.options({.transactions = {.strategy = transactions::Strategy::protocol}});
    bool was_held = false;
    for (int dies_at = 1; !was_held; ++dies_at) {
        store = open("memory:");
        try {
            Application dies{std::make_shared<DyingStore>(store, dies_at, ~std::uint64_t{0}), by_protocol};
            transfer(dies, "alice", "bob");
            FAIL() << "it left nothing undecided";
        } catch (const Error&) {
        }
        Application bank{store, world.options()};
        const SteadyTime asked = world.clock.steady_now();
        const Lines found = accounts(bank);
        EXPECT_TRUE(found.empty() || found.size() == 2u) << found.size();
        was_held = world.clock.steady_now() - asked >= 5s;
        EXPECT_LT(world.clock.steady_now() - asked, 10s);
    }
}

TEST_F(StreamList, costs_two_requests_where_nothing_has_been_written) {
    const auto counting = std::make_shared<testing::CountingStore>(store);
    {
        Application bank{store, world.options()};
        for (int i = 0; i < 400; ++i) deposit(bank, number(i), 1);
    }
    Application bank{counting, world.options()};
    EXPECT_EQ(bank.aggregates<Account>().streams.size(), 100u);
    EXPECT_EQ(bank.aggregates<Account>().streams.size(), 100u) << "takes what the first call has written";
    counting->reset();
    counting->start_recording();
    const std::string next = bank.aggregates<Account>({.limit = 100}).next;
    EXPECT_EQ(counting->counts().change_reads, 1u);
    EXPECT_EQ(counting->counts().queries, 1u);
    EXPECT_EQ(counting->counts().round_trips(), 2u) << ::testing::PrintToString(counting->recorded());
    counting->reset();
    EXPECT_EQ(bank.aggregates<Account>({.limit = 100, .next = next}).streams.size(), 100u);
    EXPECT_EQ(counting->counts().round_trips(), 1u) << "later pages read on";
    deposit(bank, "new", 1);
    counting->reset();
    EXPECT_EQ(streams(bank, "account-new").size(), 1u);
    EXPECT_EQ(counting->counts().atomic_batches, 1u);
    EXPECT_LE(counting->counts().round_trips(), 8u) << ::testing::PrintToString(counting->recorded());
}

TEST_F(StreamList, works_as_well_where_the_store_keeps_no_order_of_changes) {
    store = std::make_shared<UnorderedStore>(store);
    ApplicationOptions patient = options();
    patient.transactions.lease = 60s;  // it waits for two of them
    Application bank{store, patient};
    Application other{store, patient};
    Lines all;
    for (int i = 0; i < 30; ++i) {
        transfer(i % 2 == 0 ? bank : other, "a" + number(i), "b" + number(i));
        all.push_back("account-a" + number(i));
        all.push_back("account-b" + number(i));
        std::ranges::sort(all);
        EXPECT_EQ(accounts(i % 3 == 0 ? bank : other, 11), all);
    }
    EXPECT_EQ(noted(bank), 60);
}

TEST_F(StreamList, says_so_where_nobody_puts_the_events_in_order) {
    store = std::make_shared<UnorderedStore>(store);
    Application bank{store, world.options()};
    deposit(bank, "alice", 1);
    EXPECT_NE(refusal<UnavailableError>([&] { (void)bank.streams(""); }).find("ApplicationOptions::sweep"),
              std::string::npos);
}

TEST_F(StreamList, says_so_where_the_store_has_no_feed) {
    store = std::make_shared<UnorderedStore>(store);
    Application bank{store, world.options({.feed = false})};
    EXPECT_NE(refusal<ConfigError>([&] { (void)bank.streams(""); }).find("ApplicationOptions::feed"),
              std::string::npos);
}

TEST_F(StreamList, says_so_where_the_store_was_put_back) {
    Application bank{store, world.options()};
    deposit(bank, "alice", 1);
    bank.transact([](Transaction& tx) {
            tx.rows<detail::Checkpoint>().put("$streams", {.position = 1000, .last = {}, .error = {}});
        })
        .value();
    EXPECT_NE(refusal<CorruptionError>([&] {
                  (void)bank.streams("");
              }).find("the checkpoint of the list of streams is at 1000"),
              std::string::npos);
}

}  // namespace
}  // namespace varve
