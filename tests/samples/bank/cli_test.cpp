#include "exit_codes.h"
#include "payments.h"
#include "scratch_bank.h"
#include "told.h"

#include <varve/core/clock.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace bank {
namespace {

struct Answer {
    bool ok = false;
    std::string error;
    std::string code;
    std::string message;
    bool repeated = false;
};
struct Line {
    std::string what;
    Cents cents = 0;
    Cents balance = 0;
};
struct Statement {
    std::string owner;
    varve::Version version = 0;
    Cents balance = 0;
    bool frozen = false;
    std::vector<Line> lines;
};
struct PayReport {
    std::size_t committed = 0;
    std::size_t rejected = 0;
    double transfers_per_second = 0;
};

/// alice has 100.00, bob nothing.
struct BankCli : ::testing::Test {
    ScratchBank bank;

    void SetUp() override {
        ASSERT_EQ(bank.run({"open", "alice", "--owner", "Alice Smith"}).code, 0);
        ASSERT_EQ(bank.run({"open", "bob"}).code, 0);
        ASSERT_EQ(bank.run({"deposit", "alice", "100"}).code, 0);
    }
    Cents balance(const std::string& account) const { return bank.run_json<Statement>({"statement", account}).balance; }
    std::string rejection(const std::vector<std::string>& arguments) const {
        const auto answer = bank.run_json<Answer>(arguments, 1);
        EXPECT_FALSE(answer.ok);
        return answer.code;
    }
};

TEST_F(BankCli, money_moves_and_the_statement_tells) {
    EXPECT_EQ(bank.run({"transfer", "alice", "bob", "20.50"}).code, 0);
    EXPECT_EQ(bank.run({"withdraw", "bob", "0.50"}).code, 0);
    const auto alice = bank.run_json<Statement>({"statement", "alice"});
    EXPECT_EQ(alice.owner, "Alice Smith");
    ASSERT_EQ(alice.lines.size(), 3u);
    EXPECT_EQ(alice.lines[2].what, "to bob");
    EXPECT_EQ(alice.lines[2].cents, -20'50);
    EXPECT_EQ(alice.lines[2].balance, 79'50);
    EXPECT_EQ(balance("bob"), 20'00);
    EXPECT_EQ(bank.run({"check"}).code, 0);
}

TEST_F(BankCli, what_the_domain_refuses_exits_with_1_and_a_code) {
    EXPECT_EQ(rejection({"open", "alice"}), "already_open");
    EXPECT_EQ(rejection({"withdraw", "alice", "100.01"}), "insufficient_funds");
    EXPECT_EQ(rejection({"transfer", "alice", "nobody", "1"}), "not_open");
    EXPECT_EQ(rejection({"transfer", "alice", "alice", "1"}), "same_account");
    EXPECT_EQ(rejection({"deposit", "alice", "0"}), "bad_amount");
    EXPECT_EQ(bank.run({"freeze", "alice", "--reason", "lost card"}).code, 0);
    EXPECT_EQ(rejection({"transfer", "alice", "bob", "1"}), "frozen");
    EXPECT_EQ(bank.run({"unfreeze", "alice"}).code, 0);
    EXPECT_EQ(balance("alice"), 100'00);
}

TEST_F(BankCli, no_balance_and_no_sum_grows_beyond_what_can_be_counted) {
    const std::string most = "9223372036854775";
    for (int i = 0; i < 10; ++i) ASSERT_EQ(bank.run({"deposit", "bob", most}).code, 0);
    EXPECT_EQ(rejection({"deposit", "bob", most}), "too_much");
    EXPECT_EQ(rejection({"transfer", "alice", "bob", "100"}), "too_much");
    EXPECT_EQ(balance("bob"), 9'223'372'036'854'775'000);
    EXPECT_EQ(balance("alice"), 100'00);
    std::vector<std::string> salaries(11, "alice=" + most);
    salaries.insert(salaries.begin(), {"payroll", "bob"});
    EXPECT_EQ(rejection(salaries), "too_much");
    const auto check = bank.run_json<Answer>({"check"}, 2);
    EXPECT_NE(check.message.find("more than can be counted"), std::string::npos) << check.message;
    EXPECT_EQ(bank.run({"withdraw", "bob", most}).code, 0);
}

TEST_F(BankCli, everybody_on_a_payroll_is_paid_or_nobody) {
    EXPECT_EQ(rejection({"payroll", "alice", "bob=10.00", "nobody=1.00"}), "not_open");
    EXPECT_EQ(rejection({"payroll", "alice", "bob=100.01"}), "insufficient_funds");
    EXPECT_EQ(balance("bob"), 0);
    ASSERT_EQ(bank.run({"open", "carol"}).code, 0);
    EXPECT_EQ(bank.run({"payroll", "alice", "bob=10.00", "carol=12.00", "bob=1.00"}).code, 0);
    EXPECT_EQ(balance("alice"), 77'00);
    EXPECT_EQ(balance("bob"), 11'00);
    EXPECT_EQ(bank.run_json<Statement>({"statement", "alice"}).lines.back().what, "to 3 accounts");
    EXPECT_EQ(bank.run({"check"}).code, 0);
}

TEST_F(BankCli, a_command_of_the_same_id_is_done_once) {
    EXPECT_FALSE(bank.run_json<Answer>({"transfer", "alice", "bob", "20", "--id", "t1"}).repeated);
    EXPECT_TRUE(bank.run_json<Answer>({"transfer", "alice", "bob", "20", "--id", "t1"}).repeated);
    EXPECT_EQ(balance("bob"), 20'00);
}

TEST_F(BankCli, a_statement_is_as_of_a_version_or_a_date) {
    EXPECT_EQ(bank.run_json<Statement>({"statement", "alice", "--version", "1"}).balance, 0);
    EXPECT_EQ(bank.run_json<Answer>({"statement", "alice", "--at", "2001-01-01"}, 1).error, "not_open");
    EXPECT_EQ(bank.run_json<Statement>({"statement", "alice", "--at", "2999-12-31"}).balance, 100'00);
    const std::string today = varve::to_string(varve::Clock::system().now()).substr(0, 10);
    EXPECT_EQ(bank.run_json<Statement>({"statement", "alice", "--at", today}).balance, 100'00) << "a day is its end";
}

TEST_F(BankCli, history_shows_the_events_with_their_metadata) {
    struct Metadata {
        std::string command_id;
    };
    struct Event {
        varve::Version version = 0;
        std::string type;
        varve::json::Raw data;
        Metadata metadata;
    };
    struct History {
        varve::Version version = 0;
        std::vector<Event> events;
    };
    ASSERT_EQ(bank.run({"withdraw", "alice", "1", "--id", "w1"}).code, 0);
    const auto history = bank.run_json<History>({"history", "alice"});
    ASSERT_EQ(history.events.size(), 3u);
    EXPECT_EQ(history.events[2].version, 3);
    EXPECT_EQ(history.events[2].type, "Withdrawn");
    EXPECT_EQ(history.events[2].data.text, R"({"cents":100})");
    EXPECT_EQ(history.events[2].metadata.command_id, "w1");
}

TEST_F(BankCli, history_of_a_correlation_shows_one_conversation) {
    struct Part {
        std::size_t depth = 0;
        std::string stream;
        std::string type;
    };
    struct Conversation {
        std::vector<Part> lines;
    };
    ASSERT_EQ(bank.run({"transfer", "alice", "bob", "1", "--id", "t1"}).code, 0);
    ASSERT_EQ(bank.run({"transfer", "alice", "bob", "2", "--id", "t2"}).code, 0);
    const auto conversation = bank.run_json<Conversation>({"history", "--correlation", "t1"});
    ASSERT_EQ(conversation.lines.size(), 2u);
    std::set<std::string> streams;
    for (const Part& line : conversation.lines) streams.insert(line.stream + " " + line.type);
    EXPECT_EQ(streams, (std::set<std::string>{"account-alice Withdrawn", "account-bob Deposited"}));
    EXPECT_NE(bank.run({"history", "--correlation", "t2"}).output.find("account-bob/3  Deposited"), std::string::npos);
    EXPECT_EQ(bank.run_json<Answer>({"history", "--correlation", "t3"}, 1).error, "not_found");
    EXPECT_EQ(bank.run({"history"}).code, exit_usage) << "of what?";
}

TEST_F(BankCli, balances_lists_the_read_model) {
    struct Balances {
        Cents sum = 0;
        std::vector<varve::json::Raw> accounts;
    };
    const auto balances = bank.run_json<Balances>({"balances"});
    EXPECT_EQ(balances.sum, 100'00);
    EXPECT_EQ(balances.accounts.size(), 2u);
}

struct ListedAccounts {
    struct Row {
        std::string owner;
        Cents cents = 0;
    };
    struct One {
        std::string account;
        Row balance;
        std::optional<varve::Time> since;
    };
    std::vector<One> accounts;
    std::string next;
};

TEST_F(BankCli, accounts_are_listed_by_name_a_page_at_a_time) {
    ASSERT_EQ(bank.run({"open", "adam"}).code, 0);
    const auto first = bank.run_json<ListedAccounts>({"accounts", "--limit", "2"});
    ASSERT_EQ(first.accounts.size(), 2u);
    EXPECT_EQ(first.accounts[0].account, "adam");
    EXPECT_EQ(first.accounts[1].account, "alice");
    EXPECT_EQ(first.accounts[1].balance.owner, "Alice Smith");
    EXPECT_EQ(first.accounts[1].balance.cents, 100'00);
    EXPECT_TRUE(first.accounts[1].since);
    const auto second = bank.run_json<ListedAccounts>({"accounts", "--limit", "2", "--next", first.next});
    ASSERT_EQ(second.accounts.size(), 1u);
    EXPECT_EQ(second.accounts[0].account, "bob");
    EXPECT_EQ(second.next, "");

    EXPECT_EQ(bank.run_json<ListedAccounts>({"accounts", "--starting-with", "a"}).accounts.size(), 2u);
    EXPECT_EQ(bank.run_json<ListedAccounts>({"accounts", "--starting-with", "z"}).accounts.size(), 0u);
    EXPECT_NE(bank.run({"accounts", "--limit", "1"}).output.find("repeat it with --next "), std::string::npos);
    EXPECT_EQ(bank.run({"accounts", "--starting-with", "a", "--next", first.next}).code, 2);
}

TEST_F(BankCli, accounts_are_found_by_owner) {
    ASSERT_EQ(bank.run({"open", "savings", "--owner", "Alice Smith"}).code, 0);
    const auto found = bank.run_json<ListedAccounts>({"accounts", "--owner", "Alice Smith"});
    ASSERT_EQ(found.accounts.size(), 2u);
    EXPECT_EQ(found.accounts[0].account, "alice");
    EXPECT_EQ(found.accounts[0].balance.cents, 100'00);
    EXPECT_EQ(found.accounts[1].account, "savings");
    EXPECT_EQ(bank.run_json<ListedAccounts>({"accounts", "--owner", "Alice"}).accounts.size(), 0u);
    EXPECT_EQ(bank.run({"index"}).output, "the index of owners is whole; 0 of its entries had to be mended\n");
}

TEST_F(BankCli, a_store_of_a_bank_without_the_index_is_used_as_it_is_until_that_is_built) {
    bank.tamper("DELETE FROM indexes");
    bank.tamper(R"(UPDATE varve SET item = '{"indexes":"{}","sorted":0}' WHERE name = 'rows balances')");
    EXPECT_EQ(bank.run({"deposit", "bob", "1"}).code, 0);
    EXPECT_EQ(bank.run_json<ListedAccounts>({"accounts"}).accounts.size(), 2u);
    const auto refused = bank.run_json<Answer>({"accounts", "--owner", "Alice Smith"}, 2);
    EXPECT_NE(refused.message.find("bank index"), std::string::npos) << refused.message;

    EXPECT_EQ(bank.run({"index"}).output, "the index of owners is whole; 2 of its entries had to be mended\n");
    const auto found = bank.run_json<ListedAccounts>({"accounts", "--owner", "Alice Smith"});
    ASSERT_EQ(found.accounts.size(), 1u);
    EXPECT_EQ(found.accounts[0].account, "alice");
    EXPECT_EQ(bank.run({"check"}).code, 0);
}

TEST_F(BankCli, turnover_lists_what_was_paid_in_and_out_on_each_day) {
    struct Day {
        std::string day;
        Cents in = 0, out = 0;
        std::int64_t movements = 0;
    };
    struct Turnover {
        std::vector<Day> days;
    };
    ASSERT_EQ(bank.run({"withdraw", "alice", "1"}).code, 0);
    for (int i = 0; i < 2; ++i) {  // the second time there is nothing new
        const auto turnover = bank.run_json<Turnover>({"turnover"});
        ASSERT_EQ(turnover.days.size(), 1u);
        EXPECT_EQ(turnover.days[0].day, varve::to_string(varve::Clock::system().now()).substr(0, 10));
        EXPECT_EQ(turnover.days[0].in, 100'00);
        EXPECT_EQ(turnover.days[0].out, 1'00);
        EXPECT_EQ(turnover.days[0].movements, 2);
    }
}

TEST_F(BankCli, follow_prints_events_as_they_are_committed_each_with_its_position) {
    struct Followed {
        std::uint64_t position = 0;
        std::string account;
        std::string type;
    };
    const Ran all = bank.run({"follow", "--from", "1", "--count", "3"});
    EXPECT_EQ(all.code, 0);
    EXPECT_NE(all.output.find("  alice 1                   Opened {\"owner\":\"Alice Smith\"}\n"), std::string::npos)
        << all.output;
    const auto last = bank.run_json<Followed>({"follow", "--from", "3", "--count", "1"});
    EXPECT_EQ(last.position, 3u);
    EXPECT_EQ(last.account, "alice");
    EXPECT_EQ(last.type, "Deposited");
    EXPECT_EQ(bank.run({"follow", "--from", "99"}).code, 2) << "there is nothing so far";

    Child tail = ScratchBank::start({"--store", bank.url(), "follow", "--from", "3", "--count", "2", "--json"});
    ASSERT_EQ(bank.run({"deposit", "bob", "5"}).code, 0);
    EXPECT_NE(tail.rest().find(R"("account":"bob")"), std::string::npos);
    EXPECT_EQ(tail.wait(), 0);
}

TEST_F(BankCli, follow_ends_at_an_interrupt) {
    Child tail = ScratchBank::start({"--store", bank.url(), "follow", "--from", "1"});
    std::vector<std::string> lines;
    for (bool ended = false; lines.size() < 3 && !ended;) {
        for (std::string& line : tail.lines(ended)) lines.push_back(std::move(line));
    }
    tail.kill(SIGINT);
    EXPECT_EQ(tail.rest(), "");
    EXPECT_EQ(tail.wait(), 0);
}

TEST_F(BankCli, turnover_is_kept_up_to_date_until_an_interrupt) {
    Child keeps = ScratchBank::start({"--store", bank.url(), "turnover", "--follow"});
    std::vector<std::string> lines;
    const auto wait_for = [&](std::size_t count) {
        for (bool ended = false; lines.size() < count && !ended;) {
            for (std::string& line : keeps.lines(ended)) lines.push_back(std::move(line));
            sched_yield();
        }
    };
    wait_for(1);
    ASSERT_EQ(bank.run({"deposit", "bob", "5"}).code, 0);
    while (lines.back() != "4 events so far") {
        const std::size_t before = lines.size();
        wait_for(before + 1);
        ASSERT_GT(lines.size(), before) << "it ended";
    }
    keeps.kill(SIGINT);
    EXPECT_EQ(keeps.wait(), 0);
    EXPECT_EQ(bank.run({"projections", "--verify", "turnover"}).output,
              "turnover: 1 row of 4 events, all as the events say\n");
}

TEST_F(BankCli, projections_says_how_the_read_models_are_doing_and_whether_they_are_right) {
    const Ran listed = bank.run({"projections"});
    EXPECT_EQ(listed.code, 0);
    EXPECT_EQ(listed.output,
              "turnover    followed  up to date   3 events\n"
              "balances    inline    up to date   with each command\n");
    EXPECT_EQ(bank.run({"projections", "--verify", "turnover"}).output,
              "turnover: 1 row of 3 events, all as the events say\n");
    EXPECT_EQ(bank.run({"projections", "--verify", "balances"}).output,
              "balances: 2 rows of 3 events, all as the events say\n");

    bank.tamper(R"(UPDATE balances SET item = replace(item, 'cents\":10000', 'cents\":10001') WHERE key = 'alice')");
    bank.tamper("DELETE FROM turnover");
    struct Verify {
        bool ok = true;
        struct Difference {
            std::string table, key;
            std::optional<std::string> stored;
        };
        std::vector<Difference> differences;
    };
    const auto balances = bank.run_json<Verify>({"projections", "--verify", "balances"}, 1);
    EXPECT_FALSE(balances.ok);
    ASSERT_EQ(balances.differences.size(), 1u);
    EXPECT_EQ(balances.differences[0].key, "alice");
    const auto turnover = bank.run_json<Verify>({"projections", "--verify", "turnover"}, 1);
    ASSERT_EQ(turnover.differences.size(), 1u);
    EXPECT_EQ(turnover.differences[0].stored, std::nullopt);
    EXPECT_EQ(bank.run({"projections", "--rebuild", "turnover"}).output,
              "turnover: all rows made anew from 3 events, and read from now on\n");
    EXPECT_EQ(bank.run({"projections", "--verify", "turnover"}).output,
              "turnover: 1 row of 3 events, all as the events say\n");
}

TEST_F(BankCli, an_account_whose_event_cannot_be_read_is_set_aside_and_taken_up_again_when_it_can) {
    ASSERT_EQ(bank.run({"deposit", "bob", "5"}).code, 0);
    ASSERT_EQ(bank.run({"deposit", "alice", "7"}).code, 0);
    bank.tamper(R"(UPDATE events SET item = replace(item, 'cents\":10000', 'cents\":\"x\"')
                   WHERE aggregateId = 'account-alice')");
    const Ran listed = bank.run({"projections"});
    EXPECT_EQ(listed.code, 1);
    EXPECT_NE(listed.output.find("  set aside: alice from version 2, Deposited, since "), std::string::npos)
        << listed.output;
    EXPECT_EQ(bank.run({"turnover"}).code, 3) << "it would not be all";
    EXPECT_EQ(bank.run({"projections", "--retry", "turnover"}).output,
              "turnover: 0 accounts taken up again, 1 still aside\n");
    EXPECT_EQ(bank.run({"projections", "--verify", "turnover"}).code, 2);

    bank.tamper(R"(UPDATE events SET item = replace(item, 'cents\":\"x\"', 'cents\":10000')
                   WHERE aggregateId = 'account-alice')");
    EXPECT_EQ(bank.run({"projections", "--retry", "turnover"}).output,
              "turnover: 1 account taken up again, 0 still aside\n");
    EXPECT_EQ(bank.run({"projections", "--verify", "turnover"}).code, 0);
    EXPECT_EQ(bank.run({"check"}).code, 0);
}

TEST_F(BankCli, usage_errors_exit_with_2) {
    for (const std::vector<std::string>& wrong :
         std::vector<std::vector<std::string>>{{},
                                               {"opne", "x"},
                                               {"open"},
                                               {"deposit", "alice", "much"},
                                               {"payroll", "alice", "bob"},
                                               {"statement", "alice", "--at", "yesterday"},
                                               {"pay", "--distribution", "gauss"},
                                               {"--strategy", "luck", "check"}}) {
        EXPECT_EQ(bank.run(wrong).code, 2) << ::testing::PrintToString(wrong);
    }
    EXPECT_EQ(ScratchBank::run_plain({"--store", "sqlit:x", "check"}).code, 2);
    EXPECT_EQ(bank.run({"--help"}).code, 0);
    EXPECT_NE(bank.run({"--help"}).output.find("Exit codes"), std::string::npos);
}

TEST_F(BankCli, a_damaged_file_exits_with_3) {
    std::ofstream{bank.file() + ".broken"} << std::string(10'000, 'x');
    const Ran run = ScratchBank::run_plain({"--json", "--store", "sqlite:" + bank.file() + ".broken", "check"});
    EXPECT_EQ(run.code, 3);
    EXPECT_EQ(ScratchBank::decode<Answer>(run.output).error, "corruption");
}

TEST_F(BankCli, a_check_of_a_store_without_accounts_does_not_say_that_all_is_well) {
    EXPECT_EQ(ScratchBank::run_plain({"--store", "sqlite:" + bank.file() + ".other", "check"}).code, 1);
}

TEST_F(BankCli, a_load_is_measured_and_leaves_the_books_in_order) {
    for (const char* strategy : {"automatic", "protocol"}) {
        for (const char* distribution : {"zipf", "uniform"}) {
            const auto figures =
                bank.run_json<PayReport>({"--strategy", strategy, "pay", "--transfers", "60", "--accounts", "20",
                                          "--workers", "4", "--distribution", distribution, "--seed", "7"});
            EXPECT_EQ(figures.committed + figures.rejected, 60u);
            EXPECT_GT(figures.transfers_per_second, 0);
            EXPECT_EQ(bank.run({"check"}).code, 0);
        }
    }
}

TEST_F(BankCli, a_load_runs_on_memory) {
    const Ran run =
        ScratchBank::run_plain({"--store", "memory:", "pay", "--transfers", "300", "--accounts", "20", "--check"});
    EXPECT_EQ(run.code, 0) << run.output;
    EXPECT_NE(run.output.find("p99.9"), std::string::npos);
    EXPECT_NE(run.output.find("✓ sum of money"), std::string::npos);
}

TEST_F(BankCli, pay_tells_its_parent_about_each_transfer) {
    const Ran run = bank.run({"pay", "--tell", "--transfers", "20", "--accounts", "10"});
    ASSERT_EQ(run.code, 0);
    std::size_t begun = 0;
    std::size_t ended = 0;
    std::istringstream lines{run.output};
    for (std::string line; std::getline(lines, line);) {
        const auto told = ScratchBank::decode<Told>(line);
        begun += told.begun ? 1 : 0;
        ended += told.ended && told.ending && told.recoveries ? 1 : 0;
    }
    EXPECT_EQ(begun, 20u);
    EXPECT_EQ(ended, 20u);
}

// ---- a store tampered with by hand

struct Tampered : BankCli {
    void SetUp() override {
        BankCli::SetUp();
        ASSERT_EQ(bank.run({"transfer", "alice", "bob", "20", "--id", "t1"}).code, 0);
        ASSERT_EQ(bank.run({"withdraw", "alice", "1"}).code, 0);
        ASSERT_EQ(bank.run({"check"}).code, 0);
    }
    /// The broken rules' names and items, one line.
    std::string broken() const {
        struct Rule {
            std::string name;
            std::vector<std::string> broken;
        };
        struct Check {
            bool ok = true;
            std::vector<Rule> rules;
        };
        const auto check = bank.run_json<Check>({"check"}, 1);
        EXPECT_FALSE(check.ok);
        std::string text;
        for (const Rule& rule : check.rules) {
            if (!rule.broken.empty()) text += rule.name + " (" + ::testing::PrintToString(rule.broken) + ") ";
        }
        return text;
    }
    static ::testing::AssertionResult names(const std::string& text, const std::string& rule, const std::string& item) {
        if (text.find(rule) != std::string::npos && text.find(item) != std::string::npos) {
            return ::testing::AssertionSuccess();
        }
        return ::testing::AssertionFailure() << text;
    }
};

TEST_F(BankCli, a_backup_is_a_bank_as_it_was) {
    const std::string copy = bank.file() + ".copy";
    EXPECT_EQ(bank.run({"backup", copy}).code, 0);
    EXPECT_EQ(bank.run({"deposit", "bob", "1"}).code, 0);
    EXPECT_EQ(bank.run({"backup", copy}).code, 2) << "it replaces nothing";
    const auto of_copy = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"--store", "sqlite:" + copy, "--json"});
        const Ran result = ScratchBank::run_plain(std::move(arguments));
        EXPECT_EQ(result.code, 0) << result.output;
        return result.output;
    };
    (void)of_copy({"check"});
    EXPECT_EQ(ScratchBank::decode<Statement>(of_copy({"statement", "alice"})).balance, 100'00);
    EXPECT_EQ(ScratchBank::decode<Statement>(of_copy({"statement", "bob"})).balance, 0);
}

TEST_F(Tampered, a_repair_makes_rows_anew_and_says_what_it_cannot_help) {
    struct Check {
        bool ok = true;
        std::optional<std::int64_t> repaired;
    };
    bank.tamper(R"(UPDATE balances SET item = replace(item, 'cents\":', 'cents\":1') WHERE key = 'alice')");
    bank.tamper("DELETE FROM balances WHERE key = 'bob'");
    EXPECT_EQ(bank.run({"check"}).code, 1);
    EXPECT_EQ(bank.run_json<Check>({"check", "--repair"}).repaired, 2);
    EXPECT_EQ(bank.run({"check"}).code, 0);
    ASSERT_EQ(bank.run({"transfer", "alice", "bob", "1"}).code, 0);
    EXPECT_EQ(bank.run({"check"}).code, 0);

    bank.tamper("DELETE FROM events WHERE aggregateId = 'account-bob' AND version = 1");
    EXPECT_EQ(bank.run({"check", "--repair"}).code, 1) << "no row brings back events that are lost";
}

TEST_F(Tampered, a_changed_amount_is_found) {
    bank.tamper(R"(UPDATE events SET item = replace(item, 'cents\":2000', 'cents\":2001')
                   WHERE aggregateId = 'account-bob')");
    const std::string found = broken();
    EXPECT_TRUE(names(found, "sum of money", "0.01"));
    EXPECT_TRUE(names(found, "transfers whole or not at all", "transfer t1"));
    EXPECT_TRUE(names(found, "balances as the events say", "bob: the row says 20.00, the events 20.01"));
}

TEST_F(Tampered, a_removed_event_in_the_middle_is_found) {
    bank.tamper("DELETE FROM events WHERE aggregateId = 'account-alice' AND version = 3");
    const std::string found = broken();
    EXPECT_TRUE(names(found, "versions without holes", "alice: version 3 is missing"));
    EXPECT_TRUE(names(found, "transfers whole or not at all", "transfer t1: 1 of 2 events"));
}

TEST_F(BankCli, a_theta_that_is_no_number_is_refused_at_once) {
    for (const char* theta : {"nan", "NaN", "-nan", "inf", "-1", "11", "x"}) {
        EXPECT_EQ(bank.run({"pay", "--transfers", "1", "--theta", theta}).code, 2) << theta;
    }
    varve::Application application{varve::open(bank.url())};
    EXPECT_THROW(pay(application, {.theta = std::nan("")}), varve::InvalidError);
}

TEST_F(BankCli, a_result_that_standard_output_does_not_take_is_no_success) {
    const auto code = [&](const std::string& arguments) {
        const std::string line = std::string{"'"} + BANK_PROGRAM + "' --store '" + bank.url() + "' " + arguments +
                                 " > /dev/full 2> /dev/null";
        return WEXITSTATUS(std::system(line.c_str()));
    };
    EXPECT_EQ(code("deposit alice 1"), 5);
    EXPECT_EQ(balance("alice"), 101'00) << "done it is";
    for (const char* arguments : {"statement alice", "balances", "check", "history alice", "--help", "--version",
                                  "completion bash", "check --json"}) {
        EXPECT_EQ(code(arguments), 5) << arguments;
    }
    EXPECT_EQ(code("withdraw alice 900"), 1);
}

TEST_F(BankCli, says_its_version) {
    const Ran ran = ScratchBank::run_plain({"--version"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_TRUE(ran.output.starts_with("bank, of varve 0.")) << ran.output;
}

TEST_F(BankCli, a_shell_completes_its_commands_and_their_options) {
    const auto completed = [](const std::string& words) {
        Child shell{{"/bin/bash", "-c",
                     std::string{"source <('"} + BANK_PROGRAM + "' completion bash); COMP_WORDS=(bank " + words +
                         "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _bank; echo \"${COMPREPLY[@]}\""}};
        std::string output = shell.rest();
        EXPECT_EQ(shell.wait(), 0);
        return output;
    };
    EXPECT_EQ(completed("pa"), "payroll pay\n");
    EXPECT_EQ(completed("--json pay --the"), "--theta\n");
    EXPECT_EQ(completed("transfer --st"), "--store --strategy\n");
    for (const char* shell : {"zsh", "fish"}) {
        const Ran ran = ScratchBank::run_plain({"completion", shell});
        EXPECT_EQ(ran.code, 0);
        EXPECT_NE(ran.output.find("transfer"), std::string::npos);
    }
    EXPECT_EQ(ScratchBank::run_plain({"completion", "cmd"}).code, 2);
}

TEST_F(BankCli, an_interrupted_load_ends_what_it_has_begun_and_prints_its_summary) {
    Child load = ScratchBank::start({"--store", bank.url(), "pay", "--transfers", "10000000", "--accounts", "2"});
    while (true) {  // until it pays
        const Ran statement = bank.run({"statement", "a000000", "--json"});
        if (statement.code == 0 && ScratchBank::decode<Statement>(statement.output).version > 1) break;
    }
    load.kill(SIGINT);
    const std::string output = load.rest();
    EXPECT_EQ(load.wait(), 130);
    EXPECT_NE(output.find(" transfers in "), std::string::npos) << output;
    EXPECT_EQ(bank.run({"check"}).code, 0);
}

TEST_F(Tampered, a_removed_last_event_is_found) {
    bank.tamper("DELETE FROM events WHERE aggregateId = 'account-alice' AND version = 4");
    EXPECT_TRUE(names(broken(), "balances as the events say", "alice"));
}

TEST_F(Tampered, a_changed_balance_is_found) {
    bank.tamper(R"(UPDATE balances SET item = replace(item, 'cents\":2000', 'cents\":9900') WHERE "key" = 'bob')");
    EXPECT_TRUE(names(broken(), "balances as the events say", "bob: the row says 99.00, the events 20.00"));
}

TEST_F(Tampered, a_removed_row_and_an_account_without_events_are_found) {
    bank.tamper("DELETE FROM balances WHERE \"key\" = 'alice'");
    bank.tamper("DELETE FROM events WHERE aggregateId = 'account-bob'");
    const std::string found = broken();
    EXPECT_TRUE(names(found, "balances as the events say", "alice: has no row"));
    EXPECT_TRUE(names(found, "balances as the events say", "bob: has a row but no events"));
}

TEST_F(Tampered, a_changed_snapshot_is_found) {
    ASSERT_EQ(bank.run({"pay", "--transfers", "250", "--accounts", "2", "--workers", "1", "--check"}).code, 0);
    bank.tamper(R"(UPDATE snapshots SET item = replace(item, 'balance\":', 'balance\":1'))");
    EXPECT_TRUE(names(broken(), "snapshots as the events say", "the snapshot of version "));
}

TEST_F(Tampered, an_event_that_is_no_event_is_found) {
    bank.tamper(R"(UPDATE events SET item = replace(item, 'Withdrawn', 'Withdrew')
                   WHERE aggregateId = 'account-alice' AND version = 4)");
    EXPECT_TRUE(names(broken(), "everything readable", "did you mean 'Withdrawn'"));
}

TEST_F(Tampered, a_slot_that_nobody_ever_settles_is_found) {
    bank.tamper(R"(UPDATE events SET item = replace(item, '"state":"committed"', '"state":"maybe"')
                   WHERE aggregateId = 'account-bob' AND version = 2)");
    EXPECT_TRUE(names(broken(), "everything readable", "is in state 'maybe'"));
}

}  // namespace
}  // namespace bank
