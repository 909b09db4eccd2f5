#include "account.h"
#include "figures.h"
#include "raw_sqlite.h"
#include "transactions/slot.h"

#include <varve/store/item_store.h>

namespace bench {
namespace {

using varve::transactions::Strategy;

/// A payroll of n - 1 legs: one account pays, the others receive; no two threads share an account.
double transfer(const Plan& plan, const std::string& url, Strategy strategy, int n, unsigned threads) {
    varve::Application bank{varve::open(url), {.transactions = {.strategy = strategy}}};
    return rate(plan, threads, [&](unsigned thread, long i) {
        const auto outcome = bank.transact([&](varve::Transaction& tx) {
            const std::string prefix = std::to_string(thread) + "." + std::to_string(i % 100) + ".";
            tx.execute<Account>(prefix + "0", Withdraw{n - 1});
            for (int leg = 1; leg < n; ++leg) tx.execute<Account>(prefix + std::to_string(leg), Deposit{1});
        });
        return outcome ? 1 : 0;
    });
}

double raw_puts(const Plan& plan, int n) {
    const auto store = varve::open("memory:");
    store->ensure_table(varve::transactions::events_table());
    return rate(plan, 1, [&](unsigned, long i) {
        std::vector<varve::store::Write> writes;
        for (int leg = 0; leg < n; ++leg) {
            writes.push_back({varve::transactions::slot_key("account-" + std::to_string(leg), i + 1),
                              varve::store::Put{{{"state", "committed"}, {"events", std::string(slot_bytes, 'x')}}},
                              !varve::store::item_exists()});
        }
        return store->write(writes).size() == writes.size() ? 1 : 0;
    });
}

}  // namespace

std::vector<Figure> transfers(const Plan& plan) {
    std::vector<Figure> figures;
    for (const Strategy strategy : {Strategy::protocol, Strategy::automatic}) {
        const std::string how = strategy == Strategy::protocol ? "protocol" : "native";
        for (const int n : {2, 5, 10}) {
            const std::string size = std::to_string(n);
            Figure memory{.name = "memory_transfers_of_" + size + "_" + how + "_1_thread",
                          .unit = "transfers/s",
                          .raw = "batches of " + size + " conditional puts on the same store, without a transaction"};
            if (plan.wants(memory.name)) {
                measure(
                    memory, [&] { return transfer(plan, "memory:", strategy, n, 1); },
                    [&] { return raw_puts(plan, n); });
                figures.push_back(std::move(memory));
            }
            for (const unsigned threads : {1u, 32u}) {
                Figure sqlite{
                    .name = "sqlite_transfers_of_" + size + "_" + how + "_" + std::to_string(threads) + "_threads",
                    .unit = "transfers/s",
                    .raw = "commits of " + size + " rows by one thread, synchronous=FULL"};
                if (!plan.wants(sqlite.name)) continue;
                int file = 0;
                const auto fresh = [&] { return plan.folder / (sqlite.name + std::to_string(++file) + ".db"); };
                measure(
                    sqlite, [&] { return transfer(plan, "sqlite:" + fresh().string(), strategy, n, threads); },
                    [&] {
                        RawSqlite raw{fresh()};
                        return rate(plan, 1, [&](unsigned, long) { return raw.commit(n, slot_bytes), 1; });
                    });
                figures.push_back(std::move(sqlite));
            }
        }
    }
    return figures;
}

}  // namespace bench
