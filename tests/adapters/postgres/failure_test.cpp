// What the store says when the server, its disk, the network or the URL is not as it should be.

#include "connection.h"
#include "errors.h"
#include "round.h"
#include "server.h"

#include <varve/postgres/postgres.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace varve::postgres {
namespace {

using store::Key;
using store::Put;
using store::TableSchema;
using store::Write;
using store::WriteAnswer;

const TableSchema things{.name = "things", .partition_attribute = "id"};

WriteAnswer put(store::ItemStore& store, const std::string& id) {
    const Write write{{"things", id, {}}, Put{{{"x", 1}}}};
    return store.write({&write, 1}).front();
}
bool is_done(const WriteAnswer& answer) {
    return std::holds_alternative<store::Applied>(answer);
}
std::string said(const WriteAnswer& answer) {
    const auto* const failure = std::get_if<Failure>(&answer);
    return failure == nullptr ? "" : failure->message;
}

/// The error that `call` throws.
Error error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error{Failure{}};
}

void expect_refused(const std::string& url, ErrorKind kind, const std::string& part) {
    const Error error = error_of([&] { varve::open(url)->ensure_table(things); });
    EXPECT_STREQ(to_string(error.kind()), to_string(kind)) << error.what();
    EXPECT_NE(std::string{error.what()}.find(part), std::string::npos) << error.what();
    EXPECT_FALSE(error.in_doubt());
}

/// Runs `sql`, and once this is gone the other.
class Setting {
  public:
    Setting(Server& server, const std::string& sql, std::string after) : server_(server), after_(std::move(after)) {
        server.client().run(sql);
    }
    ~Setting() { server_.client().run(after_); }

  private:
    Server& server_;
    const std::string after_;
};

TEST(PostgresUrls, say_what_is_wrong_with_them) {
    const std::string good = shared_server().url();
    const std::vector<std::pair<std::string, std::string>> all{
        {"?shema=x", "did you mean 'schema'"},
        {"?schema=Bank", "a-z 0-9 _"},
        {"?schema=", "a-z 0-9 _"},
        {"?schema=1st", "no digit"},
        {"?tables=some", "create or expect"},
        {"?lock_timeout_ms=0", "lock_timeout_ms"},
        {"?lock_timeout_ms=soon", "lock_timeout_ms"},
        {"?timeout_ms=-1", "timeout_ms"},
        {"?connections=0", "connections"},
        {"?connections=2000", "connections"},
        {"?fsync=maybe", "fsync"},
    };
    for (const auto& one : all) {
        const std::string& options = one.first;
        const std::string& part = one.second;
        const Error error = error_of([&] { (void)varve::open(good + options); });
        EXPECT_EQ(error.kind(), ErrorKind::config) << options;
        EXPECT_NE(std::string{error.what()}.find(part), std::string::npos) << options << ": " << error.what();
    }
    EXPECT_EQ(error_of([] { (void)varve::open("postgres:bank"); }).kind(), ErrorKind::config);
    EXPECT_NO_THROW((void)varve::open(good + "?application_name=bank%20till&schema=spaced"));
}

TEST(PostgresServers, that_cannot_be_used_say_why_and_what_to_do) {
    Server& server = shared_server();
    expect_refused(server.url("nowhere"), ErrorKind::config, "name another one");
    expect_refused(server.url("postgres", "nobody_at_all"), ErrorKind::config, "pg_hba.conf");
    server.client().run("CREATE DATABASE latin ENCODING 'SQL_ASCII' TEMPLATE template0");
    expect_refused(server.url("latin"), ErrorKind::config, "UTF-8");
    {
        const Setting off{server, "CREATE ROLE lazy LOGIN; ALTER ROLE lazy SET synchronous_commit = off",
                          "DROP ROLE lazy"};
        expect_refused(server.url("postgres", "lazy"), ErrorKind::config, "synchronous_commit");
        EXPECT_NO_THROW((void)varve::open(server.url("postgres", "lazy") + "?synchronous_commit=off"));
    }
    {
        const Setting one{server, "CREATE ROLE single LOGIN CONNECTION LIMIT 0", "DROP ROLE single"};
        expect_refused(server.url("postgres", "single"), ErrorKind::unavailable, "connection");
    }
    {
        const Setting locked{server,
                             "CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on",
                             "DROP ROLE reader"};
        expect_refused(server.url("postgres", "reader"), ErrorKind::read_only, "primary");
    }
    const LoopbackSocket nobody = LoopbackSocket::bound();
    expect_refused("postgres://varve@127.0.0.1:" + std::to_string(nobody.port()) + "/postgres", ErrorKind::unavailable,
                   "refused");
    // It takes the connection and says nothing.
    const LoopbackServer mute{[](const LoopbackSocket& connection) {
        std::string heard;
        while (connection.receive(heard)) {
        }
    }};
    expect_refused("postgres://varve@" + mute.address() + "/postgres?timeout_ms=200", ErrorKind::unavailable, "0.2 s");
    // One that is well is found behind all of these.
    const std::string refusing = "127.0.0.1:" + std::to_string(nobody.port());
    EXPECT_NO_THROW((void)varve::open("postgres://varve@" + mute.address() + "," + refusing + "," + server.address() +
                                      "/postgres?timeout_ms=3000"));
    expect_refused("postgres://varve@" + mute.address() + "," + refusing + "/postgres?timeout_ms=400",
                   ErrorKind::unavailable, "refused");
}

