#include "support/account.h"
#include "support/temporary_folder.h"

#include <varve/commands/follower_status.h>
#include <varve/commands/parked_stream.h>
#include <varve/commands/stream_list.h>
#include <varve/console/console.h>
#include <varve/core/json.h>
#include <varve/events/event_store.h>
#include <varve/locks/locks.h>
#include <varve/processes/schedule.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/quiet_log.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace varve::console {

using namespace account;
using namespace std::chrono_literals;

namespace {

struct Remind {
    std::string text;
};

struct Turnover {
    static constexpr std::string_view table = "turnover";
    static constexpr std::string_view kept_by = "turnover";
    std::int64_t cents = 0;
};

/// Cannot take 13 until it is mended.
struct SumUp {
    static constexpr std::string_view name = "turnover";
    std::shared_ptr<std::atomic<bool>> is_mended = std::make_shared<std::atomic<bool>>(false);
    void operator()(const Deposited& e, ProjectionContext& context) const {
        if (e.cents == 13 && !*is_mended) throw std::runtime_error("13 is unlucky\n\x1b[31m");
        context.rows<Turnover>().update(context.aggregate_id(), [&](Turnover& row) { row.cents += e.cents; });
    }
};
constexpr FollowOptions park{.on_poison = FollowOptions::OnPoison::park};

struct Ran {
    int code = -1;
    std::string output;
    std::string errors;

    std::vector<std::string> lines() const {
        std::vector<std::string> found;
        for (std::size_t at = 0; at < output.size();) {
            const std::size_t end = std::min(output.find('\n', at), output.size());
            found.push_back(output.substr(at, end - at));
            at = end + 1;
        }
        return found;
    }
    /// The objects of --json, of which the parts that T names are read.
    template <class T>
    std::vector<T> objects() const {
        std::vector<T> found;
        for (const std::string& line : lines()) {
            auto value = json::decode<T>(line, {.require_all = true});
            if (!value) throw std::runtime_error(value.error().message + " in " + line);
            found.push_back(*std::move(value));
        }
        return found;
    }
};

/// A store in a file of its own, with alice and bob.
struct Console : ::testing::Test {
    const TemporaryFolder folder{"console-test"};
    const std::string url = "sqlite:" + (folder.path() / "bank.db").string();
    testing::QuietLog log;
    Program program;

    ApplicationOptions options() {
        ApplicationOptions options;
        options.sweep = false;
        options.runtime.log = log;
        return options;
    }
    void SetUp() override {
        Application bank{open(url), options()};
        bank.execute<Account>("alice", Open{"Alice"}).value();
        bank.execute<Account>("alice", Deposit{100}).value();
        bank.execute<Account>("bob", Deposit{5}).value();
    }

