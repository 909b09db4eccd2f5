#include "faulty_vfs.h"
#include "scratch_file.h"

#include <varve/store/item_store.h>

#include <array>
#include <map>
#include <thread>

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

namespace varve::sqlite {
namespace {

using store::Applied;
using store::Item;
using store::Write;

/// A write that an event append is like: of a new item, and only if it is new.
Write append(const std::string& id, std::int64_t version) {
    return {account(id, version), store::Put{{{"cents", version}}}, !store::item_exists()};
}

TEST(GroupCommit, a_lone_caller_pays_one_fsync_whatever_the_size_of_its_batch) {
    const ScratchFile file;
    FaultyVfs vfs;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, append("alice", 1))));  // the log begins, with an fsync of its header
    vfs.log_syncs = 0;
    ASSERT_TRUE(is_applied(write_one(*store, append("alice", 2))));
    EXPECT_EQ(vfs.log_syncs, 1);
    std::vector<Write> writes;
    for (std::int64_t version = 3; version <= 100; ++version) writes.push_back(append("alice", version));
    for (const auto& answer : store->write(writes)) ASSERT_TRUE(is_applied(answer));
    EXPECT_EQ(vfs.log_syncs, 2);
    for (Write& write : writes) write.key.partition = "bob";
    EXPECT_TRUE(std::holds_alternative<Applied>(store->write_atomically(writes)));
    EXPECT_EQ(vfs.log_syncs, 3);
    EXPECT_TRUE(std::holds_alternative<store::Refused>(write_one(*store, append("alice", 1))));
    EXPECT_EQ(vfs.log_syncs, 3) << "a refusal writes nothing";
}

