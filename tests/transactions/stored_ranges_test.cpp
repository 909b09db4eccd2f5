#include "support/account.h"
#include "support/coordinator_of.h"
#include "support/stored_mutations.h"
#include "transactions/sweeper.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>
#include <varve/testing/manual_world.h>
#include <varve/testing/quiet_log.h>

#include <gtest/gtest.h>

namespace varve::transactions {
namespace {

using namespace account;

bool names(const CorruptionError& error, const store::Key& key) {
    const std::string message = error.what();
    const std::string version = std::to_string(version_of(key));
    return message.find(key.partition) != std::string::npos &&
           (message.find("/" + version) != std::string::npos ||
            message.find("version " + version) != std::string::npos);
}

void read(const store::Key& key, const store::Item& item) {
    const Slot slot = decode_slot(key, item);
    const store::Item* payload = nullptr;
    Committed content;
    if (const auto* committed = std::get_if<Committed>(&slot)) {
        content = *committed;
        payload = &content.payload;
    } else if (const auto* pending = std::get_if<Pending>(&slot); pending != nullptr && !pending->reserved) {
        content = {.write_id = pending->claim.tx, .payload = pending->payload};
        payload = &content.payload;
    }
    if (payload == nullptr) return;
    static_cast<void>(events::decode_payload(key.partition, version_of(key), content));
    static_cast<void>(events::decode_effects(key.partition, version_of(key), content));
}

TEST(StoredSlots, that_make_no_sense_are_named_and_nothing_is_guessed) {
    std::size_t found = 0;
    for (const MutatedSlot& one : mutated_slots()) {
        try {
            read(one.key, one.item);
            EXPECT_FALSE(one.senseless) << one.what;
        } catch (const CorruptionError& error) {
            ++found;
            EXPECT_TRUE(names(error, one.key)) << one.what << ": " << error.what();
        }
    }
    EXPECT_GT(found, 150U);
}

TEST(StoredSlots, that_make_no_sense_stop_the_command_that_meets_them_and_no_sweeper) {
    for (const MutatedSlot& one : mutated_slots()) {
        const std::shared_ptr<store::ItemStore> store = open("memory:");
        testing::ManualWorld world;
        testing::QuietLog quiet;
        Application bank{store, world.options({.runtime = {.log = quiet}})};
        bank.project<Account>(ProjectBalance{});
        for (const char* id : {"b", "c"}) (void)bank.execute<Account>(id, Deposit{1});
        const store::Write damage{one.key, store::Put{one.item}, {}};
        ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&damage, 1}).front()));
        try {
            (void)bank.execute<Account>("a", Deposit{1});
        } catch (const CorruptionError&) {
        } catch (const ConflictError&) {  // a claim that makes sense, by somebody who seems to be alive
        } catch (const std::exception& error) {
            ADD_FAILURE() << one.what << ": " << error.what();
        }
        constexpr ScanOptions at_once{.page_interval = Duration{0}, .pause = Duration{0}};
        Sweeper sweeper{coordinator_of(bank), {"balances"}, at_once};
        for (int i = 0; i < 3; ++i) EXPECT_NO_THROW((void)sweeper.sweep()) << one.what;
    }
}

}  // namespace
}  // namespace varve::transactions