    Ran run_anywhere(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "varve");
        std::vector<char*> argv;
        for (std::string& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        ::testing::internal::CaptureStdout();
        ::testing::internal::CaptureStderr();
        const int code = console::run(static_cast<int>(arguments.size()), argv.data(), program);
        Ran ran{.code = code, .output = ::testing::internal::GetCapturedStdout(), .errors = {}};
        ran.errors = ::testing::internal::GetCapturedStderr();
        return ran;
    }
    Ran run(std::vector<std::string> arguments) {
        arguments.insert(arguments.end(), {"--store", url});
        return run_anywhere(std::move(arguments));
    }
    Ran run_writing(std::vector<std::string> arguments) {
        arguments.insert(arguments.end(), {"--allow-writes", "--yes"});
        return run(std::move(arguments));
    }
    /// All of it, from below.
    std::vector<store::Change> contents() { return open(url)->changes("events", 0, 1000); }
};

struct Name {
    std::string stream;
};
struct Event {
    std::string stream;
    Version version;
    std::string type;
    json::Raw data;
};

std::vector<std::string> names(const Ran& ran) {
    std::vector<std::string> found;
    for (Name& name : ran.objects<Name>()) found.push_back(std::move(name.stream));
    return found;
}

TEST_F(Console, streams_are_listed_though_nobody_has_made_the_list) {
    using Names = std::vector<std::string>;
    EXPECT_EQ(names(run({"streams", "--json"})), (Names{"account-alice", "account-bob"}));
    EXPECT_EQ(names(run({"streams", "account-b", "--json"})), (Names{"account-bob"}));
    EXPECT_EQ(names(run({"streams", "--limit", "1", "--json"})), (Names{"account-alice"}));
    {
        Application bank{open(url), options()};
        EXPECT_EQ(bank.streams("").streams.size(), 2u);  // which makes the list
        bank.execute<Account>("aaron", Deposit{1}).value();
        bank.execute<Account>("bert", Deposit{1}).value();
        (void)bank.events().append("zebra", {{"Born", 1, "{}"}}, Expected::none());
    }
    EXPECT_EQ(names(run({"streams", "--json"})),
              (Names{"account-aaron", "account-alice", "account-bert", "account-bob", "zebra"}));
    EXPECT_EQ(names(run({"streams", "account-b", "--json"})), (Names{"account-bert", "account-bob"}));
    EXPECT_EQ(names(run({"streams", "z", "--json"})), (Names{"zebra"}));
    EXPECT_EQ(run({"streams", "nobody"}).output, "there are no streams that begin with 'nobody'\n");
}

TEST_F(Console, a_history_is_printed_whole_or_as_of_a_version) {
    const auto events = run({"history", "account-alice", "--json"}).objects<Event>();
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].type, "Opened");
    EXPECT_EQ(events[1].data.text, R"({"cents":100})");
    EXPECT_EQ(run({"history", "account-alice", "--as-of", "1", "--json"}).objects<Event>().size(), 1u);
    EXPECT_EQ(run({"history", "account-alice", "--as-of", "2001-01-01"}).output, "");
    const auto newest = run({"history", "account-alice", "--newest-first", "--limit", "1", "--json"}).objects<Event>();
    ASSERT_EQ(newest.size(), 1u);
    EXPECT_EQ(newest[0].version, 2);
    EXPECT_EQ(run({"history", "account-alice", "--from", "2", "--json"}).objects<Event>().size(), 1u);
    EXPECT_NE(run({"show", "account-alice"}).output.find("Deposited"), std::string::npos);

    const Ran nobody = run({"history", "account-nobody"});
    EXPECT_EQ(nobody.code, 1);
    EXPECT_NE(nobody.errors.find("account-nobody"), std::string::npos);
    EXPECT_EQ(run({"show", "account-nobody"}).code, 1);
    const Ran no_time = run({"history", "account-alice", "--as-of", "yesterday"});
    EXPECT_EQ(no_time.code, 2);
    EXPECT_NE(no_time.errors.find("yesterday"), std::string::npos);
}

TEST_F(Console, what_others_have_stored_cannot_speak_to_the_terminal) {
    {
        Application bank{open(url), options()};
        (void)bank.events().append("evil-\x1b[2J", {{"Said\x07", 1, R"({"text":"\u001b[2J"})"}}, Expected::none());
    }
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"streams"}, {"history", "evil-\x1b[2J"}, {"show", "evil-\x1b[2J"}, {"stats"}}) {
        const Ran ran = run(command);
        EXPECT_EQ(ran.code, 0) << ran.errors;
        for (const char c : ran.output) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << ran.output;
    }
}

TEST_F(Console, the_tail_shows_what_is_committed_from_a_position_on) {
    struct Placed {
        std::string type;
        std::uint64_t position;
    };
    const auto all = run({"tail", "--after", "0", "--limit", "3", "--json"}).objects<Placed>();
    ASSERT_EQ(all.size(), 3u);
    const auto rest =
        run({"tail", "--after", std::to_string(all[0].position), "--types", "Deposited", "--limit", "2", "--json"})
            .objects<Placed>();
    ASSERT_EQ(rest.size(), 2u);
    EXPECT_EQ(rest[0].position, all[1].position);
}

TEST_F(Console, nothing_is_written_unless_it_is_allowed_and_confirmed) {
    const std::size_t before = contents().size();
    const Ran not_allowed = run({"transactions", "settle"});
    EXPECT_EQ(not_allowed.code, 2);
    EXPECT_NE(not_allowed.errors.find("--allow-writes"), std::string::npos) << not_allowed.errors;
    for (const std::vector<std::string>& command : {std::vector<std::string>{"doctor"},
                                                    {"stats"},
                                                    {"transactions"},
                                                    {"locks"},
                                                    {"projections"},
                                                    {"effects"},
                                                    {"timers"},
                                                    {"projections", "parked"},
                                                    {"effects", "parked"},
                                                    {"streams"}}) {
        const Ran ran = run(command);
        EXPECT_LE(ran.code, 1) << command.front() << ": " << ran.errors;
        EXPECT_EQ(ran.errors, "") << command.front();
        EXPECT_FALSE(ran.output.empty()) << command.front();
    }
    EXPECT_EQ(contents().size(), before);
    EXPECT_FALSE(open(url)->has_table({.name = "timers",
                                       .partition_attribute = "partition",
                                       .sort_attribute = "sort",
                                       .sort = store::SortType::text}))
        << "who only looks has made a table";
}

