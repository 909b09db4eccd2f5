#include "support/account.h"
#include "transactions/slot.h"

#include <varve/store/item_store.h>
#include <varve/testing/manual_world.h>

#include <unordered_map>
#include <unordered_set>

#include <gtest/gtest.h>

// A command id stands for one command for ever.
namespace varve {
namespace {

using namespace account;

struct CommandId : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store, options()};
    const CommandOptions once{.command_id = "once"};

    void expect_reused(const Outcome& outcome) {
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code, "command_id_reused");
        EXPECT_NE(outcome.error().message.find("'once'"), std::string::npos) << outcome.error().message;
    }
    Version written() { return bank.load<Account>("alice").version + bank.load<Account>("bob").version; }
};

TEST_F(CommandId, used_again_for_the_same_command_returns_the_first_receipt) {
    const Outcome first = bank.execute<Account>("alice", Deposit{5}, once);
    Application restarted{store, {.sweep = false}};
    for (Application* one : {&bank, &restarted}) {
        const Outcome again = one->execute<Account>("alice", Deposit{5}, once);
        ASSERT_TRUE(again);
        EXPECT_TRUE(again->repeated);
        EXPECT_EQ(again->written, first->written);
    }
    EXPECT_EQ(written(), 1);
}

TEST_F(CommandId, used_for_other_contents_another_aggregate_or_another_command_is_a_rejection_and_writes_nothing) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}, once));
    expect_reused(bank.execute<Account>("alice", Deposit{6}, once));
    expect_reused(bank.execute<Account>("bob", Deposit{5}, once));
    expect_reused(bank.execute<Account>("alice", Withdraw{5}, once));
    expect_reused(bank.transact([](Transaction& tx) { tx.execute<Account>("alice", Deposit{5}); }, once));
    auto submitted = bank.submit<Account>("alice", Deposit{7}, once);
    later.drain();
    expect_reused(submitted.get());
    EXPECT_EQ(written(), 1);
    EXPECT_TRUE(bank.execute<Account>("alice", Deposit{5}, once)->repeated);
}

TEST_F(CommandId, of_two_commands_in_one_lane_the_second_is_told_that_it_is_another_one) {
    std::vector<std::future<Outcome>> futures;
    for (const int cents : {1, 2, 1}) futures.push_back(bank.submit<Account>("alice", Deposit{cents}, once));
    later.drain();
    EXPECT_FALSE(futures[0].get()->repeated);
    expect_reused(futures[1].get());
    EXPECT_TRUE(futures[2].get()->repeated);
    EXPECT_EQ(written(), 1);
}

TEST_F(CommandId, of_a_transaction_stands_for_the_contents_that_its_caller_gives) {
    const auto deposit = [](Transaction& tx) { tx.execute<Account>("alice", Deposit{5}); };
    CommandOptions options{.command_id = "once", .contents = "5 to alice"};
    ASSERT_TRUE(bank.transact(deposit, options));
    EXPECT_TRUE(bank.transact(deposit, options)->repeated);
    options.contents = "6 to alice";
    expect_reused(bank.transact(deposit, options));
    expect_reused(bank.transact(deposit, once));

    ASSERT_TRUE(bank.transact(deposit, {.command_id = "twice"}));
    EXPECT_TRUE(bank.transact([](Transaction&) {}, {.command_id = "twice"})->repeated) << "it knows no contents";
}

TEST_F(CommandId, with_contents_of_the_caller_does_not_look_at_the_fields) {
    CommandOptions options{.command_id = "once", .contents = "request 7"};
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}, options));
    EXPECT_TRUE(bank.execute<Account>("alice", Deposit{6}, options)->repeated);
    options.contents = "request 8";
    expect_reused(bank.execute<Account>("alice", Deposit{5}, options));
}

TEST_F(CommandId, whose_slot_has_no_fingerprint_stands_for_whatever_comes) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}, once));
    const store::Write forget{transactions::slot_key("$cmd-once", 1), store::Update{{}, {"fingerprint"}}, {}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&forget, 1}).front()));
    EXPECT_TRUE(bank.execute<Account>("bob", Deposit{6}, once)->repeated);
    EXPECT_EQ(written(), 1);
}

TEST_F(CommandId, that_was_rejected_may_be_used_for_anything) {
    ASSERT_FALSE(bank.execute<Account>("alice", Withdraw{5}, once));
    EXPECT_TRUE(bank.execute<Account>("bob", Deposit{5}, once));
}

struct Line {
    std::string what;
    std::optional<int> count;
};
struct Everything {
    enum class Kind { one, two } kind = Kind::one;
    double price = 1.5;
    std::vector<Line> lines = {{"tea", {}}, {"milk", 2}};
    std::map<std::string, bool> flags = {{"fast", true}};
    std::variant<Line, int> choice = 7;
    Time at = {};
    std::unordered_map<std::string, int> stock = {{"tea", 1}, {"milk", 2}};
    std::unordered_set<std::string> marks = {"a", "bc"};
    std::optional<std::string> note = {};
};
/// As Everything before it had a note.
struct Before {
    enum class Kind { one, two } kind = Kind::one;
    double price = 1.5;
    std::vector<Line> lines = {{"tea", {}}, {"milk", 2}};
    std::map<std::string, bool> flags = {{"fast", true}};
    std::variant<Line, int> choice = 7;
    Time at = {};
    std::unordered_map<std::string, int> stock = {{"tea", 1}, {"milk", 2}};
    std::unordered_set<std::string> marks = {"a", "bc"};
};
struct Unknowable {
    std::function<void()> callback = [] {};
    int* pointer = nullptr;
    int number = 1;
};

template <class T>
std::string contents(const T& value) {
    std::string text;
    detail::append_contents(text, value);
    return text;
}

TEST(Contents, differ_with_every_field_and_not_with_an_optional_that_was_added) {
    std::vector<Everything> all(11);
    all[1].kind = Everything::Kind::two;
    all[2].price = 1.25;
    all[3].lines[1].count = 3;
    all[4].flags["fast"] = false;
    all[5].choice = Line{"7", {}};
    all[6].at += std::chrono::microseconds{1};
    all[7].note = "";
    all[8].stock["tea"] = 3;
    all[9].stock = {{"tea", 2}, {"milk", 1}};
    all[10].marks = {"ab", "c"};
    std::set<std::string> different;
    for (const Everything& one : all) different.insert(contents(one));
    EXPECT_EQ(different.size(), all.size());
    EXPECT_EQ(contents(Everything{}), contents(Before{}));
    EXPECT_NE(contents(std::vector<std::string>{"a", "b"}), contents(std::vector<std::string>{"ab", ""}));
}

TEST(Contents, are_the_same_in_whatever_order_a_container_keeps_its_elements) {
    std::unordered_set<std::string> one;
    for (int i = 0; i < 100; ++i) one.insert(std::to_string(i));
    std::unordered_set<std::string> other(1'000);
    for (int i = 99; i >= 0; --i) other.insert(std::to_string(i));
    ASSERT_NE(*one.begin(), *other.begin());
    EXPECT_EQ(contents(one), contents(other));
}

TEST(Contents, leave_out_what_cannot_be_compared) {
    EXPECT_EQ(contents(Unknowable{}), contents(Unknowable{.callback = nullptr}));
    EXPECT_NE(contents(Unknowable{}), contents(Unknowable{.number = 2}));
}

}  // namespace
}  // namespace varve
