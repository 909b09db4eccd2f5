// What lies in the database, and what clients of all kinds do to each other there.

#include "adapters/on_servers/moved_store.h"
#include "server.h"
#include "support/account.h"

#include <varve/postgres/postgres.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

namespace varve::postgres {
namespace {

using store::Applied;
using store::Bytes;
using store::Item;
using store::Key;
using store::Put;
using store::Refused;
using store::TableSchema;
using store::Write;
using store::WriteAnswer;

const TableSchema accounts{
    .name = "accounts", .partition_attribute = "id", .sort_attribute = "version", .sort = store::SortType::integer};
const TableSchema notes{.name = "notes", .partition_attribute = "id"};

Key account(const std::string& id, std::int64_t version) {
    return {"accounts", id, version};
}
Key note(const std::string& id) {
    return {"notes", id, {}};
}

std::string schema_of(const std::string& url) {
    const std::size_t begin = url.find("schema=") + 7;
    return url.substr(begin, url.find('&', begin) - begin);
}

WriteAnswer write_one(store::ItemStore& store, const Write& write) {
    return store.write({&write, 1}).front();
}
bool is_applied(const WriteAnswer& answer) {
    return std::holds_alternative<Applied>(answer);
}
Failure failure(const WriteAnswer& answer) {
    const auto* const found = std::get_if<Failure>(&answer);
    return found == nullptr ? Failure{.kind = ErrorKind::invalid, .in_doubt = false, .message = "was no failure"}
                            : *found;
}
std::optional<Item> read_one(store::ItemStore& store, const Key& key) {
    return store.read({&key, 1}).front();
}

TEST(StoredInPostgres, a_foreign_client_reads_items_as_json) {
    const std::string url = fresh_url(shared_server());
    const auto store = varve::open(url);
    store->ensure_table(accounts);
    const Item item{{"text", "a \"quoted\" \\ line\nwith \xc3\xa9 and \x01"},
                    {"most", std::numeric_limits<std::int64_t>::max()},
                    {"bytes", Bytes{std::byte{0}, std::byte{0xff}}}};
    ASSERT_TRUE(is_applied(write_one(*store, {account("alice", 7), Put{item}})));
    ForeignClient client = shared_server().client();
    const std::string table = schema_of(url) + ".accounts";
    EXPECT_EQ(client.run("SELECT id, version, position, item->>'most', item->'bytes', item->>'text' FROM " + table),
              std::vector<std::string>{"alice|7|1|9223372036854775807|{\"$hex\": \"00ff\"}|a \"quoted\" \\ line\nwith "
                                       "\xc3\xa9 and \x01"});
    EXPECT_EQ(client.run("SELECT * FROM " + schema_of(url) + ".varve_tables"),
              std::vector<std::string>{"accounts|id|version|integer||0"});
    EXPECT_EQ(read_one(*store, account("alice", 7)), item);
}

TEST(StoredInPostgres, names_that_the_server_would_confuse_or_cut_stay_apart) {
    const std::string url = fresh_url(shared_server());
    const auto store = varve::open(url);
    const std::vector<std::string> names{"events",
                                         "Events",
                                         "varve_tables",
                                         "select",
                                         "a.b-c",
                                         "item",
                                         std::string(200, 'x'),
                                         std::string(199, 'x'),
                                         "position",
                                         std::string(63, 'y'),
                                         std::string(63, 'y') + "z"};
    for (const std::string& name : names) {
        store->ensure_table(
            {.name = name, .partition_attribute = "item", .sort_attribute = "ctid", .sort = store::SortType::text});
        ASSERT_TRUE(is_applied(write_one(*store, {{name, "p", "s"}, Put{{{"position", name}}}}))) << name;
    }
    store->ensure_table({.name = "columns",
                         .partition_attribute = std::string(100, 'a') + "\"b",
                         .sort_attribute = std::string(100, 'a') + "\"c",
                         .sort = store::SortType::integer});
    ASSERT_TRUE(is_applied(write_one(*store, {{"columns", "p", std::int64_t{1}}, Put{{{"x", 1}}}})));
    const auto again = varve::open(url);
    for (const std::string& name : names) {
        EXPECT_EQ(read_one(*again, {name, "p", "s"}), (Item{{"position", name}})) << name;
        EXPECT_EQ(again->changes(name, 0, 10).size(), 1U) << name;
    }
    EXPECT_EQ(again->query({.table = "columns", .partition = "p"}).records.size(), 1U);
}

TEST(StoredInPostgres, names_of_tables_meet_none_of_the_servers_own) {
    const auto store = varve::open(fresh_url(shared_server()));
    for (const std::string name : {"foo", "foo_pkey", "foo_position", "foo_key", "foo_bytes"}) {
        store->ensure_table({.name = name, .partition_attribute = "id"});
        ASSERT_TRUE(is_applied(write_one(*store, {{name, "a", {}}, Put{{{"x", 1}}}}))) << name;
        EXPECT_EQ(read_one(*store, {name, "a", {}}), (Item{{"x", 1}})) << name;
    }
}

TEST(StoredInPostgres, many_large_items_are_written_in_several_messages) {
    const auto store = varve::open(fresh_url(shared_server()));
    store->ensure_table(notes);
    const Item large{{"text", std::string(std::size_t{7} << 20, 'x')}};
    std::vector<Write> writes;
    for (int i = 0; i < 40; ++i) writes.push_back({note(std::to_string(i)), Put{large}});
    for (const WriteAnswer& answer : store->write(writes)) EXPECT_TRUE(is_applied(answer));
    EXPECT_EQ(store->last_change("notes"), writes.size());
    EXPECT_THROW((void)store->write_atomically(writes), InvalidError);
    writes.resize(20);
    EXPECT_TRUE(std::holds_alternative<Applied>(store->write_atomically(writes)));
}

TEST(StoredInPostgres, two_schemas_of_one_database_know_nothing_of_each_other) {
    const auto first = varve::open(fresh_url(shared_server()));
    const auto second = varve::open(fresh_url(shared_server()));
    for (const auto& store : {first, second}) store->ensure_table(notes);
    ASSERT_TRUE(is_applied(write_one(*first, {note("a"), Put{{{"of", "first"}}}, !store::item_exists()})));
    ASSERT_TRUE(is_applied(write_one(*second, {note("a"), Put{{{"of", "second"}}}, !store::item_exists()})));
    EXPECT_EQ(read_one(*first, note("a")), (Item{{"of", "first"}}));
    EXPECT_EQ(second->last_change("notes"), 1U);
}

TEST(StoredInPostgres, what_ddl_says_by_hand_is_all_that_a_role_with_its_grants_needs) {
    const std::string url = fresh_url(shared_server());
    const std::string schema = schema_of(url);
    const auto tried = varve::open(url);
    try {
        (void)ddl(*tried);
        ADD_FAILURE() << "nothing is there yet";
    } catch (const InvalidError& error) {
        EXPECT_NE(std::string{error.what()}.find("has no tables yet"), std::string::npos) << error.what();
    }
    const std::vector<TableSchema> tables{accounts, notes};
    for (const TableSchema& table : tables) tried->ensure_table(table);
    shared_server().client().run("CREATE ROLE " + schema + "_app LOGIN");
    shared_server().client().run("CREATE DATABASE production");
    ForeignClient owner{shared_server().url("production")};
    owner.run("CREATE SCHEMA " + schema + "; CREATE TABLE " + schema + ".of_others (secret text)");
    for (int i = 0; i < 2; ++i) owner.run(ddl(*tried, schema + "_app"));  // twice does no harm
    EXPECT_EQ(owner.run("SELECT has_table_privilege('" + schema + "_app', '" + schema + ".of_others', 'SELECT')"),
              std::vector<std::string>{"f"});
    const std::string as_app = shared_server().url("production", schema + "_app") + "?schema=" + schema;
    const auto store = varve::open(as_app + "&tables=expect");
    for (const TableSchema& table : tables) store->ensure_table(table);
    ASSERT_TRUE(is_applied(write_one(*store, {account("alice", 1), Put{{{"x", 1}}}})));
    const std::vector<Write> both{{account("alice", 1), store::Update{{{"x", 2}}, {}}, store::equals("x", 1)},
                                  {note("a"), Put{}, !store::item_exists()}};
    EXPECT_TRUE(std::holds_alternative<Applied>(store->write_atomically(both)));
    ASSERT_TRUE(is_applied(write_one(*store, {note("a"), store::Erase{}})));
    EXPECT_EQ(store->changes("accounts", 0, 10).size(), 1U);
    EXPECT_EQ(store->scan({.table = "accounts"}).records.size(), 1U);
    try {
        store->ensure_table({.name = "others", .partition_attribute = "id"});
        ADD_FAILURE() << "a table was created that was to be expected";
    } catch (const ConfigError& error) {
        EXPECT_NE(std::string{error.what()}.find("postgres::ddl"), std::string::npos) << error.what();
    }
    // With the right to create nothing, it says so.
    const auto creating = varve::open(as_app);
    try {
        creating->ensure_table({.name = "others", .partition_attribute = "id"});
        ADD_FAILURE() << "a table was created without the right to";
    } catch (const ConfigError& error) {
        EXPECT_NE(std::string{error.what()}.find("42501"), std::string::npos) << error.what();
        EXPECT_NE(std::string{error.what()}.find("grant"), std::string::npos) << error.what();
    }
}

TEST(PositionsInPostgres, go_on_without_a_gap_whatever_was_open_and_was_rolled_back) {
    const std::string url = fresh_url(shared_server(), "&lock_timeout_ms=100");
    const std::string space = schema_of(url);
    const auto store = varve::open(url);
    store->ensure_table(notes);
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, {note("first"), Put{}})));

    // As the store itself does it, statement by statement.
    const std::vector<std::string> steps{
        "BEGIN",
        "SELECT name FROM " + space + ".varve_tables WHERE name = 'notes' FOR NO KEY UPDATE",
        "INSERT INTO " + space + ".notes SELECT 'held', '{}', max(position) + 1 FROM " + space + ".notes",
    };
    store::Position last = 1;
    for (const char* const end : {"COMMIT", "ROLLBACK"}) {
        for (std::size_t held = 1; held <= steps.size(); ++held) {
            ForeignClient client = shared_server().client();
            for (std::size_t i = 0; i < held; ++i) client.run(steps[i]);
            const std::string name = end + std::to_string(held);
            // Whoever is not held up by it goes on: a write of another table, and every read.
            EXPECT_TRUE(is_applied(write_one(*store, {account(name, 1), Put{}})));
            EXPECT_FALSE(read_one(*store, note("held")));
            EXPECT_EQ(store->changes("notes", last, 10).size(), 0U) << name;
            const WriteAnswer answer = write_one(*store, {note(name), Put{}, !store::item_exists()});
            if (held == 1) {
                EXPECT_TRUE(is_applied(answer)) << failure(answer).message;
            } else {
                // Nothing is written that would be seen before it, or that others would wait for.
                EXPECT_EQ(failure(answer).kind, ErrorKind::busy) << failure(answer).message;
                EXPECT_FALSE(failure(answer).in_doubt);
                EXPECT_NE(failure(answer).message.find("lock_timeout_ms"), std::string::npos);
            }
            client.run(end);
            EXPECT_TRUE(is_applied(write_one(*store, {note(name), Put{}})));
            const std::vector<store::Change> seen = store->changes("notes", last, 10);
            ASSERT_FALSE(seen.empty());
            for (const store::Change& one : seen) {
                EXPECT_TRUE(held == 1 || one.position == last + 1) << name;  // an item written twice moves to the end
                last = one.position;
            }
            EXPECT_EQ(store->last_change("notes"), last);
            ASSERT_TRUE(is_applied(write_one(*store, {note("held"), store::Erase{}})));
        }
    }
}