TEST_F(Console, a_store_that_is_not_there_is_not_made) {
    const std::string nowhere = (folder.path() / "nowhere.db").string();
    for (const char* writes : {"--json", "--allow-writes"}) {
        const Ran ran = run_anywhere({"streams", "--store", "sqlite:" + nowhere, writes});
        EXPECT_EQ(ran.code, 2);
        EXPECT_NE(ran.errors.find("nowhere.db"), std::string::npos) << ran.errors;
        EXPECT_FALSE(std::filesystem::exists(nowhere));
    }
    const Ran empty = run_anywhere({"streams", "--store", "memory:"});
    EXPECT_EQ(empty.code, 2);
    EXPECT_NE(empty.errors.find("holds nothing of varve's"), std::string::npos) << empty.errors;
    unsetenv("VARVE_STORE");
    EXPECT_EQ(run_anywhere({"streams"}).code, 2);
    const Ran misspelled = run({"steams"});
    EXPECT_EQ(misspelled.code, 2);
    EXPECT_NE(misspelled.errors.find("did you mean 'streams'"), std::string::npos) << misspelled.errors;
}

/// A transaction that was left in the middle: it has claimed alice, and its primary is bob's next slot.
struct LeftBehind : Console {
    void SetUp() override {
        Console::SetUp();
        program.options.transactions.lease = 50ms;
        const auto store = open(url);
        ASSERT_TRUE(store->has_table({.name = "events",
                                      .partition_attribute = "aggregateId",
                                      .sort_attribute = "version",
                                      .sort = store::SortType::integer}));
        const store::Write claim{.key = {"events", "account-alice", std::int64_t{3}},
                                 .action = store::Put{{{"state", "pending"},
                                                       {"epoch", std::int64_t{0}},
                                                       {"write_id", "tx-of-the-dead"},
                                                       {"_tx", "tx-of-the-dead"},
                                                       {"_primary", "account-bob"},
                                                       {"_primary_version", std::int64_t{2}},
                                                       {"_primary_epoch", std::int64_t{0}},
                                                       {"_lease", std::int64_t{1'700'000'000'000'000}},
                                                       {"_priority", std::int64_t{1'700'000'000'000'000}},
                                                       {"time", std::int64_t{1'700'000'000'000'000}},
                                                       {"events", R"([{"type":"Deposited","data":{"cents":1}}])"}}},
                                 .condition = {}};
        ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&claim, 1}).front()));
    }
};

struct OpenOne {
    std::string transaction;
    std::string verdict;
    std::string primary;
    std::vector<std::string> claims;
};

TEST_F(LeftBehind, the_transaction_is_shown_and_settled) {
    const auto found = run({"transactions", "--json"}).objects<OpenOne>();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].transaction, "tx-of-the-dead");
    EXPECT_EQ(found[0].verdict, "undecided");
    EXPECT_EQ(found[0].primary, "events/account-bob/2");
    EXPECT_EQ(found[0].claims, (std::vector<std::string>{"events/account-alice/3"}));
    const Ran doctor = run({"doctor"});
    EXPECT_EQ(doctor.code, 1);
    EXPECT_NE(doctor.output.find("tx-of-the-dead"), std::string::npos) << doctor.output;

    EXPECT_EQ(run_writing({"transactions", "settle", "another"}).code, 1);
    EXPECT_EQ(run({"transactions", "--json"}).objects<OpenOne>().size(), 1u) << "another one was settled";
    const Ran settled = run_writing({"transactions", "settle"});
    EXPECT_EQ(settled.code, 0);
    EXPECT_EQ(settled.output, "tx-of-the-dead is aborted, and cleared\n");
    EXPECT_EQ(run_writing({"transactions", "settle", "tx-of-the-dead"}).code, 1) << "it is gone";
    EXPECT_EQ(run({"transactions", "--json"}).output, "");
    EXPECT_EQ(run({"doctor"}).code, 0);
    Application bank{open(url), options()};
    EXPECT_EQ(bank.load<Account>("alice").version, 2);
    EXPECT_TRUE(bank.execute<Account>("alice", Deposit{1}));
}

