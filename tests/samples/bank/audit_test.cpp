#include "balances.h"
#include "check.h"
#include "scratch_bank.h"
#include "support/stored_mutations.h"

#include <varve/store/item_store.h>
#include <varve/testing/manual_world.h>
#include <varve/testing/quiet_log.h>

#include <algorithm>

#include <gtest/gtest.h>

namespace bank {
namespace {

TEST(TheAudit, finds_every_slot_that_makes_no_sense) {
    const ScratchBank scratch;
    varve::testing::QuietLog quiet;
    const std::shared_ptr<varve::store::ItemStore> store = varve::open(scratch.url());
    varve::testing::ManualWorld world;
    varve::Application bank{store, world.options({.runtime = {.log = quiet}})};
    bank.project<Account>(ProjectBalance{});
    for (const varve::MutatedSlot& one : varve::mutated_slots()) {
        if (!one.senseless) continue;
        const varve::store::Write damage{one.key, varve::store::Put{one.item}, {}};
        ASSERT_TRUE(std::holds_alternative<varve::store::Applied>(store->write({&damage, 1}).front()));
        const Audit found = audit(bank, std::chrono::seconds{1});
        const auto readable = std::ranges::find(found.rules, "everything readable", &Audit::Rule::name);
        ASSERT_NE(readable, found.rules.end());
        // What a pending slot holds is not read; that it is pending is told.
        const bool pending = one.what.starts_with("pending, ");
        EXPECT_FALSE(pending ? found.holds() : readable->holds()) << one.what;
        const varve::store::Write away{one.key, varve::store::Erase{}, {}};
        ASSERT_TRUE(std::holds_alternative<varve::store::Applied>(store->write({&away, 1}).front()));
    }
}

}  // namespace
}  // namespace bank