TEST(PostgresServers, whose_password_is_wrong_are_told_so_without_it) {
    Server& server = shared_server();
    server.client().run("CREATE ROLE guarded LOGIN PASSWORD 'right'");
    // The rule for this role goes before those for everybody.
    ForeignClient client = server.client();
    const std::string file = client.run("SHOW hba_file").front();
    client.run(
        "CREATE TABLE hba (n serial, line text); COPY hba (line) FROM '" + file +
        "'; CREATE TABLE rules AS SELECT 0 AS n, 'host all guarded 127.0.0.1/32 scram-sha-256' AS line UNION ALL "
        "SELECT n, line FROM hba WHERE line NOT LIKE '#%'; COPY (SELECT line FROM rules ORDER BY n) TO '" +
        file + "'; SELECT pg_reload_conf()");
    // Until the server has read it.
    const std::string address = server.address() + "/postgres";
    const auto opens = [&](const std::string& user) {
        try {
            return varve::open("postgres://" + user + "@" + address) != nullptr;
        } catch (const ConfigError&) {
            return false;
        }
    };
    while (opens("guarded")) std::this_thread::yield();
    EXPECT_TRUE(opens("guarded:right"));
    for (const std::string secret : {"s3cr3t-of-mine", ""}) {
        const Error error = error_of([&] { (void)varve::open("postgres://guarded:" + secret + "@" + address); });
        EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
        EXPECT_NE(std::string{error.what()}.find("PGPASSFILE"), std::string::npos) << error.what();
        EXPECT_TRUE(secret.empty() || std::string{error.what()}.find(secret) == std::string::npos) << error.what();
    }
    // Not written as a URI wants it.
    for (const std::string secret : {"s3cr3t%zz", "s3/cr3t", "s3@cr3t", "s3cr3t%"}) {
        const Error error = error_of([&] { (void)varve::open("postgres://guarded:" + secret + "@" + address); });
        EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
        EXPECT_NE(std::string{error.what()}.find("%40 for @"), std::string::npos) << error.what();
        EXPECT_EQ(std::string{error.what()}.find("cr3t"), std::string::npos) << error.what();
    }
    // A '?' makes options of its rest.
    for (const std::string secret : {"s3?cr3t=x", "s3?user=cr3t", "s3?cr3t", "s3?a=1&cr3t=x", "s3?user=x&user=cr3t"}) {
        const Error error = error_of([&] { (void)varve::open("postgres://guarded:" + secret + "@" + address); });
        EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
        EXPECT_EQ(std::string{error.what()}.find("s3"), std::string::npos) << error.what();
        EXPECT_EQ(std::string{error.what()}.find("cr3t"), std::string::npos) << error.what();
    }
    EXPECT_EQ(
        std::string{error_of([&] { (void)varve::open("postgres://guarded:s3cr3t@" + address + "?schema=B"); }).what()}
            .find("s3cr3t"),
        std::string::npos);
}

TEST(PostgresServers, that_do_not_flush_are_refused_unless_that_is_meant) {
    Server server{{"fsync=off"}};
    expect_refused(server.url(), ErrorKind::config, "fsync=off");
    const auto store = varve::open(server.url() + "?fsync=off");
    store->ensure_table(things);
    EXPECT_TRUE(is_done(put(*store, "a")));
}

TEST(PostgresSessions, that_were_ended_while_nobody_used_them_are_made_anew) {
    const std::string url = fresh_url(shared_server());
    const auto store = varve::open(url);
    store->ensure_table(things);
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(is_done(put(*store, std::to_string(i))));
        shared_server().client().run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'varve'");
        EXPECT_EQ(store->scan({.table = "things"}).records.size(), static_cast<std::size_t>(i) + 1);
    }
}