TEST(PositionsInPostgres, wait_for_no_reader_in_an_old_state) {
    const std::string url = fresh_url(shared_server(), "&lock_timeout_ms=100");
    const auto store = varve::open(url);
    store->ensure_table(notes);
    ForeignClient old = shared_server().client();
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM " + schema_of(url) + ".notes");
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(is_applied(write_one(*store, {note("a"), Put{{{"i", i}}}})));
    EXPECT_EQ(store->changes("notes", 0, 10).front().position, 20U);
    EXPECT_EQ(old.run("SELECT count(*) FROM " + schema_of(url) + ".notes"), std::vector<std::string>{"0"});
}

TEST(PositionsInPostgres, are_never_given_twice_when_the_last_items_are_erased) {
    const std::string url = fresh_url(shared_server());
    const auto store = varve::open(url);
    store->ensure_table(notes);
    store::Position last = 0;
    for (int round = 0; round < 4; ++round) {
        const std::vector<Write> puts{{note("a"), Put{}}, {note("b"), Put{}}, {note("c"), Put{}}};
        for (const WriteAnswer& answer : store->write(puts)) ASSERT_TRUE(is_applied(answer));
        EXPECT_EQ(store->last_change("notes"), last + 3);
        last += 3;
        // In one request with a put, in one without, and by another store that remembers nothing.
        std::vector<Write> erasures{
            {note("a"), store::Erase{}}, {note("b"), store::Erase{}}, {note("c"), store::Erase{}}};
        if (round % 2 == 1) erasures.back().action = Put{};
        for (const WriteAnswer& answer : varve::open(url)->write(erasures)) ASSERT_TRUE(is_applied(answer));
        last += round % 2;
        EXPECT_EQ(store->last_change("notes"), last);
    }
}

