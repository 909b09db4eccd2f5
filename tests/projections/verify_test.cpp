#include "projections/following.h"
#include "support/unordered_store.h"

#include <varve/commands/parked_stream.h>
#include <varve/commands/verified.h>
#include <varve/locks/locks.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace varve {
namespace {

using Lines = std::vector<std::string>;

Lines lines(const Verified& verified) {
    Lines lines;
    for (const RowDifference& one : verified.differences) {
        lines.push_back(one.table + " " + one.key.partition + ": " + one.stored.value_or("nothing") + ", not " +
                        one.expected.value_or("nothing"));
    }
    return lines;
}

struct Verifying : Following {};

/// Somebody has changed rows behind its back.
void damage(Application& bank) {
    bank.transact([](Transaction& tx) {
            tx.rows<Turnover>().put("alice", {999, 2});
            tx.rows<Turnover>().erase("bob");
            tx.rows<Turnover>().put("nobody", {1, 1});
        })
        .value();
}

TEST_F(Verifying, names_each_row_that_is_not_what_the_events_say) {
    Application bank{store, options()};
    bank.follow<Account>(SumUp{});
    deposit(bank, "alice", 1);
    deposit(bank, "alice", 2);
    deposit(bank, "carol", 5);
    catch_up(bank, deposit(bank, "bob", 3));
    const Verified right = bank.verify<SumUp>();
    EXPECT_EQ(lines(right), Lines{});
    EXPECT_EQ(right.events, 4);
    EXPECT_EQ(right.rows, 4) << "three accounts and all together";
    EXPECT_GT(right.position, 0u);

    damage(bank);
    EXPECT_EQ(lines(bank.verify("turnover")),
              (Lines{R"(turnover alice: {"cents":999,"deposits":2}, not {"cents":3,"deposits":2})",
                     R"(turnover bob: nothing, not {"cents":3,"deposits":1})",
                     R"(turnover nobody: {"cents":1,"deposits":1}, not nothing)"}));
}

TEST_F(Verifying, goes_to_where_the_projection_is_and_no_further) {
    Application bank{store, options()};
    {
        Application owner{store, options()};
        owner.follow<Account>(SumUp{});
        catch_up(owner, deposit(owner, "alice", 1));
    }
    const Lock lock = bank.locks().acquire("$follower-turnover");  // so that it stays there
    bank.follow<Account>(SumUp{});
    deposit(bank, "alice", 2);
    const Verified verified = bank.verify<SumUp>();
    EXPECT_EQ(lines(verified), Lines{});
    EXPECT_EQ(verified.events, 1);
}

TEST_F(Following, verify_finds_nothing_while_everybody_writes_and_what_is_wrong_even_then) {
    Application bank{store, options()};
    bank.project<Account>(ProjectBalance{});
    bank.follow<Account>(SumUp{}, {.batch_max = 3});
    ASSERT_TRUE(bank.wait_for<SumUp>(deposit(bank, "alice", 1), patience));
    std::jthread writer{[&](const std::stop_token& is_over) {
        for (int i = 0; !is_over.stop_requested(); ++i) {
            deposit(bank, i % 3 == 0 ? "alice" : "bob", 1);
            bank.transact([](Transaction& tx) {
                    tx.execute<Account>("carol", Deposit{1});
                    tx.execute<Account>("dave", Deposit{1});
                })
                .value();
        }
    }};
    for (std::int64_t events = 0; events < 500 && !HasFailure();) {
        const Verified followed = bank.verify<SumUp>();
        EXPECT_EQ(lines(followed), Lines{});
        EXPECT_EQ(lines(bank.verify<ProjectBalance>()), Lines{});
        events = followed.events;
    }
    bank.transact([](Transaction& tx) { tx.rows<Turnover>().update("alice", [](Turnover& row) { row.cents += 7; }); })
        .value();
    const Lines wrong = lines(bank.verify<SumUp>());
    writer.request_stop();
    ASSERT_EQ(wrong.size(), 1u);
    EXPECT_EQ(wrong.front().substr(0, 15), "turnover alice:");
}

TEST_F(Verifying, also_an_inline_projection) {
    Application bank{store, options()};
    bank.project<Account>(ProjectBalance{});
    deposit(bank, "alice", 1);
    deposit(bank, "alice", 2);
    EXPECT_EQ(lines(bank.verify<ProjectBalance>()), Lines{});
    Application other{store, options()};  // which does not know whose the rows are
    other.transact([](Transaction& tx) { tx.rows<Balance>().put("alice", {4}); }).value();
    EXPECT_EQ(lines(bank.verify<ProjectBalance>()), (Lines{R"(balances alice: {"cents":4}, not {"cents":3})"}));
}

TEST_F(Verifying, reads_no_further_than_for_as_many_differences_as_it_names) {
    const auto counting = std::make_shared<testing::CountingStore>(store);
    Application bank{counting, options()};
    bank.follow<Account>(SumUp{});
    catch_up(bank, deposit(bank, "alice", 1));
    const auto reads_beside = [&](int first, int last) {
        for (int i = first; i < last; i += 50) {
            bank.transact([&](Transaction& tx) {
                    for (int j = i; j < std::min(i + 50, last); ++j)
                        tx.rows<Turnover>().put("nobody " + std::to_string(j), {1, 1});
                })
                .value();
        }
        counting->reset();
        EXPECT_EQ(bank.verify<SumUp>().differences.size(), Verified::differences_max);
        return counting->counts().reads;
    };
    const auto few = reads_beside(0, 1100);
    const auto many = reads_beside(1100, 4000);
    EXPECT_LT(many, few + few / 2);
}

/// A hot row, too, is compared at one moment, though the log comes after the commits.
TEST_F(Following, verify_of_an_inline_projection_tells_no_lies_where_the_feed_is_a_log) {
    store = std::make_shared<UnorderedStore>(store);
    Application bank{store, options()};
    bank.project<Account>(ProjectBalance{});
    deposit(bank, "alice", 1);
    std::jthread writer{[&](const std::stop_token& is_over) {
        while (!is_over.stop_requested()) deposit(bank, "alice", 1);
    }};
    for (int i = 0; i < 2; ++i) EXPECT_EQ(lines(bank.verify<ProjectBalance>()), Lines{});
    Application other{store, options()};  // which does not know whose the rows are
    other.transact([](Transaction& tx) { tx.rows<Balance>().update("alice", [](Balance& row) { row.cents += 7; }); })
        .value();
    const Verified wrong = bank.verify<ProjectBalance>();
    writer.request_stop();
    ASSERT_EQ(wrong.differences.size(), 1u);
    const auto cents = [](const std::optional<std::string>& row) { return json::decode<Balance>(*row).value().cents; };
    EXPECT_EQ(cents(wrong.differences[0].stored), cents(wrong.differences[0].expected) + 7);
}

/// An account's deposits in their order, and what pages of them said at each.
struct Deposits {
    static constexpr std::string_view table = "deposits";
    static constexpr bool sorted = true;
    std::int64_t cents = 0;
    std::string before;
};
struct ListDeposits {
    static constexpr std::string_view name = "deposits";
    void operator()(const Deposited& e, ProjectionContext& context) const {
        const std::string id{context.aggregate_id()};
        const auto rows = context.rows<Deposits>();
        std::string before;
        for (const RowRange& range : {RowRange{id}, RowRange{.partition = id, .descending = true},
                                      RowRange{.partition = id, .first = "2", .last = "4"},
                                      RowRange{.partition = id, .first = "2", .last = "4", .descending = true},
                                      RowRange{.partition = id, .first = "4", .last = "2"}}) {
            PageOptions page{.limit = 2};
            do {
                RowPage<Deposits> found = rows.range(range, page);
                for (const auto& row : found.rows) before += row.key.sort;
                before += found.next.empty() ? "." : ",";
                page.next = std::move(found.next);
            } while (!page.next.empty());
        }
        rows.put({id, std::to_string(context.version())}, {e.cents, before});
    }
};

TEST_F(Verifying, shows_a_projection_ranges_as_the_store_does) {
    Application bank{store, options()};
    bank.follow<Account>(ListDeposits{});
    Receipt last;
    for (const char* id : {"alic", "alice", "alice1"}) {
        for (int i = 0; i < 5; ++i) last = deposit(bank, id, i);
    }
    while (!bank.wait_for<ListDeposits>(last, 1s)) std::this_thread::yield();
    EXPECT_EQ(bank.rows<Deposits>().get({"alice", "5"})->before, "12,34.43,21.23,4.43,2..");
    EXPECT_EQ(lines(bank.verify<ListDeposits>()), Lines{});
}

TEST_F(Verifying, names_each_of_many_rows_that_are_missing) {
    Application bank{store, options()};
    bank.follow<Account>(SumUp{}, {.batch_max = 50});
    Receipt last;
    for (int i = 0; i < 120; ++i) last = deposit(bank, "a" + std::to_string(i), 1);
    catch_up(bank, last);
    for (int i = 0; i < 120; i += 40) {
        bank.transact([&](Transaction& tx) {
                for (int j = i; j < i + 40; ++j) tx.rows<Turnover>().erase("a" + std::to_string(j));
            })
            .value();
    }
    EXPECT_EQ(bank.verify<SumUp>().differences.size(), 120u);
}

/// As an older program has written it.
struct OldTurnover {
    static constexpr std::string_view table = "turnover";
    std::int64_t cents = 0;
};

TEST_F(Verifying, a_row_that_says_the_same_in_other_words_is_no_difference) {
    Application bank{store, options()};
    bank.follow<Account>(SumUp{});
    catch_up(bank, deposit(bank, "alice", 1));
    Application old{store, options()};
    old.transact([](Transaction& tx) { tx.rows<OldTurnover>().put("alice", {1}); }).value();
    EXPECT_EQ(lines(bank.verify<SumUp>()), (Lines{R"(turnover alice: {"cents":1}, not {"cents":1,"deposits":1})"}));
    const store::Write spaced{{.table = "turnover", .partition = "alice"},
                              store::Update{{{"data", R"({"deposits": 1, "cents": 1})"}}, {}}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&spaced, 1}).front()));
    EXPECT_EQ(lines(bank.verify<SumUp>()), Lines{});
}