TEST_F(Console, a_lock_is_shown_with_its_queue_and_taken_away) {
    struct Held {
        std::string lock;
        std::string owner;
        locks::Ticket ticket;
        std::vector<json::Raw> queue;
    };
    const auto store = open(url);
    Locks locks{store, {.time_to_live = 1h}};
    const Lock lock = locks.acquire("month-end");
    const auto held = run({"locks", "--json"}).objects<Held>();
    ASSERT_EQ(held.size(), 1u);
    EXPECT_EQ(held[0].lock, "month-end");
    EXPECT_EQ(held[0].ticket, lock.ticket());
    EXPECT_TRUE(held[0].queue.empty());
    EXPECT_EQ(run({"locks", "evict", "month-end", std::to_string(lock.ticket())}).code, 2);
    EXPECT_EQ(run_writing({"locks", "evict", "month-end", std::to_string(lock.ticket())}).code, 0);
    EXPECT_EQ(run({"locks", "--json"}).output, "");
    EXPECT_EQ(run_writing({"locks", "evict", "month-end", std::to_string(lock.ticket())}).code, 1);
}

struct Follower {
    std::string name;
    std::string state;
    std::int64_t parked;
    std::string error;
    std::int64_t build;
};

TEST_F(Console, a_poisoned_projection_is_found_and_repaired_by_a_program_with_its_code) {
    {
        Application bank{open(url), options()};
        bank.follow<Account>(SumUp{}, park);
        bank.execute<Account>("bob", Deposit{13}).value();
        bank.execute<Account>("bob", Deposit{7}).value();
        EXPECT_FALSE(bank.wait_for("turnover", {}, 20s)) << "bob is aside";
    }
    const auto found = run({"projections", "--json"}).objects<Follower>();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].name, "turnover");
    EXPECT_EQ(found[0].state, "up to date");
    EXPECT_EQ(found[0].parked, 1);
    EXPECT_EQ(run({"doctor"}).code, 1);
    const Ran parked = run({"projections", "parked", "turnover"});
    EXPECT_NE(parked.output.find("account-bob"), std::string::npos) << parked.output;
    EXPECT_NE(parked.output.find("13 is unlucky\\x0a\\x1b[31m"), std::string::npos) << parked.output;

    const Ran without_code = run_writing({"projections", "retry", "turnover"});
    EXPECT_EQ(without_code.code, 2);
    EXPECT_NE(without_code.errors.find("console::run"), std::string::npos) << without_code.errors;
    SumUp sums;
    program.meet = [&](Application& bank) { bank.follow<Account>(sums, park); };
    EXPECT_EQ(run_writing({"projections", "retry", "turnover"}).code, 1) << "it fails again";
    *sums.is_mended = true;
    EXPECT_EQ(run_writing({"projections", "retry", "turnover"}).output, "1 stream is taken up again, 0 stay aside\n");
    EXPECT_EQ(run({"projections", "verify", "turnover"}).code, 0);
    EXPECT_EQ(run({"doctor"}).code, 0);
    Application bank{open(url), options()};
    EXPECT_EQ(bank.rows<Turnover>().get("bob").value_or(Turnover{}).cents, 25);
}

TEST_F(Console, a_rebuild_is_asked_for_paused_and_resumed_without_the_programs_code) {
    {
        Application bank{open(url), options()};
        bank.follow<Account>(SumUp{});
        ASSERT_TRUE(bank.wait_for("turnover", {}, 20s));
    }
    EXPECT_EQ(run_writing({"projections", "rebuild", "nobody"}).code, 2);
    EXPECT_EQ(run_writing({"projections", "pause", "turnover"}).code, 2) << "nothing is being rebuilt";
    EXPECT_EQ(run_writing({"projections", "rebuild", "turnover"}).code, 0);
    EXPECT_EQ(run_writing({"projections", "pause", "turnover"}).code, 0);
    EXPECT_EQ(run_writing({"projections", "resume", "turnover"}).code, 0);
    Application bank{open(url), options()};
    bank.follow<Account>(SumUp{});
    const auto is_rebuilt = [&] {
        const std::vector<FollowerStatus> all = bank.followers();
        return all.size() == 1 && all.front().build == 2;
    };
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!is_rebuilt() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_TRUE(is_rebuilt());
    EXPECT_EQ(bank.rows<Turnover>().get("alice").value_or(Turnover{}).cents, 100);
}

