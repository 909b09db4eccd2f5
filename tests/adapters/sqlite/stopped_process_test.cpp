#include "faulty_vfs.h"
#include "scratch_file.h"

#include <thread>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace varve::sqlite {
namespace {

using namespace std::chrono_literals;

/// Writes, and stops itself before its read, write or flush of that number, which is where it spends its time: what lies
/// between taking and leaving SQLite's locks on the log's index takes microseconds. Exits with 0 if there are fewer.
[[noreturn]] void write_and_stop(const Options& options, int call) {
    FaultyVfs vfs;
    int calls = -1;  // not counted yet
    vfs.before_each_call = [&] {
        if (calls >= 0 && ++calls == call) ::raise(SIGSTOP);
    };
    const auto store = sqlite::open(options);
    calls = 0;
    for (std::int64_t version = 1; version <= 2; ++version) {
        if (!is_applied(write_one(*store, {account("child", version), store::Put{{{"n", version}}}}))) _exit(1);
    }
    _exit(0);
}

template <class Call>
std::chrono::milliseconds time_of(Call call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
}

// Slow machines take their time; the defects that this is about took seconds more than what was asked for.
constexpr auto slack = 2s;

TEST(StoppedProcess, keeps_no_reader_waiting_and_writers_no_longer_than_they_asked_for) {
    const ScratchFile file{fast_directory()};
    Options options = file.options();
    options.busy_timeout = 100ms;
    const auto store = sqlite::open(options);
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, {account("parent", 1), store::Put{}})));
    int stopped = 0;
    int busy = 0;
    for (int call = 1;; ++call) {
        ASSERT_LT(call, 300);
        const pid_t child = fork();
        if (child == 0) write_and_stop(options, call);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
        if (WIFEXITED(status)) {
            EXPECT_EQ(WEXITSTATUS(status), 0);
            break;
        }
        ASSERT_TRUE(WIFSTOPPED(status));
        ++stopped;
        SCOPED_TRACE("stopped before call " + std::to_string(call));
        EXPECT_LT(time_of([&] { EXPECT_TRUE(read_one(*store, account("parent", 1)).has_value()); }), slack);
        EXPECT_LT(time_of([&] {
                      const auto other = sqlite::open(options);
                      EXPECT_TRUE(read_one(*other, account("parent", 1)).has_value());
                      EXPECT_EQ(other->query({.table = "accounts", .partition = "parent"}).records.size(), 1U);
                  }),
                  slack)
            << "one that comes new";
        EXPECT_LT(time_of([&] {
                      const auto answer = write_one(*store, {account("parent", 1), store::Put{{{"call", call}}}});
                      const auto* const failure = std::get_if<Failure>(&answer);
                      if (failure == nullptr) return;
                      ++busy;
                      EXPECT_EQ(failure->kind, ErrorKind::busy) << failure->message;
                      EXPECT_FALSE(failure->in_doubt);
                  }),
                  options.busy_timeout + slack);
        ASSERT_EQ(kill(child, SIGKILL), 0);
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(is_applied(write_one(*store, {account("parent", 1), store::Put{{{"call", call}}}}))) << call;
    }
    EXPECT_GE(stopped, 4);
    EXPECT_GT(busy, 0);
    EXPECT_LT(busy, stopped) << "the lock is held all the time";
}

}  // namespace
}  // namespace varve::sqlite
