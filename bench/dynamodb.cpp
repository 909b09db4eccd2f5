#include "account.h"
#include "adapters/dynamodb/fault_proxy.h"
#include "adapters/dynamodb/local_server.h"
#include "figures.h"
#include "own_accounts.h"
#include "raw_dynamodb.h"
#include "transactions/slot.h"

#include <varve/store/item_store.h>

#include <cstdio>
#include <deque>
#include <memory>

#include <sys/resource.h>

namespace bench {
namespace {

using varve::dynamodb::FaultProxy;
using varve::dynamodb::LocalServer;

constexpr std::chrono::milliseconds round_trip{5};

/// A server in memory, and stores on it that nobody has used yet.
class Server {
  public:
    explicit Server(std::chrono::milliseconds round_trip = {}) : server_(LocalServer::Kind::dynoxide) {
        if (round_trip.count() > 0)
            proxy_ = std::make_unique<FaultProxy>(server_.port(), FaultProxy::Options{.round_trip = round_trip});
    }

    std::string address() const { return proxy_ ? proxy_->address() : server_.address(); }
    std::shared_ptr<varve::store::ItemStore> fresh() {
        last_ = "run" + std::to_string(++runs_);
        return varve::open("dynamodb://" + address() + "/" + last_ + "?region=eu-west-1");
    }
    /// The name of the events' table in a new store.
    std::string fresh_table() {
        fresh()->ensure_table(varve::transactions::events_table());
        return last_ + ".events";
    }

  private:
    LocalServer server_;
    std::unique_ptr<FaultProxy> proxy_;
    std::string last_;
    int runs_ = 0;
};

/// Each thread waits for one request at a time on a connection of its own.
double raw_puts(const Plan& plan, Server& server, unsigned in_flight) {
    const std::string table = server.fresh_table();
    std::deque<RawDynamoDb> raw;
    for (unsigned t = 0; t < in_flight; ++t) raw.emplace_back(server.address(), table);
    return rate(plan, in_flight, [&](unsigned thread, long i) {
        raw[thread].put("account-" + own_account(thread, i), 1 + i / accounts_each, slot_bytes);
        return 1;
    });
}

double execute(const Plan& plan, Server& server, unsigned in_flight) {
    varve::Application bank{server.fresh()};
    const auto deposit = [&](unsigned thread, long i) {
        return bank.execute<Account>(own_account(thread, i), Deposit{1}) ? 1 : 0;
    };
    return rate_when_warm(plan, in_flight, deposit);
}

/// Of one account to n - 1 others; no two threads share an account.
double transfer(const Plan& plan, Server& server, int n, unsigned in_flight) {
    varve::Application bank{server.fresh()};
    const auto pay = [&](unsigned thread, long i) {
        const auto outcome = bank.transact([&](varve::Transaction& tx) {
            const std::string prefix = own_account(thread, i) + ".";
            tx.execute<Account>(prefix + "0", Withdraw{n - 1});
            for (int leg = 1; leg < n; ++leg) tx.execute<Account>(prefix + std::to_string(leg), Deposit{1});
        });
        return outcome ? 1 : 0;
    };
    return rate_when_warm(plan, in_flight, pay);
}

/// The adapter alone.
double puts(const Plan& plan, Server& server, unsigned in_flight) {
    const auto store = server.fresh();
    store->ensure_table(varve::transactions::events_table());
    return rate(plan, in_flight, [&](unsigned thread, long i) {
        const varve::store::Write write{
            varve::transactions::slot_key("account-" + own_account(thread, i), 1 + i / accounts_each),
            varve::store::Put{{{"state", "committed"}, {"events", std::string(slot_bytes, 'x')}}},
            !varve::store::item_exists()};
        return std::holds_alternative<varve::store::Applied>(store->write({&write, 1}).front()) ? 1 : 0;
    });
}

/// Microseconds of this process's processors that each of the operations takes which `per_second` does.
double cpu_us(const Plan& plan, const std::function<double()>& per_second) {
    const auto used = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        const auto us = [](const timeval& time) {
            return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
        };
        return us(usage.ru_utime) + us(usage.ru_stime);
    };
    const double before = used();
    const double done = per_second() * std::chrono::duration<double>(plan.time).count();
    return (used() - before) / done;
}

class Figures {
  public:
    explicit Figures(const Plan& plan) : plan_(plan) {}

