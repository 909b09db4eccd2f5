#include "account.h"
#include "events/stored_slot.h"
#include "figures.h"
#include "raw_sqlite.h"

#include <varve/store/item_store.h>

#include <algorithm>

namespace bench {

std::vector<Figure> loads(const Plan& plan) {
    std::vector<Figure> figures;
    for (const int length : {10, 10'000}) {
        Figure figure{.name = "sqlite_load_" + std::to_string(length) + "_events",
                      .unit = "events/s",
                      .raw = "rows of the same stream by SELECT, not decoded"};
        if (!plan.wants(figure.name)) continue;
        const auto file = plan.folder / (figure.name + ".db");
        // Nothing is remembered: every load reads and folds the whole stream.
        varve::Application bank{varve::open("sqlite:" + file.string() + "?synchronous=normal"),
                                {.sweep = false, .cache_bytes_max = 0}};
        constexpr int batch = 100;
        for (int first = 1; first <= length; first += batch) {
            std::vector<varve::store::Write> writes;
            for (int version = first; version < std::min(first + batch, length + 1); ++version) {
                const varve::transactions::Committed slot{
                    .write_id = std::to_string(version),
                    .payload = varve::events::encode_payload({varve::encode_event(Deposited{version})}, {}, {})};
                writes.push_back(varve::transactions::commit_free_slot(
                    varve::transactions::slot_key("account-a", version), 0, slot));
            }
            static_cast<void>(bank.store().write(writes));
        }
        RawSqlite raw{file};
        measure(
            figure,
            [&] {
                return rate(plan, 1, [&](unsigned, long) { return static_cast<int>(bank.load<Account>("a").version); });
            },
            [&] { return rate(plan, 1, [&](unsigned, long) { return raw.select("account-a"); }); });
        figures.push_back(std::move(figure));
    }
    return figures;
}

}  // namespace bench