TEST(ForeignClients, that_write_to_the_same_rows_lose_nothing_and_neither_do_we) {
    const std::string url = fresh_url(shared_server());
    const auto store = varve::open(url);
    store->ensure_table(notes);
    const std::string table = schema_of(url) + ".notes";
    ASSERT_TRUE(is_applied(write_one(*store, {note("n"), Put{{{"ours", 0}, {"theirs", 0}}}})));
    constexpr int each = 100;
    std::thread foreign{[&] {
        ForeignClient client = shared_server().client();
        for (int i = 0; i < each; ++i) {
            client.run("UPDATE " + table +
                       " SET item = jsonb_set(item, '{theirs}', to_jsonb((item->>'theirs')::int + 1)) WHERE id = 'n'");
        }
    }};
    for (int i = 0; i < each;) {
        const Write add{note("n"), store::Update{{{"ours", i + 1}}, {}}, store::equals("ours", i)};
        const WriteAnswer answer = write_one(*store, add);
        ASSERT_TRUE(is_applied(answer)) << failure(answer).message;
        ++i;
    }
    foreign.join();
    EXPECT_EQ(read_one(*store, note("n")), (Item{{"ours", each}, {"theirs", each}}));
}

TEST(ForeignClients, that_create_an_item_while_we_do_are_found_and_refuse_us) {
    const std::string url = fresh_url(shared_server());
    const auto store = varve::open(url);
    store->ensure_table(notes);
    const std::string table = schema_of(url) + ".notes";
    ForeignClient client = shared_server().client();
    client.run("BEGIN; INSERT INTO " + table + " VALUES ('n', '{\"by\":\"them\"}', 1000)");
    WriteAnswer answer;
    std::thread ours{[&] { answer = write_one(*store, {note("n"), Put{{{"by", "us"}}}, !store::item_exists()}); }};
    // Ours has judged that there is no such item, and waits at the server for whoever creates it.
    ForeignClient watcher = shared_server().client();
    while (
        watcher.run("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'transactionid' AND application_name = "
                    "'varve'") != std::vector<std::string>{"1"}) {
        std::this_thread::yield();
    }
    client.run("COMMIT");
    ours.join();
    const auto* const refused = std::get_if<Refused>(&answer);
    ASSERT_NE(refused, nullptr) << failure(answer).message;
    EXPECT_EQ(refused->current, (Item{{"by", "them"}}));
}

