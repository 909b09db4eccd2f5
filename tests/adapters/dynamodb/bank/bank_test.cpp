// The sample bank as a user runs it: several processes, a store by URL.

#include "../local_server.h"

#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

/// A process of the bank, whose standard output can be read.
class Bank {
  public:
    Bank(const std::string& url, std::vector<std::string> words) {
        words.insert(words.begin(), {VARVE_BANK, "--store", url, "--lease-ms", "200"});
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        int out[2];
        if (pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
        process_ = fork();
        if (process_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(out[1], STDOUT_FILENO);
            execv(arguments[0], arguments.data());
            _exit(127);
        }
        close(out[1]);
        output_ = out[0];
    }
    ~Bank() {
        kill_now();
        close(output_);
    }
    Bank(const Bank&) = delete;
    Bank& operator=(const Bank&) = delete;

    /// Returns when it has said so many lines, or ended.
    void wait_for_lines(std::ptrdiff_t lines) {
        while (std::ranges::count(said_, '\n') < lines && read_some()) {
        }
    }
    /// The exit code, once it has ended by itself.
    int wait() {
        while (read_some()) {
        }
        int status = 0;
        waitpid(process_, &status, 0);
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    void kill_now() {
        if (process_ < 0) return;
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        process_ = -1;
    }
    const std::string& said() const { return said_; }

  private:
    bool read_some() {
        char bytes[4096];
        const ssize_t count = ::read(output_, bytes, sizeof bytes);
        if (count <= 0) return false;
        said_.append(bytes, static_cast<std::size_t>(count));
        return true;
    }

    pid_t process_ = -1;
    int output_ = -1;
    std::string said_;
};

class BankByUrl : public ::testing::TestWithParam<LocalServer::Kind> {
  protected:
    void SetUp() override {
        try {
            server_ = std::make_unique<LocalServer>(GetParam());
        } catch (const ServerMissing& missing) {
            GTEST_SKIP() << missing.what();
        }
        url_ = server_->url("bank");
    }

    std::vector<std::string> payments(int transfers) const {
        return {"pay",    "--transfers", std::to_string(transfers), "--workers", "3",     "--accounts", "12",
                "--seed", "7",           "--distribution",          "uniform",   "--tell"};
    }
    void expect_balanced_books() {
        Bank check{url_, {"check"}};
        EXPECT_EQ(check.wait(), 0) << check.said();
        EXPECT_NE(check.said().find("nothing left pending"), std::string::npos) << check.said();
    }

    std::unique_ptr<LocalServer> server_;
    std::string url_;
};

INSTANTIATE_TEST_SUITE_P(Each, BankByUrl, ::testing::Values(LocalServer::Kind::dynoxide, LocalServer::Kind::dynalite),
                         [](const ::testing::TestParamInfo<LocalServer::Kind>& info) {
                             return info.param == LocalServer::Kind::dynoxide ? "dynoxide" : "dynalite";
                         });

TEST_P(BankByUrl, two_processes_move_money_and_the_books_balance) {
    Bank one{url_, payments(40)};
    Bank other{url_, payments(40)};
    EXPECT_EQ(one.wait(), 0);
    EXPECT_EQ(other.wait(), 0);
    expect_balanced_books();
}

TEST_P(BankByUrl, killed_processes_leave_books_that_balance) {
    for (int round = 0; round < 3; ++round) {
        Bank survivor{url_, payments(15)};
        Bank victim{url_, payments(100'000)};
        victim.wait_for_lines(20 + 7 * round);
        victim.kill_now();
        EXPECT_EQ(survivor.wait(), 0);
    }
    expect_balanced_books();
}

}  // namespace
}  // namespace varve::dynamodb
