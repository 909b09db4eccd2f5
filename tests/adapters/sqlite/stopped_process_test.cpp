#include "faulty_vfs.h"
#include "scratch_file.h"

#include <varve/store/item_store.h>

#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

namespace varve::sqlite {
namespace {

using namespace std::chrono_literals;

/// Writes, and stops itself before its read, write or flush of that number, which is where it spends its time: what
/// lies between taking and leaving SQLite's locks on the log's index takes microseconds. Exits with 0 if there are
/// fewer.
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

/// Of three tries at most: a stopped process keeps each of them waiting, a busy machine does not.
template <class Call>
void expect_within(std::chrono::milliseconds most, const std::string& what, Call call) {
    auto fastest = std::chrono::milliseconds::max();
    for (int i = 0; i < 3 && fastest >= most; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        call();
        const auto took = std::chrono::steady_clock::now() - begin;
        fastest = std::min(fastest, std::chrono::duration_cast<std::chrono::milliseconds>(took));
    }
    EXPECT_LT(fastest, most) << what;
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
        expect_within(slack, "a read", [&] { EXPECT_TRUE(read_one(*store, account("parent", 1)).has_value()); });
        expect_within(slack, "one that comes new", [&] {
            const auto other = sqlite::open(options);
            EXPECT_TRUE(read_one(*other, account("parent", 1)).has_value());
            EXPECT_EQ(other->query({.table = "accounts", .partition = "parent"}).records.size(), 1U);
        });
        bool is_busy = false;
        expect_within(options.busy_timeout + slack, "a write", [&] {
            const auto answer = write_one(*store, {account("parent", 1), store::Put{{{"call", call}}}});
            const auto* const failure = std::get_if<Failure>(&answer);
            if (failure == nullptr) return;
            is_busy = true;
            EXPECT_EQ(failure->kind, ErrorKind::busy) << failure->message;
            EXPECT_FALSE(failure->in_doubt);
        });
        if (is_busy) ++busy;
        ASSERT_EQ(kill(child, SIGKILL), 0);
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(is_applied(write_one(*store, {account("parent", 1), store::Put{{{"call", call}}}}))) << call;
    }
    EXPECT_GE(stopped, 4);
    EXPECT_GT(busy, 0);
    EXPECT_LT(busy, stopped) << "the lock is held all the time";
}

/// Takes the right to write and stops. `with` runs before that.
[[noreturn]] void lock_and_stop(const std::string& path, auto with) {
    sqlite3* file = nullptr;
    if (sqlite3_open(path.c_str(), &file) != SQLITE_OK) _exit(1);
    if (sqlite3_exec(file, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) _exit(1);
    with();
    ::raise(SIGSTOP);
    _exit(0);
}

pid_t stopped_process(auto run) {
    const pid_t child = fork();
    if (child == 0) run();
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, WUNTRACED), child);
    EXPECT_TRUE(WIFSTOPPED(status));
    return child;
}

void end(pid_t child) {
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

// The log's index begins with two copies of its header. A commit writes the second, then the first: between the two
// they differ.
void write_half_a_header(const std::string& path) {
    constexpr off_t second_copy = 48;
    constexpr off_t changes = 8;                                // counts them
    const int index = ::open((path + "-shm").c_str(), O_RDWR);  // open until the end: closing it would drop the locks
    std::uint32_t count = 0;
    if (pread(index, &count, sizeof count, second_copy + changes) != sizeof count) _exit(1);
    ++count;
    if (pwrite(index, &count, sizeof count, second_copy + changes) != sizeof count) _exit(1);
}

TEST(StoppedProcess, that_was_marking_the_logs_index_keeps_readers_waiting_no_longer_than_they_asked_for) {
    const ScratchFile file{fast_directory()};
    Options options = file.options();
    options.busy_timeout = 300ms;
    const auto store = sqlite::open(options);
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, {account("parent", 1), store::Put{}})));
    const pid_t child = stopped_process([&] { lock_and_stop(file.path(), [&] { write_half_a_header(file.path()); }); });
    expect_within(options.busy_timeout + slack, "a read", [&] {
        try {
            static_cast<void>(read_one(*store, account("parent", 1)));
            ADD_FAILURE() << "the header was whole";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::busy) << error.what();
            EXPECT_NE(std::string{error.what()}.find("300 ms"), std::string::npos) << error.what();
        }
    });
    end(child);
    EXPECT_TRUE(read_one(*store, account("parent", 1)).has_value()) << "the index is made anew";
}

TEST(StoppedProcess, makes_nobody_wait_twice_where_the_log_is_due_to_begin_anew) {
    const ScratchFile file{fast_directory()};
    Options options = file.options();
    options.busy_timeout = 2s;
    const auto store = sqlite::open(options);
    store->ensure_table(accounts);
    const std::string mebibyte(std::size_t{1} << 20, 'x');
    for (std::int64_t version = 1; sqlite::metrics(*store).checkpoints == 0; ++version) {
        ASSERT_LT(version, 100);
        ASSERT_TRUE(is_applied(write_one(*store, {account("parent", version), store::Put{{{"x", mebibyte}}}})));
    }
    const pid_t child = stopped_process([&] { lock_and_stop(file.path(), [] {}); });
    expect_within(options.busy_timeout * 2 - 200ms, "a write", [&] {
        const auto answer = write_one(*store, {account("parent", 1), store::Put{}});
        ASSERT_TRUE(std::holds_alternative<Failure>(answer));
        EXPECT_EQ(std::get<Failure>(answer).kind, ErrorKind::busy);
    });
    end(child);
    EXPECT_TRUE(is_applied(write_one(*store, {account("parent", 1), store::Put{}})));
}

}  // namespace
}  // namespace varve::sqlite
