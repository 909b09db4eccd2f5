// The bank's processes are killed while they pay, and so is the server; then the books are checked.

#include "../each_server.h"
#include "balances.h"
#include "demo.h"
#include "rows/stored_rows.h"
#include "support/temporary_folder.h"
#include "transactions/slot.h"

#include <varve/store/item_store.h>

#include <algorithm>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

class Kill : public EachServer {
  protected:
    void SetUp() override { server_ = server_or_skip(GetParam(), (folder_.path() / "store").string()); }
    void TearDown() override { server_.reset(); }

    bank::DemoPlan plan(std::size_t kills) const {
        return {.program = VARVE_BANK,
                .store = server_->url("bank"),
                .strategy = "automatic",
                .load = {.workers = 3, .transfers = transfers(), .accounts = 20, .theta = 0.5},
                .processes = 3,
                .kills = kills,
                .lease = std::chrono::milliseconds{300}};
    }
    /// Acknowledged transfers are there, whole; refused ones are not; none is there by half; no cent is lost; versions
    /// have no holes; rows are as the events say; no claim is left.
    void expect_sound(const bank::DemoResult& result) const {
        EXPECT_EQ(result.before, 20 * 1'000'00);
        EXPECT_EQ(result.after, result.before);
        EXPECT_EQ(result.acknowledged.whole, result.acknowledged.total());
        EXPECT_EQ(result.acknowledged.total(), result.figures.committed);
        EXPECT_EQ(result.refused.absent, result.refused.total());
        EXPECT_EQ(result.cut_off.half, 0u);
        for (const bank::Audit::Rule& rule : result.audit.rules) {
            EXPECT_TRUE(rule.holds()) << rule.name << ": " << ::testing::PrintToString(rule.broken);
        }
        const std::vector<store::Record> before = contents();
        Application again{varve::open(server_->url("bank")), {.sweep = false}};
        EXPECT_TRUE(bank::audit(again).holds());
        EXPECT_EQ(contents(), before) << "recovering again changes nothing";
        std::cout << result.acknowledged.total() << " acknowledged, " << result.cut_off.total() << " cut off, "
                  << result.failures << " processes failed, " << result.seconds << " s\n";
    }

    std::vector<store::Record> contents() const {
        const auto store = varve::open(server_->url("bank"));
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

    /// dynalite on files is slow.
    static std::size_t transfers() { return GetParam() == LocalServer::Kind::dynoxide ? 500 : 300; }

    const TemporaryFolder folder_{"kill"};
};

INSTANTIATE_TEST_SUITE_P(Each, Kill, each_kind(), name_of_kind);

TEST_P(Kill, twelve_killed_processes_lose_nothing) {
    const bank::DemoResult result = run_demo(plan(12));
    EXPECT_EQ(result.kills, 12u);
    EXPECT_GT(result.cut_off.total(), 0u);
    expect_sound(result);
}

TEST_P(Kill, a_server_that_is_killed_and_started_again_on_its_files_has_every_acknowledged_transfer) {
    bank::DemoPlan plan = this->plan(0);
    std::size_t killed = 0;
    constexpr std::size_t kills = 3;
    plan.watch = [&](std::size_t ended) {
        if (killed == kills || ended < (killed + 1) * transfers() / (kills + 1)) return;
        ++killed;
        server_->kill_now();
        server_->start_again();
    };
    const bank::DemoResult result = run_demo(plan);
    EXPECT_EQ(killed, kills);
    expect_sound(result);
}

}  // namespace
}  // namespace varve::dynamodb
