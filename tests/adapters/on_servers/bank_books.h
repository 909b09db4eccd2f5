// The bank's processes are killed while they pay; then the books are checked.

#pragma once

#include "balances.h"
#include "demo.h"
#include "rows/stored_rows.h"
#include "transactions/slot.h"

#include <varve/store/item_store.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace varve::on_servers {

/// `store`: a URL.
inline bank::DemoPlan demo_plan(const std::string& store, std::size_t transfers, std::size_t kills) {
    return {.program = VARVE_BANK,
            .store = store,
            .strategy = "automatic",
            .load = {.workers = 3, .transfers = transfers, .accounts = 20, .theta = 0.5},
            .processes = 3,
            .kills = kills,
            .lease = std::chrono::milliseconds{300}};
}

inline std::vector<store::Record> contents(const std::string& url) {
    const auto store = varve::open(url);
    std::vector<store::Record> records;
    for (const store::TableSchema& table :
         {transactions::events_table(), detail::schema_of(detail::row_table<bank::Balance>)}) {
        store->ensure_table(table);
        store::Scan scan{.table = table.name};
        do {
            store::Page page = store->scan(scan);
            std::ranges::move(page.records, std::back_inserter(records));
            scan.next = std::move(page.next);
        } while (scan.next);
    }
    std::ranges::sort(records, {}, &store::Record::key);
    return records;
}

/// Acknowledged transfers are there, whole; refused ones are not; none is there by half; no cent is lost; versions
/// have no holes; rows are as the events say; no claim is left.
inline void expect_sound(const bank::DemoResult& result, const std::string& store) {
    EXPECT_EQ(result.before, 20 * 1'000'00);
    EXPECT_EQ(result.after, result.before);
    EXPECT_EQ(result.acknowledged.whole, result.acknowledged.total());
    EXPECT_EQ(result.acknowledged.total(), result.figures.committed);
    EXPECT_EQ(result.refused.absent, result.refused.total());
    EXPECT_EQ(result.cut_off.half, 0u);
    for (const bank::Audit::Rule& rule : result.audit.rules) {
        EXPECT_TRUE(rule.holds()) << rule.name << ": " << ::testing::PrintToString(rule.broken);
    }
    const std::vector<store::Record> before = contents(store);
    Application again{varve::open(store), {.sweep = false}};
    EXPECT_TRUE(bank::audit(again).holds());
    EXPECT_EQ(contents(store), before) << "recovering again changes nothing";
    std::cout << result.acknowledged.total() << " acknowledged, " << result.cut_off.total() << " cut off, "
              << result.failures << " processes failed, " << result.seconds << " s\n";
}

}  // namespace varve::on_servers