    void add(Figure figure, const std::function<double(Server&)>& ours, const std::function<double(Server&)>& raw,
             std::chrono::milliseconds distance = {}) {
        if (!plan_.wants(figure.name)) return;
        Server server{distance};
        measure(
            figure, [&] { return ours(server); }, [&] { return raw(server); });
        figures.push_back(std::move(figure));
    }

    std::vector<Figure> figures;

  private:
    const Plan& plan_;
};

void add_rates(const Plan& plan, Figures& figures) {
    for (const unsigned in_flight : {1u, 8u, 32u, 128u}) {
        const std::string at = "_" + std::to_string(in_flight) + "_in_flight";
        figures.add(
            {.name = "dynamodb_puts" + at,
             .unit = "puts/s",
             .raw = "conditional puts by a loop over libcurl, as many in flight"},
            [&, in_flight](Server& server) { return puts(plan, server, in_flight); },
            [&, in_flight](Server& server) { return raw_puts(plan, server, in_flight); });
        figures.add(
            {.name = "dynamodb_commands" + at,
             .unit = "commands/s",
             .raw = "conditional puts by a loop over libcurl, as many in flight"},
            [&, in_flight](Server& server) { return execute(plan, server, in_flight); },
            [&, in_flight](Server& server) { return raw_puts(plan, server, in_flight); });
        figures.add(
            {.name = "dynamodb_transfers_of_2" + at,
             .unit = "transfers/s",
             .raw = "three conditional puts by a loop over libcurl, as many in flight"},
            [&, in_flight](Server& server) { return transfer(plan, server, 2, in_flight); },
            [&, in_flight](Server& server) { return raw_puts(plan, server, in_flight) / 3; });
    }
}

/// How long one of something takes that nothing else disturbs, in round trips of the network.
void add_round_trips(const Plan& plan, Figures& figures) {
    const auto round_trips = [](double per_second) {
        return 1 / per_second / std::chrono::duration<double>(round_trip).count();
    };
    const auto raw = [&, round_trips](Server& server) { return round_trips(raw_puts(plan, server, 1)); };
    figures.add(
        {.name = "dynamodb_5_ms_away_command",
         .unit = "round trips",
         .raw = "one conditional put by a loop over libcurl, as far away"},
        [&, round_trips](Server& server) { return round_trips(execute(plan, server, 1)); }, raw, round_trip);
    for (const int n : {2, 5, 10, 25}) {
        figures.add(
            {.name = "dynamodb_5_ms_away_transfer_of_" + std::to_string(n),
             .unit = "round trips",
             .raw = "one conditional put by a loop over libcurl, as far away"},
            [&, round_trips, n](Server& server) { return round_trips(transfer(plan, server, n, 1)); }, raw, round_trip);
    }
}

void add_cpu(const Plan& plan, Figures& figures) {
    for (const unsigned in_flight : {1u, 32u, 128u}) {
        figures.add(
            {.name = "dynamodb_cpu_of_a_put_" + std::to_string(in_flight) + "_in_flight",
             .unit = "us of CPU",
             .raw = "a put by a loop over libcurl, not signed, as many in flight"},
            [&, in_flight](Server& server) { return cpu_us(plan, [&] { return puts(plan, server, in_flight); }); },
            [&, in_flight](Server& server) { return cpu_us(plan, [&] { return raw_puts(plan, server, in_flight); }); });
    }
}

void add_catch_up(const Plan& plan, Figures& figures) {
    if (!plan.wants("dynamodb_catch_up")) return;
    const LocalServer server{LocalServer::Kind::dynoxide};
    figures.figures.push_back(
        catch_up_at(plan, "dynamodb", 10'000, "dynamodb://" + server.address() + "/follow?region=eu-west-1"));
}

}  // namespace

std::vector<Figure> dynamodb(const Plan& plan) {
    Figures figures{plan};
    try {
        add_rates(plan, figures);
        add_round_trips(plan, figures);
        add_cpu(plan, figures);
        add_catch_up(plan, figures);
    } catch (const varve::dynamodb::ServerMissing& missing) {
        std::fprintf(stderr, "no figures of DynamoDB: %s\n", missing.what());
    }
    return std::move(figures.figures);
}

}  // namespace bench
