#include "account.h"
#include "figures.h"
#include "raw_sqlite.h"
#include "streams.h"

#include <varve/store/item_store.h>

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
        write_streams(bank.store(), "account", 0, 1, length);
        RawSqlite raw{file};
        measure(
            figure,
            [&] {
                return rate(plan, 1, [&](unsigned, long) { return static_cast<int>(bank.load<Account>("0").version); });
            },
            [&] { return rate(plan, 1, [&](unsigned, long) { return raw.select("account-0"); }); });
        figures.push_back(std::move(figure));
    }
    return figures;
}

}  // namespace bench