/// Reads what others write.
struct Copies {
    static constexpr std::string_view name = "copies";
    void operator()(const Deposited&, ProjectionContext& context) const {
        const auto balance = context.rows<Balance>().get(context.aggregate_id());
        context.rows<Turnover>().put(context.aggregate_id(), {balance ? balance->cents : 0, 0});
    }
};

TEST_F(Verifying, says_what_it_cannot_do) {
    Application bank{store, options()};
    bank.project<Account>(ProjectBalance{});
    bank.follow<Account>(Copies{});
    bank.subscribe("index", [](auto) {});
    const Receipt last = deposit(bank, "alice", 1);
    while (!bank.wait_for<Copies>(last, 1s)) std::this_thread::yield();
    const auto says = [](auto call, std::string_view part) {
        const std::string said = refusal<InvalidError>([&] { static_cast<void>(call()); });
        EXPECT_NE(said.find(part), std::string::npos) << said;
    };
    says([&] { return bank.verify<Copies>(); },
         "'copies' reads the rows of 'balances', which it does not write: what they were at each event is not known");
    says([&] { return bank.verify("index"); }, "'index' is a subscription");
    says([&] { return bank.verify("nothing"); }, "there is no follower 'nothing'");
    says([&] { return bank.verify<SumUp>(); }, "there is no follower 'turnover'");
    says([&] { return bank.verify<ProjectBalance>(100); },
         "the rows to compare with take more than the 100 bytes of memory that verify may use");
}