TEST_F(Console, timers_are_listed_and_dropped) {
    struct Waiting {
        std::string id;
        std::string follower;
        std::string instance;
        std::string type;
    };
    std::string id;
    {
        Application bank{open(url), options()};
        id = schedule<Account>(bank, "alice", Deposit{1}, Clock::system().now() + 24h);
    }
    const auto waiting = run({"timers", "--json"}).objects<Waiting>();
    ASSERT_EQ(waiting.size(), 1u);
    EXPECT_EQ(waiting[0].id, id);
    EXPECT_EQ(waiting[0].follower, "$schedule-account");
    EXPECT_EQ(waiting[0].instance, "alice");
    EXPECT_EQ(waiting[0].type, "Deposit");
    EXPECT_EQ(run({"timers", "--failed"}).output, "no timer has failed\n");
    EXPECT_EQ(run_writing({"timers", "drop", "no-timer"}).code, 2);
    EXPECT_EQ(run_writing({"timers", "drop", id}).code, 0);
    const Ran gone = run_writing({"timers", "drop", id});
    EXPECT_EQ(gone.code, 1) << gone.errors;
    EXPECT_EQ(run({"timers"}).output, "there are no timers\n");
}

TEST_F(Console, what_is_stored_is_counted) {
    struct OfAggregate {
        std::int64_t streams;
        std::int64_t slots;
        std::int64_t events;
        std::string longest;
    };
    struct Counted {
        bool whole;
        std::map<std::string, OfAggregate> aggregates;
    };
    const auto found = run({"stats", "--json"}).objects<Counted>();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(found[0].whole);
    const OfAggregate& accounts = found[0].aggregates.at("account");
    EXPECT_EQ(accounts.streams, 2);
    EXPECT_EQ(accounts.slots, 3);
    EXPECT_EQ(accounts.events, 3);
    EXPECT_EQ(accounts.longest, "account-alice");
}

TEST_F(Console, a_clock_that_is_wrong_and_a_weak_setting_are_found) {
    struct Found {
        std::string health;
        std::string what;
        std::string found;
    };
    const auto of = [&](const std::string& what) {
        for (const Found& one : run({"doctor", "--json"}).objects<Found>()) {
            if (one.what == what) return one;
        }
        return Found{};
    };
    EXPECT_EQ(of("settings").health, "well");
    EXPECT_EQ(run_anywhere({"doctor", "--store", url + "?synchronous=normal"}).code, 1)
        << "it may lose what was acknowledged";
    EXPECT_EQ(of("clocks").health, "well");
    {
        const auto store = open(url);
        Locks locks{store, {.time_to_live = 1h}};
        const store::Write ahead{
            .key = {"events", "account-bob", std::int64_t{2}},
            .action = store::Put{{{"state", "committed"},
                                  {"write_id", "from-the-future"},
                                  {"time", (Clock::system().now() + 3h).time_since_epoch().count()},
                                  {"events", R"([{"type":"Deposited","data":{"cents":1}}])"}}},
            .condition = {}};
        ASSERT_TRUE(store->has_table({.name = "events",
                                      .partition_attribute = "aggregateId",
                                      .sort_attribute = "version",
                                      .sort = store::SortType::integer}));
        ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&ahead, 1}).front()));
    }
    EXPECT_EQ(of("clocks").health, "sick");
    EXPECT_NE(of("clocks").found.find("account-bob version 2"), std::string::npos);
}

TEST_F(Console, a_store_is_checked_and_what_was_tampered_with_is_named) {
    struct Found {
        std::string rule;
        std::string item;
    };
    struct Summary {
        bool holds;
        std::size_t events;
    };
    const Ran clean = run({"check", "--json"});
    EXPECT_EQ(clean.code, 0) << clean.errors;
    ASSERT_EQ(clean.objects<Summary>().size(), 1u);
    EXPECT_TRUE(clean.objects<Summary>()[0].holds);
    EXPECT_EQ(clean.objects<Summary>()[0].events, 3u);
    EXPECT_NE(run({"check"}).output.find("nothing is broken"), std::string::npos);
    {
        const auto store = open(url);
        const store::Write lost{
            .key = {"events", "account-alice", std::int64_t{1}}, .action = store::Erase{}, .condition = {}};
        ASSERT_TRUE(store->has_table({.name = "events",
                                      .partition_attribute = "aggregateId",
                                      .sort_attribute = "version",
                                      .sort = store::SortType::integer}));
        ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&lost, 1}).front()));
    }
    const Ran broken = run({"check", "--json"});
    EXPECT_EQ(broken.code, 1);
    const auto first = json::decode<Found>(broken.lines().front());
    ASSERT_TRUE(first);
    EXPECT_EQ(first->rule, "hole");
    EXPECT_EQ(first->item, "events/account-alice/1");
}