TEST(PostgresSessions, that_are_ended_while_they_wait_have_written_nothing_and_are_made_anew) {
    const std::string url = fresh_url(shared_server());
    const auto store = varve::open(url);
    store->ensure_table(things);
    ForeignClient holder = shared_server().client();
    holder.run("BEGIN; SELECT name FROM " + url.substr(url.rfind('=') + 1) + ".varve_tables FOR UPDATE");
    WriteAnswer answer;
    std::thread writer{[&] { answer = put(*store, "a"); }};
    ForeignClient killer = shared_server().client();
    for (int i = 0; i < 2; ++i) {
        while (killer
                   .run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'varve' AND "
                        "wait_event_type = 'Lock'")
                   .empty()) {
            std::this_thread::yield();
        }
    }
    holder.run("ROLLBACK");
    writer.join();
    EXPECT_TRUE(is_done(answer)) << said(answer);
    EXPECT_EQ(store->last_change("things"), 1U);
}

TEST(PostgresSessions, of_one_store_are_bounded_and_who_waits_too_long_for_one_is_told) {
    const std::string url = fresh_url(shared_server(), "&connections=1&lock_timeout_ms=100");
    const auto store = varve::open(url);
    store->ensure_table(things);
    const std::string schema = url.substr(url.find("schema=") + 7, url.find('&') - url.find("schema=") - 7);
    ForeignClient holder = shared_server().client();
    holder.run("BEGIN; LOCK TABLE " + schema + ".things IN ACCESS EXCLUSIVE MODE");
    std::vector<std::thread> readers;
    std::atomic<int> busy = 0;
    for (int i = 0; i < 4; ++i) {
        readers.emplace_back([&] {
            const Error error = error_of([&] { (void)store->scan({.table = "things"}); });
            busy += error.kind() == ErrorKind::busy ? 1 : 0;
        });
    }
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(busy, 4);
    holder.run("ROLLBACK");
    EXPECT_EQ(store->scan({.table = "things"}).records.size(), 0U);
}

TEST(PostgresSessions, that_the_server_has_no_more_of_are_missed_by_those_only_who_need_one) {
    Server& server = shared_server();
    server.client().run("CREATE ROLE few LOGIN CONNECTION LIMIT 2; GRANT CREATE ON DATABASE postgres TO few");
    const auto store = varve::open(server.url("postgres", "few") + "?schema=few&notify=off&lock_timeout_ms=600000");
    store->ensure_table(things);
    ForeignClient holder = server.client();
    holder.run("BEGIN; LOCK TABLE few.things IN ACCESS EXCLUSIVE MODE");
    std::vector<std::thread> readers;
    std::atomic<int> refused = 0;
    std::atomic<int> done = 0;
    for (int i = 0; i < 4; ++i) {
        readers.emplace_back([&] {
            try {
                (void)store->scan({.table = "things"});
                ++done;
            } catch (const Error& error) {
                EXPECT_EQ(error.kind(), ErrorKind::unavailable) << error.what();
                EXPECT_NE(std::string{error.what()}.find("max_connections"), std::string::npos) << error.what();
                ++refused;
            }
        });
    }
    while (refused < 2) std::this_thread::yield();
    holder.run("ROLLBACK");
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(done, 2);
    EXPECT_EQ(refused, 2);
}

TEST(PostgresServers, that_are_killed_and_started_again_have_what_they_acknowledged) {
    Server server;
    const auto store = varve::open(server.url());
    store->ensure_table(things);
    for (const int signal : {SIGKILL, SIGQUIT, SIGINT}) {
        std::atomic<int> acknowledged = 0;
        std::atomic<bool> is_down = false;
        const std::string name = std::to_string(signal) + ".";
        std::vector<std::thread> writers;
        for (int t = 0; t < 4; ++t) {
            writers.emplace_back([&, t] {
                for (int i = 0; !is_down; ++i) {
                    const WriteAnswer answer = put(*store, name + std::to_string(t) + "." + std::to_string(i));
                    if (is_done(answer)) {
                        ++acknowledged;
                        continue;
                    }
                    const auto& failure = std::get<Failure>(answer);
                    EXPECT_TRUE(failure.in_doubt || failure.kind == ErrorKind::unavailable) << failure.message;
                    return;
                }
            });
        }
        while (acknowledged < 100) std::this_thread::yield();
        server.stop(signal);
        is_down = true;
        for (std::thread& writer : writers) writer.join();
        // A session may outlive a server that was killed for a moment, and commit once more: then it counts.
        const bool is_done_by_an_orphan = is_done(put(*store, name + "orphan"));
        EXPECT_FALSE(is_done_by_an_orphan && signal != SIGKILL);
        acknowledged += is_done_by_an_orphan ? 1 : 0;
        server.start_again();
        int found = 0;
        store::Scan scan{.table = "things"};
        do {
            store::Page page = store->scan(scan);
            for (const store::Record& record : page.records) found += record.key.partition.starts_with(name) ? 1 : 0;
            scan.next = std::move(page.next);
        } while (scan.next);
        EXPECT_GE(found, acknowledged);
        EXPECT_LE(found, acknowledged + 4) << "those that were on their way";
    }
}