struct Choosy {
    static constexpr std::string_view name = "turnover";
    std::shared_ptr<std::atomic<bool>> is_mended = std::make_shared<std::atomic<bool>>(false);
    void operator()(const Deposited& e, ProjectionContext& context) const {
        if (e.cents == 13 && !*is_mended) throw std::runtime_error("not 13");
        context.rows<Turnover>().update(context.aggregate_id(), [&](Turnover& row) { row.cents += e.cents; });
    }
};

TEST_F(Verifying, waits_for_streams_that_are_aside_to_be_taken_up) {
    const Choosy projection;
    Application bank{store, options()};
    bank.follow<Account>(projection, {.on_poison = FollowOptions::OnPoison::park});
    deposit(bank, "alice", 13);
    catch_up(bank, deposit(bank, "bob", 1));
    EXPECT_EQ(refusal<InvalidError>([&] { static_cast<void>(bank.verify<Choosy>()); }),
              "the rows of the follower 'turnover' lack the events of streams that are set aside (1); call "
              "retry_parked before verify");
    *projection.is_mended = true;
    ASSERT_EQ(bank.retry_parked("turnover"), 1u);
    EXPECT_EQ(lines(bank.verify<Choosy>()), Lines{});
    *projection.is_mended = false;
    EXPECT_EQ(refusal<InvalidError>([&] { static_cast<void>(bank.verify<Choosy>()); }),
              "'turnover' cannot be folded again at Deposited, version 1 of stream 'account-alice': not 13");
}

}  // namespace
}  // namespace varve