TEST(GroupCommit, all_waiting_writers_share_an_fsync) {
    constexpr int threads = 32;
    constexpr std::int64_t writes_per_thread = 50;
    const ScratchFile file;
    FaultyVfs vfs;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    vfs.sync_us = 1000;
    vfs.log_syncs = 0;
    std::vector<std::jthread> writers;
    for (int i = 0; i < threads; ++i) {
        writers.emplace_back([&store, id = std::to_string(i)] {
            for (std::int64_t version = 1; version <= writes_per_thread; ++version) {
                if (version % 5 == 0) {
                    const std::vector<Write> batch{append(id, version), append(id + "-other", version)};
                    EXPECT_TRUE(std::holds_alternative<Applied>(store->write_atomically(batch)));
                } else {
                    EXPECT_TRUE(is_applied(write_one(*store, append(id, version))));
                }
            }
        });
    }
    writers.clear();
    EXPECT_LT(vfs.log_syncs, threads * writes_per_thread / 3);
    EXPECT_EQ(store->changes("accounts", 0, 10'000).size(), threads * writes_per_thread * 6 / 5);
}

TEST(GroupCommit, of_rivals_for_one_key_exactly_one_is_applied) {
    constexpr int threads = 8;
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    std::atomic<int> applied = 0;
    std::atomic<int> refused_with_the_winner = 0;
    {
        std::vector<std::jthread> rivals;
        for (int i = 0; i < threads; ++i) {
            rivals.emplace_back([&, i] {
                for (std::int64_t version = 1; version <= 20; ++version) {
                    const Item item{{"owner", std::int64_t{i}}};
                    const auto answer =
                        write_one(*store, {account("alice", version), store::Put{item}, !store::item_exists()});
                    if (std::holds_alternative<Applied>(answer)) ++applied;
                    const auto* refused = std::get_if<store::Refused>(&answer);
                    if (refused != nullptr && refused->current && *refused->current != item) ++refused_with_the_winner;
                }
            });
        }
    }
    EXPECT_EQ(applied, 20);
    EXPECT_EQ(refused_with_the_winner, (threads - 1) * 20);
}

TEST(Changes, a_reader_beside_writers_passes_every_position_in_order) {
    constexpr int threads = 4;
    constexpr std::int64_t rounds = 100;
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    std::atomic<int> running = threads;
    std::vector<std::jthread> writers;
    for (int i = 0; i < threads; ++i) {
        writers.emplace_back([&, i] {
            for (std::int64_t round = 1; round <= rounds; ++round) {
                EXPECT_TRUE(is_applied(
                    write_one(*store, {account(std::to_string(i), round % 7), store::Update{{{"round", round}}, {}}})));
            }
            --running;
        });
    }
    std::map<store::Key, std::int64_t> seen;
    store::Position last = 0;
    for (bool more = true; more;) {
        more = running > 0;
        for (const store::Change& change : store->changes("accounts", last, 3)) {
            EXPECT_GT(change.position, last);
            last = change.position;
            const std::int64_t round = *store::integer(change.record.item, "round");
            EXPECT_GT(round, std::exchange(seen[change.record.key], round)) << "an older state after a newer one";
            more = true;
        }
    }
    EXPECT_EQ(last, threads * rounds);
    EXPECT_EQ(seen.size(), threads * 7U);
    for (const auto& [key, round] : seen) EXPECT_EQ(*store::integer(*read_one(*store, key), "round"), round);
}

TEST(Changes, positions_are_never_given_twice_even_after_the_last_item_was_erased) {
    const ScratchFile file;
    {
        const auto store = sqlite::open(file.options());
        store->ensure_table(accounts);
        ASSERT_TRUE(is_applied(write_one(*store, append("alice", 1))));
        ASSERT_TRUE(is_applied(write_one(*store, {account("alice", 1), store::Erase{}})));
    }
    const auto store = sqlite::open(file.options());
    ASSERT_TRUE(is_applied(write_one(*store, append("alice", 2))));
    EXPECT_EQ(store->changes("accounts", 0, 10).at(0).position, 2U);
}

TEST(Processes, two_stores_on_one_file_see_each_others_writes) {
    const ScratchFile file;
    const auto one = sqlite::open(file.options());
    const auto two = sqlite::open(file.options());
    one->ensure_table(accounts);
    for (std::int64_t version = 1; version <= 10; ++version) {
        ASSERT_TRUE(is_applied(write_one(version % 2 == 0 ? *one : *two, append("alice", version))));
        EXPECT_TRUE(read_one(version % 2 == 0 ? *two : *one, account("alice", version)).has_value()) << version;
    }
    EXPECT_TRUE(std::holds_alternative<store::Refused>(write_one(*one, append("alice", 9))));
    store::Position expected = 0;
    for (const store::Change& change : two->changes("accounts", 0, 100)) EXPECT_EQ(change.position, ++expected);
}

void open_and_count(const std::string& path, int times) {
    const auto store = sqlite::open({.path = path});
    store->ensure_table(accounts);
    const store::Key key = account("counter", 0);
    for (int i = 0; i < times;) {
        const auto item = read_one(*store, key);
        const std::int64_t count = item ? *store::integer(*item, "count") : 0;
        const auto answer = write_one(*store, {key, store::Put{{{"count", count + 1}}},
                                               item ? store::equals("count", count) : !store::item_exists()});
        if (const auto* failure = std::get_if<Failure>(&answer)) raise(*failure);
        if (std::holds_alternative<Applied>(answer)) ++i;
    }
}

TEST(Processes, that_begin_at_once_and_count_on_one_item_lose_no_update) {
    constexpr int processes = 4;
    constexpr int times = 100;
    const ScratchFile file;
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            try {
                open_and_count(file.path(), times);
                _exit(0);
            } catch (const std::exception& error) {
                fprintf(stderr, "%s\n", error.what());
                _exit(1);
            }
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    const auto store = sqlite::open(file.options());
    EXPECT_EQ(store::integer(*read_one(*store, account("counter", 0)), "count")[0], processes * times);
    EXPECT_EQ(store->changes("accounts", 0, 10).at(0).position, static_cast<store::Position>(processes * times));
}

struct Acknowledged {
    std::int64_t thread;
    std::int64_t version;
};

/// Four threads append, each to its own stream, and tell the pipe of every write that was answered, until killed.
[[noreturn]] void append_until_killed(const std::string& path, int pipe) {
    const auto store = sqlite::open({.path = path});
    store->ensure_table(accounts);
    std::vector<std::jthread> threads;
    for (std::int64_t thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&store, thread, pipe] {
            const std::string id = std::to_string(thread);
            std::int64_t version = 1;
            while (read_one(*store, account(id, version))) ++version;
            for (;; ++version) {
                if (!is_applied(write_one(*store, append(id, version)))) _exit(1);
                const Acknowledged note{thread, version};
                if (::write(pipe, &note, sizeof note) != sizeof note) _exit(1);
            }
        });
    }
    threads.clear();
    _exit(1);
}

TEST(Processes, a_killed_one_leaves_every_acknowledged_write_behind) {
    const ScratchFile file;
    std::array<std::int64_t, 4> acknowledged{};
    for (int kill_count = 0; kill_count < 10; ++kill_count) {
        std::array<int, 2> ends{};
        ASSERT_EQ(pipe(ends.data()), 0);
        const pid_t child = fork();
        if (child == 0) append_until_killed(file.path(), ends[1]);
        close(ends[1]);
        Acknowledged note{};
        int notes = 0;
        while (read(ends[0], &note, sizeof note) == sizeof note) {
            acknowledged.at(static_cast<std::size_t>(note.thread)) = note.version;
            if (++notes == 20 + 17 * kill_count) kill(child, SIGKILL);
        }
        close(ends[0]);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";

        const auto store = sqlite::open(file.options());
        std::size_t items = 0;
        for (std::size_t thread = 0; thread < acknowledged.size(); ++thread) {
            const store::Page page =
                store->query({.table = "accounts", .partition = std::to_string(thread), .limit = 100'000});
            EXPECT_GE(page.records.size(), static_cast<std::size_t>(acknowledged.at(thread)));
            std::int64_t version = 0;
            for (const store::Record& record : page.records)
                EXPECT_EQ(std::get<std::int64_t>(record.key.sort), ++version);
            items += page.records.size();
        }
        store::Position position = 0;
        for (const store::Change& change : store->changes("accounts", 0, 100'000)) {
            EXPECT_EQ(change.position, ++position);
        }
        EXPECT_EQ(position, items);
    }
}

}  // namespace
}  // namespace varve::sqlite