TEST(PostgresServers, that_fall_back_to_a_standby_are_not_written_to_before_it_is_the_primary) {
    Server primary{{"wal_level=replica", "max_wal_senders=4"}};
    const auto before = varve::open(primary.url());
    before->ensure_table(things);
    Server standby{primary};
    ASSERT_TRUE(is_done(put(*before, "a")));
    expect_refused(standby.url(), ErrorKind::read_only, "standby");
    const std::string both =
        "postgres://varve@" + standby.address() + "," + primary.address() + "/postgres?target_session_attrs=read-write";
    const auto store = varve::open(both);
    ASSERT_TRUE(is_done(put(*store, "b")));
    const auto first_is_a_standby =
        varve::open("postgres://varve@" + standby.address() + "," + primary.address() + "/postgres");
    ASSERT_TRUE(is_done(put(*first_is_a_standby, "b")));
    // What the primary has answered must have arrived before it goes.
    ForeignClient client = primary.client();
    while (client.run("SELECT pg_current_wal_lsn() <= replay_lsn FROM pg_stat_replication") !=
           std::vector<std::string>{"t"}) {
        std::this_thread::yield();
    }
    primary.stop(SIGKILL);
    // Sessions may outlive it for a moment.
    while (is_done(put(*store, "c"))) std::this_thread::yield();
    standby.promote();
    EXPECT_TRUE(is_done(put(*store, "d"))) << said(put(*store, "d"));
    EXPECT_GE(store->scan({.table = "things"}).records.size(), 3U);
}

TEST(PostgresSessions, never_have_two_statements_of_one_name_whichever_of_them_a_pooler_gives) {
    const Options options{.connection = shared_server().url()};
    const std::vector<std::string> statements{"SELECT 1", "SELECT 2", "SELECT 3"};
    std::set<std::string> named;
    for (std::size_t first = 0; first < statements.size(); ++first) {
        Connection connection{options};
        for (std::size_t i = 0; i < statements.size(); ++i)
            (void)connection.read(statements[(first + i) % statements.size()]);
        const Result all =
            connection.read("SELECT name, statement FROM pg_prepared_statements WHERE statement ~ '[123]$'");
        EXPECT_EQ(all.rows(), 3);
        for (int row = 0; row < all.rows(); ++row)
            named.insert(std::string{all.text(row, 0)} + " is " + std::string{all.text(row, 1)});
    }
    EXPECT_EQ(named.size(), statements.size()) << ::testing::PrintToString(named);
}

TEST(PostgresSessions, that_have_lost_their_settings_write_nothing) {
    const std::string url = fresh_url(shared_server());
    varve::open(url)->ensure_table(things);
    const std::string schema = url.substr(url.rfind('=') + 1);
    const Options options{.connection = shared_server().url()};
    const std::string lock = lock_sql(quoted_name(schema), false);
    for (const std::string lost :
         {"SET default_transaction_isolation = 'repeatable read'", "SET synchronous_commit = off"}) {
        Connection connection{options};
        Array names{Array::Type::text};
        names.add("things");
        const Parameters parameters = Parameters{}.add(std::move(names));
        EXPECT_EQ(connection.read(lock, parameters).text(0, 0), "things");
        (void)connection.read(lost);
        const Error error = error_of([&] { (void)connection.read(lock, parameters); });
        EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
        EXPECT_NE(std::string{error.what()}.find("session pooling"), std::string::npos) << error.what();
    }
}

TEST(PostgresErrors, are_the_table_of_the_readme) {
    std::ifstream file{VARVE_POSTGRES_README};
    std::vector<std::string> documented;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("| `") && line.find("SQLSTATE") == std::string::npos && line.size() > 5 &&
            (std::isdigit(static_cast<unsigned char>(line[3])) != 0 || line.starts_with("| `XX")))
            documented.push_back(line);
    }
    std::vector<std::string> table;
    for (const ErrorRule& rule : error_rules()) {
        if (rule.code.empty()) continue;
        std::string line = "| `" + std::string{rule.code} + "` | `" + to_string(rule.kind) + "` | ";
        line += (rule.repeated ? "the store, a few times" : "") + std::string{rule.repeated ? " | " : "| "};
        line += std::string{rule.advice} + (rule.advice.empty() ? "|" : " |");
        table.push_back(line);
    }
    EXPECT_EQ(documented, table);
}

}  // namespace
}  // namespace varve::postgres
