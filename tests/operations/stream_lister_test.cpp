#include "support/account.h"

#include <varve/events/event_store.h>
#include <varve/operations/events.h>
#include <varve/operations/read_only.h>
#include <varve/operations/streams.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/seeded_random.h>

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace varve::operations {

using namespace account;

namespace {

using Names = std::vector<std::string>;

/// A store that some write to, and one who only looks.
struct Lister : ::testing::Test {
    const std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store, {.sweep = false}};
    Application reader{read_only(store), {.sweep = false}};
    StreamLister lister{reader};

    void begin(const std::string& stream) { (void)bank.events().append(stream, {{"Born", 1, "{}"}}, Expected::any()); }
    Names names(const ListedAsked& asked) {
        ListedPage page = lister.page(asked);
        EXPECT_TRUE(page.is_complete);
        Names found;
        for (const ListedStream& one : page.streams) found.push_back(one.name);
        return found;
    }
};

TEST_F(Lister, pages_go_on_after_a_name_whether_the_stored_list_has_it_or_not) {
    for (const char* stream : {"account-b", "account-d", "zebra", "order-1"}) begin(stream);
    EXPECT_EQ(bank.streams("").streams.size(), 4u);  // which makes the stored list
    for (const char* stream : {"account-a", "account-c", "account-b", "aaa", "order-0"}) begin(stream);
    const Names all{"aaa", "account-a", "account-b", "account-c", "account-d", "order-0", "order-1", "zebra"};
    EXPECT_EQ(names({}), all);
    EXPECT_EQ(names({.prefix = "account-"}), (Names{"account-a", "account-b", "account-c", "account-d"}));
    EXPECT_EQ(names({.prefix = "a"}), (Names{"aaa", "account-a", "account-b", "account-c", "account-d"}));
    EXPECT_EQ(names({.prefix = "account-", .after = "account-b"}), (Names{"account-c", "account-d"}));
    EXPECT_EQ(names({.prefix = "order", .after = "account-b"}), (Names{"order-0", "order-1"}));
    EXPECT_EQ(names({.prefix = "account-", .after = "zebra"}), Names{});
    EXPECT_EQ(names({.after = "account-bb", .limit = 2}), (Names{"account-c", "account-d"}));
    EXPECT_TRUE(lister.page({.limit = 7}).has_more);
    EXPECT_FALSE(lister.page({.limit = 8}).has_more);
    EXPECT_THROW((void)lister.page({.limit = 0}), InvalidError);
    EXPECT_EQ(names({.prefix = "nobody"}), Names{});
    begin("nobody-1");
    EXPECT_EQ(names({.prefix = "nobody"}), Names{"nobody-1"}) << "what is new is not seen";
    EXPECT_EQ(bank.streams("").streams.size(), 9u);
    EXPECT_EQ(names({.prefix = "nobody"}), Names{"nobody-1"}) << "in both lists, told twice";
}

TEST_F(Lister, page_by_page_it_lists_what_the_whole_list_has) {
    const std::uint64_t seed = 7;
    testing::SeededRandom random{seed};
    std::set<std::string> expected;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 15; ++i) {
            std::string name;
            for (std::uint64_t length = 1 + random.below(5); length > 0; --length) name += "ab-!"[random.below(4)];
            if (name.front() == '-' || name.front() == '$') name = "a" + name;
            begin(name);
            expected.insert(name);
        }
        if (random.chance(0.3)) (void)bank.streams("");
        const std::string prefix = random.chance(0.5) ? "" : std::string{"ab-!"[random.below(4)]};
        Names wanted;
        for (const std::string& one : expected) {
            if (one.starts_with(prefix)) wanted.push_back(one);
        }
        Names listed;
        ListedAsked asked{.prefix = prefix, .after = {}, .limit = 1 + random.below(6)};
        for (bool has_more = true; has_more;) {
            const ListedPage page = lister.page(asked);
            for (const ListedStream& one : page.streams) listed.push_back(one.name);
            has_more = page.has_more;
            if (has_more) asked.after = listed.back();
        }
        ASSERT_EQ(listed, wanted) << "seed " << seed << ", round " << round << ", prefix '" << prefix << "'";
    }
}

TEST_F(Lister, a_look_that_has_no_time_says_how_far_it_has_come) {
    for (int i = 0; i < 2500; ++i) begin("account-" + std::to_string(i));
    ListedPage page = lister.page({.patience = Duration{0}});
    EXPECT_FALSE(page.is_complete);
    EXPECT_GT(page.position, 0u);
    EXPECT_GE(page.end, 2500u);
    int looks = 1;
    for (; !page.is_complete && looks < 100; ++looks) page = lister.page({.limit = 1000, .patience = Duration{0}});
    EXPECT_TRUE(page.is_complete);
    EXPECT_GT(looks, 2) << "it has read all at once";
    EXPECT_EQ(page.streams.size(), 1000u);
    EXPECT_TRUE(page.has_more);
}

TEST_F(Lister, more_streams_than_the_memory_is_for_are_refused) {
    StreamLister small{reader, 2};
    begin("a");
    begin("b");
    EXPECT_EQ(small.page({}).streams.size(), 2u);
    begin("c");
    EXPECT_THROW((void)small.page({}), ConfigError);
    EXPECT_EQ(bank.streams("").streams.size(), 3u);
    StreamLister anew{reader, 2};
    EXPECT_EQ(anew.page({}).streams.size(), 3u) << "the stored list takes no memory";
}

TEST_F(Lister, events_are_paged_by_position) {
    for (int i = 0; i < 5; ++i) begin("account-" + std::to_string(i));
    EventsPage page = events_after(reader, 0, 3);
    ASSERT_EQ(page.events.size(), 3u);
    EXPECT_FALSE(page.is_last);
    page = events_after(reader, page.end, 3);
    ASSERT_EQ(page.events.size(), 2u);
    EXPECT_EQ(page.events[1].stream, "account-4");
    EXPECT_EQ(page.end, end_of_events(reader));
    EXPECT_TRUE(events_after(reader, page.end, 3).is_last);
    EXPECT_TRUE(events_after(reader, page.end, 3).events.empty());
}

}  // namespace
}  // namespace varve::operations
