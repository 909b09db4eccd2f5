// The sample bank as a user runs it: several processes, a store by URL.

#include "../documented_program.h"
#include "../each_server.h"
#include "child.h"

#include <memory>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

class BankByUrl : public EachServer {
  protected:
    void SetUp() override {
        EachServer::SetUp();
        if (!server_) return;
        url_ = server_->url("bank");
    }

    bank::Child start(std::vector<std::string> words) const {
        words.insert(words.begin(), {VARVE_BANK, "--store", url_, "--lease-ms", "200"});
        return bank::Child{words};
    }
    static std::vector<std::string> payments(int transfers) {
        return {"pay",    "--transfers", std::to_string(transfers), "--workers", "3",     "--accounts", "12",
                "--seed", "7",           "--distribution",          "uniform",   "--tell"};
    }
    static int end(bank::Child& child) {
        static_cast<void>(child.rest());
        return child.wait();
    }
    void expect_balanced_books() const {
        bank::Child check = start({"check"});
        const std::string said = check.rest();
        EXPECT_EQ(check.wait(), 0) << said;
        EXPECT_NE(said.find("nothing left pending"), std::string::npos) << said;
    }

    std::string url_;
};

INSTANTIATE_TEST_SUITE_P(Each, BankByUrl, each_kind(), name_of_kind);

TEST_P(BankByUrl, two_processes_move_money_and_the_books_balance) {
    bank::Child one = start(payments(40));
    bank::Child other = start(payments(40));
    EXPECT_EQ(end(one), 0);
    EXPECT_EQ(end(other), 0);
    expect_balanced_books();
}

TEST_P(BankByUrl, what_another_program_appends_is_put_right_in_the_balances_by_a_repair) {
    const auto run = [this](const std::vector<std::string>& words) {
        bank::Child child = start(words);
        std::string said = child.rest();
        return std::pair{child.wait(), std::move(said)};
    };
    ASSERT_EQ(run({"open", "alice"}).first, 0);
    ASSERT_EQ(run({"deposit", "alice", "100"}).first, 0);
    const auto appended = DocumentedProgram{VARVE_DYNAMODB_PAGE}.run(*server_, "account-alice");
    ASSERT_EQ(appended.status, 0) << appended.said;

    ASSERT_EQ(run({"deposit", "alice", "1"}).first, 0);
    const auto wrong = run({"check"});
    EXPECT_EQ(wrong.first, 1);
    EXPECT_NE(wrong.second.find("alice: the row says 101.00, the events 108.00"), std::string::npos) << wrong.second;

    const auto repaired = run({"check", "--repair"});
    EXPECT_EQ(repaired.first, 0) << repaired.second;
    EXPECT_NE(repaired.second.find("repaired: 1 of the balances"), std::string::npos) << repaired.second;
    EXPECT_EQ(run({"check"}).first, 0);
    ASSERT_EQ(run({"withdraw", "alice", "8"}).first, 0);
    EXPECT_EQ(run({"check"}).first, 0);
    EXPECT_NE(run({"balances"}).second.find("100.00"), std::string::npos);
    EXPECT_NE(run({"check", "--repair"}).second.find("repaired: 0 of the balances"), std::string::npos);
}

TEST_P(BankByUrl, the_demo_runs_and_says_so_and_leaves_a_bank_alone) {
    const std::vector<std::string> words{"demo",        "--transfers", "60",      "--accounts", "12",
                                         "--processes", "2",           "--kills", "1"};
    bank::Child demo = start(words);
    const std::string said = demo.rest();
    EXPECT_EQ(demo.wait(), 0) << said;
    EXPECT_NE(said.find("1 processes by SIGKILL"), std::string::npos) << said;
    EXPECT_NE(said.find("12,000.00  ✓"), std::string::npos) << said;
    expect_balanced_books();
    bank::Child again = start(words);
    EXPECT_EQ(end(again), 2) << "there are accounts";
}

}  // namespace
}  // namespace varve::dynamodb