TEST(GroupsInPostgres, of_many_threads_answer_each_for_itself_and_take_few_commits) {
    const std::string url = fresh_url(shared_server());
    const auto store = varve::open(url);
    store->ensure_table(accounts);
    constexpr int threads = 16;
    constexpr int each = 50;
    ForeignClient client = shared_server().client();
    const auto commits = [&] {
        client.run("SELECT pg_stat_force_next_flush()");
        return std::stol(client.run("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'").front());
    };
    const long before = commits();
    std::atomic<int> applied = 0;
    std::atomic<int> refused = 0;
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
        workers.emplace_back([&] {
            for (int i = 0; i < each; ++i) {
                // All want the same slots: one of them gets each, and the others see whose it is.
                const WriteAnswer answer =
                    write_one(*store, {account("hot", i), Put{{{"i", i}}}, !store::item_exists()});
                applied += is_applied(answer) ? 1 : 0;
                const auto* const other = std::get_if<Refused>(&answer);
                refused += other != nullptr && other->current == Item{{"i", i}} ? 1 : 0;
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(applied, each);
    EXPECT_EQ(refused, (threads - 1) * each);
    EXPECT_LT(commits() - before, threads * each / 2);
}

TEST(GroupsInPostgres, fail_only_whoever_has_something_that_the_server_does_not_take) {
    const std::string url = fresh_url(shared_server());
    const auto store = varve::open(url);
    store->ensure_table(notes);
    shared_server().client().run("ALTER TABLE " + schema_of(url) + ".notes ADD CONSTRAINT c CHECK (id <> 'bad')");
    std::atomic<int> good = 0;
    std::vector<std::thread> workers;
    for (int t = 0; t < 8; ++t) {
        workers.emplace_back([&, t] {
            for (int i = 0; i < 20; ++i) {
                const bool bad = t == 0;
                const WriteAnswer answer =
                    write_one(*store, {note(bad ? "bad" : std::to_string(t) + "." + std::to_string(i)), Put{}});
                if (bad) {
                    EXPECT_FALSE(failure(answer).in_doubt);
                    EXPECT_NE(failure(answer).message.find("23514"), std::string::npos) << failure(answer).message;
                } else {
                    good += is_applied(answer) ? 1 : 0;
                }
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(good, 7 * 20);
}

/// Counts calls, and lets a test wait for them.
class Calls {
  public:
    std::function<void()> counter() {
        return [this] {
            const std::lock_guard lock{mutex_};
            ++count_;
            changed_.notify_all();
        };
    }
    /// False after half a minute.
    bool wait_for_one() {
        std::unique_lock lock{mutex_};
        const bool is_there = changed_.wait_for(lock, std::chrono::seconds{30}, [this] { return count_ > 0; });
        count_ = 0;
        return is_there;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 0;  // guarded by mutex_
};

TEST(WatchersInPostgres, are_called_when_another_process_has_written_also_after_a_loss_of_the_connection) {
    const std::string url = fresh_url(shared_server());
    const auto writer = varve::open(url);
    const auto reader = varve::open(url);
    for (const auto& store : {writer, reader}) store->ensure_table(notes);
    Calls calls;
    auto watch = reader->watch("notes", calls.counter());
    ASSERT_NE(watch, nullptr);
    ASSERT_TRUE(calls.wait_for_one()) << "when it begins, it does not know what was there before";
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(is_applied(write_one(*writer, {note(std::to_string(i)), Put{}})));
        EXPECT_TRUE(calls.wait_for_one());
    }
    shared_server().client().run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'varve'");
    EXPECT_TRUE(calls.wait_for_one()) << "it cannot know what it has missed";
    ASSERT_TRUE(is_applied(write_one(*writer, {note("after"), Put{}})));
    EXPECT_TRUE(calls.wait_for_one());
    EXPECT_EQ(varve::open(url + "&notify=off")->watch("notes", [] {}), nullptr);
}

TEST(WatchersInPostgres, wake_followers_that_would_not_look_by_themselves_for_an_hour) {
    using namespace account;
    const std::string url = fresh_url(shared_server());
    Application writer{varve::open(url)};
    Application reader{varve::open(url)};
    std::atomic<int> seen = 0;
    reader.subscribe("watch", [&](const auto&) { ++seen; }, {.follow = {.poll_interval = std::chrono::hours{1}}});
    ASSERT_TRUE(reader.wait_for("watch", {}, std::chrono::seconds{30}));
    for (int i = 1; i <= 3; ++i) {
        const auto outcome = writer.execute<Account>("alice", Deposit{1});
        ASSERT_TRUE(outcome);
        EXPECT_TRUE(reader.wait_for("watch", outcome.value(), std::chrono::seconds{30})) << i;
        EXPECT_EQ(seen, i);
    }
}

TEST(MovedStore, comes_here_and_goes_on_and_followers_go_on_where_they_were) {
    on_servers::expect_a_store_to_move_to(varve::open(fresh_url(shared_server())));
}

}  // namespace
}  // namespace varve::postgres
