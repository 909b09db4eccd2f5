#include "account.h"
#include "figures.h"
#include "raw_sqlite.h"
#include "transactions/slot.h"

#include <varve/store/item_store.h>

namespace bench {
namespace {

std::string account(unsigned thread, long i) {
    return std::to_string(thread) + "." + std::to_string(i % 1000);
}

double execute(const Plan& plan, varve::Application& bank, unsigned threads) {
    return rate(plan, threads,
                [&](unsigned thread, long i) { return bank.execute<Account>(account(thread, i), Deposit{1}) ? 1 : 0; });
}

/// The least that a command has to do: one conditional write of one slot.
double raw_puts(const Plan& plan, unsigned threads) {
    const auto store = varve::open("memory:");
    store->ensure_table(varve::transactions::events_table());
    return rate(plan, threads, [&](unsigned thread, long i) {
        const varve::store::Write write{
            varve::transactions::slot_key("account-" + account(thread, i), 1 + i / 1000),
            varve::store::Put{{{"state", "committed"}, {"events", std::string(slot_bytes, 'x')}}},
            !varve::store::item_exists()};
        return std::holds_alternative<varve::store::Applied>(store->write({&write, 1}).front()) ? 1 : 0;
    });
}

}  // namespace

std::vector<Figure> commands(const Plan& plan) {
    std::vector<Figure> figures;
    for (const unsigned threads : {1u, 8u}) {
        Figure figure{.name = "memory_commands_" + std::to_string(threads) + "_threads",
                      .unit = "commands/s",
                      .raw = "conditional puts on the same store, as many threads"};
        if (!plan.wants(figure.name)) continue;
        measure(
            figure,
            [&] {
                varve::Application bank{varve::open("memory:")};
                return execute(plan, bank, threads);
            },
            [&] { return raw_puts(plan, threads); });
        figures.push_back(std::move(figure));
    }
    for (const unsigned threads : {1u, 32u}) {
        const int rows = threads == 1 ? 1 : 100;
        Figure figure{
            .name = "sqlite_durable_commands_" + std::to_string(threads) + "_threads",
            .unit = "commands/s",
            .raw = "rows inserted in commits of " + std::to_string(rows) + " by one thread, synchronous=FULL"};
        if (!plan.wants(figure.name)) continue;
        int file = 0;
        measure(
            figure,
            [&] {
                varve::Application bank{
                    varve::open("sqlite:" + (plan.folder / (figure.name + std::to_string(++file) + ".db")).string())};
                return execute(plan, bank, threads);
            },
            [&] {
                RawSqlite raw{plan.folder / ("raw" + std::to_string(++file) + figure.name + ".db")};
                return rate(plan, 1, [&](unsigned, long) { return raw.commit(rows, slot_bytes), rows; });
            });
        figures.push_back(std::move(figure));
    }
    return figures;
}

}  // namespace bench
