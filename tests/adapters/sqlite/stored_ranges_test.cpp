#include "scratch_file.h"
#include "support/stored_mutations.h"

#include <varve/core/error.h>
#include <varve/events/event_store.h>
#include <varve/store/item_store.h>
#include <varve/varve.h>

namespace varve::sqlite {
namespace {

TEST(StoredSlots, that_make_no_sense_are_named_when_their_stream_is_read) {
    const ScratchFile file;
    const std::shared_ptr<store::ItemStore> store = varve::open(file.url() + "?synchronous=normal");
    Application application{store, {.sweep = false}};
    for (const MutatedSlot& one : mutated_slots()) {
        if (!one.senseless || one.key.partition != "account-a") continue;
        ASSERT_TRUE(std::holds_alternative<store::Applied>(write_one(*store, {one.key, store::Put{one.item}, {}})));
        try {
            (void)application.events().load(one.key.partition);
            // Effects are nobody's business who loads events, nor are those of a transaction's participants.
            (void)application.events().effects(one.key.partition, 1);
            // What a pending slot holds is read when it is committed.
            EXPECT_TRUE(one.what.starts_with("pending, ")) << one.what;
        } catch (const CorruptionError& error) {
            EXPECT_NE(std::string{error.what()}.find("account-a"), std::string::npos) << error.what();
        }
    }
}

}  // namespace
}  // namespace varve::sqlite