TEST_F(Console, a_store_goes_to_a_file_and_into_another_one) {
    const std::string file = (folder.path() / "bank.jsonl").string();
    const std::string other = "sqlite:" + (folder.path() / "other.db").string();
    const auto import_into = [&](const std::string& into) {
        return run_anywhere({"import", file, "--store", into, "--allow-writes", "--yes"});
    };
    ASSERT_EQ(run({"export", file}).code, 0);
    EXPECT_EQ(run({"export", file}).code, 2) << "it was written over";
    EXPECT_EQ(run_anywhere({"import", file, "--store", other}).code, 2) << "nobody has allowed that";
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "other.db"));
    ASSERT_EQ(import_into(other).code, 0);
    EXPECT_EQ(import_into(url).code, 2) << "that one is not empty";
    EXPECT_EQ(run_anywhere({"history", "account-alice", "--store", other}).output,
              run({"history", "account-alice"}).output);
    EXPECT_EQ(run_anywhere({"check", "--store", other}).code, 0);

    const std::string damaged = (folder.path() / "damaged.jsonl").string();
    std::filesystem::copy_file(file, damaged);
    std::filesystem::resize_file(damaged, std::filesystem::file_size(damaged) - 10);
    const Ran refused = run_anywhere(
        {"import", damaged, "--store", "sqlite:" + (folder.path() / "third.db").string(), "--allow-writes", "--yes"});
    EXPECT_NE(refused.code, 0);
    EXPECT_NE(refused.errors.find("line"), std::string::npos) << refused.errors;
}

TEST_F(Console, a_store_is_copied_into_another_one_and_compared) {
    const std::string other = "sqlite:" + (folder.path() / "other.db").string();
    const Ran copied = run_writing({"copy", other, "--writers-have-ended"});
    EXPECT_EQ(copied.code, 0) << copied.errors;
    EXPECT_EQ(run_anywhere({"history", "account-alice", "--store", other}).output,
              run({"history", "account-alice"}).output);
    EXPECT_EQ(run_anywhere({"check", "--store", other}).code, 0);
    EXPECT_EQ(run({"copy", other, "--writers-have-ended"}).code, 2) << "nobody has allowed that";
}

TEST_F(LeftBehind, an_export_that_fails_leaves_no_file) {
    const std::string file = (folder.path() / "bank.jsonl").string();
    const Ran ran = run({"export", file});
    EXPECT_NE(ran.code, 0);
    EXPECT_NE(ran.errors.find("account-alice/3"), std::string::npos) << ran.errors;
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_FALSE(std::filesystem::exists(file + ".part"));
    EXPECT_EQ(run({"export", file, "--events-only"}).code, 0);
}

TEST_F(Console, the_shells_and_man_read_what_it_prints_for_them) {
    const std::string bash = run_anywhere({"completion", "bash"}).output;
    const std::string script = (folder.path() / "completion").string();
    std::FILE* const file = std::fopen(script.c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fputs(bash.c_str(), file);
    std::fclose(file);
    const auto completed = [&](const std::string& words, int at) {
        const std::string command = "bash -c 'source " + script + "; COMP_WORDS=(" + words +
                                    "); COMP_CWORD=" + std::to_string(at) + "; _varve; echo \"${COMPREPLY[@]}\"'";
        std::FILE* const pipe = popen(command.c_str(), "r");
        std::string said;
        char buffer[256];
        while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) said += buffer;
        EXPECT_EQ(pclose(pipe), 0);
        return said;
    };
    EXPECT_EQ(completed("varve hist", 1), "history\n");
    EXPECT_EQ(completed("varve projections pa", 2), "parked pause\n");
    EXPECT_EQ(completed("varve projections --fo", 2), "\n");
    EXPECT_EQ(completed("varve history --new", 2), "--newest-first\n");
    const std::string page = run_anywhere({"man"}).output;
    EXPECT_NE(page.find(".SS projections parked"), std::string::npos);
    EXPECT_NE(page.find("\\-\\-allow\\-writes"), std::string::npos);
    EXPECT_NE(run_anywhere({"completion", "fish"}).output.find("complete -c varve"), std::string::npos);
    EXPECT_EQ(run_anywhere({"completion", "tcsh"}).code, 2);
}

}  // namespace
}  // namespace varve::console
