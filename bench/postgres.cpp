#include "account.h"
#include "figures.h"
#include "own_accounts.h"
#include "raw_postgres.h"
#include "streams.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>

namespace bench {
namespace {

using varve::postgres::ForeignClient;
using varve::transactions::Strategy;

/// A server as in production, and stores on it that nobody has used yet.
class Stores {
  public:
    /// Starts when it is asked for.
    const varve::postgres::Server& server() {
        if (!server_)
            server_ = std::make_unique<varve::postgres::Server>(
                std::vector<std::string>{"shared_buffers=256MB", "max_wal_size=4GB", "max_connections=200"});
        return *server_;
    }
    /// The schema of the last one is `schema()`.
    std::string fresh_url() { return server().url() + "?schema=run" + std::to_string(++runs_); }
    std::string schema() const { return "run" + std::to_string(runs_); }

  private:
    std::unique_ptr<varve::postgres::Server> server_;
    int runs_ = 0;
};

double commands(const Plan& plan, Stores& stores, unsigned threads) {
    varve::Application bank{varve::open(stores.fresh_url())};
    return rate_when_warm(plan, threads, [&](unsigned thread, long i) {
        return bank.execute<Account>(own_account(thread, i), Deposit{1}) ? 1 : 0;
    });
}

double transfers(const Plan& plan, Stores& stores, unsigned threads, Strategy strategy) {
    varve::Application bank{varve::open(stores.fresh_url()), {.transactions = {.strategy = strategy}}};
    return rate_when_warm(plan, threads, [&](unsigned thread, long i) {
        const auto outcome = bank.transact([&](varve::Transaction& tx) {
            tx.execute<Account>(own_account(thread, i) + ".from", Withdraw{1});
            tx.execute<Account>(own_account(thread, i) + ".to", Deposit{1});
        });
        return outcome ? 1 : 0;
    });
}

/// A table of slots that is as bare as it can be, with the index that a list of changes needs.
void make_raw_table(Stores& stores) {
    stores.server().client().run(
        "CREATE TABLE IF NOT EXISTS raw_slots (id text COLLATE \"C\", version bigint, item jsonb, position bigserial, "
        "PRIMARY KEY (id, version)); CREATE UNIQUE INDEX IF NOT EXISTS raw_position ON raw_slots (position)");
}

std::string insert(int rows) {
    std::string sql = "\\set v :v + 1\nINSERT INTO raw_slots (id, version, item) VALUES ";
    for (int row = 0; row < rows; ++row) {
        sql += std::string{row == 0 ? "" : ", "} + "('account-' || :run::text || '.' || :client_id::text || '." +
               std::to_string(row) + "', :v::bigint, '{\"state\": \"committed\", \"events\": \"" +
               std::string(slot_bytes, 'x') + "\"}')";
    }
    return sql + ";\n";
}

constexpr std::string_view message_db_append =
    "SELECT message_store.write_message(gen_random_uuid()::varchar, 'account-' || :run::text || '.' || "
    ":client_id::text, 'Deposited', '{\"cents\": 1}'::jsonb, NULL, :v::bigint);\n\\set v :v + 1\n";

void add_writes(const Plan& plan, Stores& stores, std::vector<Figure>& figures) {
    std::optional<Pgbench> pgbench;
    const auto raw = [&]() -> Pgbench& {
        if (!pgbench) {
            make_raw_table(stores);
            pgbench.emplace(plan, stores.server());
        }
        return *pgbench;
    };
    const auto add = [&](Figure figure, const std::function<double()>& ours, const std::function<double()>& other) {
        if (!plan.wants(figure.name)) return;
        measure(figure, ours, other);
        figures.push_back(std::move(figure));
    };
    for (const unsigned threads : {1u, 16u, 128u}) {
        const std::string at = "_" + std::to_string(threads) + "_in_flight";
        add(
            {.name = "postgres_commands" + at, .unit = "commands/s", .raw = "pgbench, one row each, as many clients"},
            [&, threads] { return commands(plan, stores, threads); },
            [&, threads] { return raw().rate(threads, insert(1)); });
    }
    for (const unsigned threads : {1u, 16u}) {
        for (const auto& [name, strategy] :
             {std::pair{"natively", Strategy::automatic}, std::pair{"by_protocol", Strategy::protocol}}) {
            add(
                {.name = "postgres_transfers_" + std::string{name} + "_" + std::to_string(threads) + "_in_flight",
                 .unit = "transfers/s",
                 .raw = "pgbench, two rows each, as many clients"},
                [&, threads, strategy = strategy] { return transfers(plan, stores, threads, strategy); },
                [&, threads] { return raw().rate(threads, insert(2)); });
        }
    }
}

/// None if npm is not there.
void add_message_db(const Plan& plan, Stores& stores, std::vector<Figure>& figures) {
    constexpr std::array<unsigned, 3> all_threads{1, 16, 128};
    const auto name = [](unsigned threads) {
        return "postgres_commands_beside_message_db_" + std::to_string(threads) + "_in_flight";
    };
    if (std::ranges::none_of(all_threads, [&](unsigned threads) { return plan.wants(name(threads)); })) return;
    const std::string install = "'" VARVE_MESSAGE_DB_INSTALL "' '" VARVE_MESSAGE_DB "' ";
    if (std::system((install + std::to_string(stores.server().port())).c_str()) != 0) {
        std::fprintf(stderr, "message-db could not be installed: npm and psql are needed\n");
        return;
    }
    stores.server().client().run("ALTER DATABASE message_store SET search_path = message_store, public");
    Pgbench raw{plan, stores.server(), "message_store"};
    for (const unsigned threads : all_threads) {
        Figure figure{.name = name(threads),
                      .unit = "commands/s",
                      .raw = "message-db's write_message with an expected version, by pgbench"};
        if (!plan.wants(figure.name)) continue;
        measure(
            figure, [&] { return commands(plan, stores, threads); },
            [&] { return raw.rate(threads, std::string{message_db_append}); });
        figures.push_back(std::move(figure));
    }
}

void add_reads(const Plan& plan, Stores& stores, std::vector<Figure>& figures) {
    for (const int length : {10, 10'000}) {
        Figure figure{.name = "postgres_load_" + std::to_string(length) + "_events",
                      .unit = "events/s",
                      .raw = "rows of the same stream by SELECT, not decoded"};
        if (!plan.wants(figure.name)) continue;
        varve::Application bank{varve::open(stores.fresh_url()), {.sweep = false, .cache_bytes_max = 0}};
        write_streams(bank.store(), "account", 0, 1, length);
        ForeignClient raw = stores.server().client();
        const std::string select = "SELECT version, item FROM " + stores.schema() +
                                   ".events WHERE \"aggregateId\" = 'account-0' ORDER BY version";
        measure(
            figure,
            [&] {
                return rate(plan, 1, [&](unsigned, long) { return static_cast<int>(bank.load<Account>("0").version); });
            },
            [&] { return rate(plan, 1, [&](unsigned, long) { return static_cast<int>(raw.run(select).size()); }); });
        figures.push_back(std::move(figure));
    }
    for (const int slots : {10'000, 100'000}) {
        if (!plan.wants("postgres_catch_up_over_" + std::to_string(slots) + "_events")) continue;
        figures.push_back(catch_up_at(plan, "postgres", slots, stores.fresh_url()));
    }
}

/// Commands on streams that are there, and a follower's next page, in a store that holds so many slots.
void add_sizes(const Plan& plan, Stores& stores, std::vector<Figure>& figures) {
    for (const long slots : {1'000'000L, 10'000'000L}) {
        Figure figure{.name = "postgres_commands_on_" + std::to_string(slots) + "_slots",
                      .unit = "commands/s",
                      .raw = "the same on 10,000 slots"};
        // The larger one takes minutes to fill, and some 5 GB.
        if (!plan.wants(figure.name) || (slots > 1'000'000 && plan.filter != figure.name)) continue;
        const auto filled = [&](long count) {
            auto bank = std::make_unique<varve::Application>(
                varve::open(stores.fresh_url()), varve::ApplicationOptions{.sweep = false, .cache_bytes_max = 0});
            write_streams(bank->store(), "account", 0, 1, 1);
            const std::string table = stores.schema() + ".events";
            ForeignClient client = stores.server().client();
            client.run(
                "INSERT INTO " + table +
                " (\"aggregateId\", version, item, position) SELECT 'account-' || (n / 100), n % 100 + 1, (SELECT "
                "item FROM " +
                table + " WHERE position = 1), n + 2 FROM generate_series(100::bigint, " + std::to_string(count) +
                ") n");
            client.run("VACUUM ANALYZE " + table);
            return bank;
        };
        const auto few = filled(10'000);
        const auto many = filled(slots);
        const auto deposits = [&](varve::Application& bank, long count) {
            // Another account each time; its stream is read.
            return rate(plan, 1, [&](unsigned, long) {
                static std::uint64_t drawn = 1;
                drawn = drawn * 6364136223846793005 + 1442695040888963407;
                const auto id = 1 + (drawn >> 33) % static_cast<std::uint64_t>(count / 100 - 1);
                return bank.execute<Account>(std::to_string(id), Deposit{1}) ? 1 : 0;
            });
        };
        measure(
            figure, [&] { return deposits(*many, slots); }, [&] { return deposits(*few, 10'000); });
        figures.push_back(std::move(figure));
    }
}

}  // namespace

std::vector<Figure> postgres(const Plan& plan) {
    std::vector<Figure> figures;
    try {
        Stores stores;
        add_writes(plan, stores, figures);
        add_message_db(plan, stores, figures);
        add_reads(plan, stores, figures);
        add_sizes(plan, stores, figures);
    } catch (const varve::postgres::ServerMissing& missing) {
        std::fprintf(stderr, "%s\n", missing.what());
    }
    return figures;
}

}  // namespace bench
