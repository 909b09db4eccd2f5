#include "scratch_file.h"

#include <varve/store/item_store.h>
#include <varve/testing/recorded_log.h>

#include <array>
#include <thread>

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

namespace varve::sqlite {
namespace {

/// A process that has read and stays in what it read, as a forgotten shell does.
class LongReader {
  public:
    explicit LongReader(const std::string& path) {
        std::array<int, 2> begun{};
        EXPECT_EQ(pipe(begun.data()), 0);
        EXPECT_EQ(pipe(end_.data()), 0);
        process_ = fork();
        if (process_ == 0) {
            close(end_[1]);
            sqlite3* connection = nullptr;
            const bool reads = sqlite3_open(path.c_str(), &connection) == SQLITE_OK &&
                               sqlite3_exec(connection, "BEGIN; SELECT count(*) FROM accounts", nullptr, nullptr,
                                            nullptr) == SQLITE_OK;
            char byte = reads ? 1 : 0;
            (void)!::write(begun[1], &byte, 1);
            (void)!::read(end_[0], &byte, 1);
            _exit(0);
        }
        close(end_[0]);
        char reads = 0;
        EXPECT_EQ(::read(begun[0], &reads, 1), 1);
        EXPECT_EQ(reads, 1);
        close(begun[0]);
        close(begun[1]);
    }
    ~LongReader() {
        close(end_[1]);
        waitpid(process_, nullptr, 0);
    }
    LongReader(const LongReader&) = delete;
    LongReader& operator=(const LongReader&) = delete;

    pid_t process() const { return process_; }

  private:
    std::array<int, 2> end_{};
    pid_t process_ = -1;
};

/// Each another than the one before it, or SQLite would find next to nothing to write.
store::Write megabyte(const std::string& id, std::int64_t version) {
    const char letter = static_cast<char>('a' + version % 26);
    return {account(id, version % 20), store::Put{{{"text", std::string(1'000'000, letter)}}}};
}

Options without_flushes(const ScratchFile& file, Log& log) {
    // Whoever waits for a reader waits for ever.
    return {
        .path = file.path(), .synchronous = Synchronous::normal, .busy_timeout = std::chrono::hours{24}, .log = &log};
}

TEST(Log, begins_anew_again_and_again) {
    const ScratchFile file{fast_directory()};
    testing::RecordedLog log;
    const auto store = sqlite::open(without_flushes(file, log));
    store->ensure_table(accounts);
    for (std::int64_t version = 1; version <= 60; ++version) {
        ASSERT_TRUE(is_applied(write_one(*store, megabyte("alice", version))));
    }
    EXPECT_LT(std::filesystem::file_size(file.path() + "-wal"), 20'000'000U);
    EXPECT_GE(metrics(*store).checkpoints, 3U);
    EXPECT_EQ(log.lines(), std::vector<std::string>{});
}

TEST(Log, begins_anew_although_writers_never_pause) {
    const ScratchFile file{fast_directory()};
    testing::RecordedLog log;
    const auto store = sqlite::open(without_flushes(file, log));
    store->ensure_table(accounts);
    {
        std::vector<std::jthread> writers;
        for (const char* id : {"alice", "bob", "carol", "dave"}) {
            writers.emplace_back([&, id] {
                for (std::int64_t version = 1; version <= 30; ++version) {
                    EXPECT_TRUE(is_applied(write_one(*store, megabyte(id, version))));
                }
            });
        }
    }
    EXPECT_LT(std::filesystem::file_size(file.path() + "-wal"), 64'000'000U);
    EXPECT_EQ(log.lines(), std::vector<std::string>{});
}

TEST(Log, grows_beside_a_long_reader_who_holds_up_no_commit_and_is_named) {
    const ScratchFile file{fast_directory()};
    testing::RecordedLog log;
    const auto store = sqlite::open(without_flushes(file, log));
    store->ensure_table(accounts);
    std::int64_t version = 0;
    {
        const LongReader reader{file.path()};
        while (version < 150) ASSERT_TRUE(is_applied(write_one(*store, megabyte("alice", ++version))));
        EXPECT_GT(metrics(*store).log_bytes, 150'000'000U);
        EXPECT_GT(metrics(*store).checkpoints_held_back, 0U);
        const std::vector<std::string> messages = log.lines();
        ASSERT_EQ(messages.size(), 1U) << "once, and again when it has doubled";
        EXPECT_NE(messages[0].find("process " + std::to_string(reader.process()) + " ("), std::string::npos)
            << messages[0];
        EXPECT_NE(messages[0].find(file.path() + "-wal"), std::string::npos) << messages[0];
    }
    for (int more = 0; more < 10; ++more) ASSERT_TRUE(is_applied(write_one(*store, megabyte("alice", ++version))));
    EXPECT_LT(metrics(*store).log_bytes, 20'000'000U);
    EXPECT_LT(std::filesystem::file_size(file.path() + "-wal"), 70'000'000U);
}

}  // namespace
}  // namespace varve::sqlite
