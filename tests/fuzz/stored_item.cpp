#include "events/stored_slot.h"
#include "require.h"
#include "transactions/resolver.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>
#include <varve/store/item_text.h>

#include <cstdint>
#include <string_view>

// Whatever lies in a store, an item is understood as a slot and as a row, or it is refused as corrupt.

namespace {

void read_as_slot(const varve::store::Item& item) {
    const varve::store::Key key = varve::transactions::slot_key("account-a", 1);
    const varve::transactions::Slot slot = varve::transactions::decode_slot(key, item);
    if (const auto* committed = std::get_if<varve::transactions::Committed>(&slot)) {
        static_cast<void>(varve::events::decode_payload("account-a", 1, *committed));
        static_cast<void>(varve::events::decode_effects("account-a", 1, *committed));
    }
    static_cast<void>(varve::transactions::claim_on(key, item));
}

void read_as_row(const varve::store::Item& item) {
    const varve::store::Key key{"balances", "a", {}};
    const varve::transactions::Row row = varve::transactions::decode_row(key, item);
    require(varve::transactions::claim_on(key, item).has_value() == row.intent.has_value(), "a claim is an intent");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    try {
        const varve::store::Item item = varve::store::parse_item(text);
        for (const auto bytes : {varve::store::BytesText::base64, varve::store::BytesText::hex}) {
            require(varve::store::parse_item(varve::store::item_text(item, bytes)) == item,
                    "an item is read as it was written");
        }
        for (const auto read : {read_as_slot, read_as_row}) {
            try {
                read(item);
            } catch (const varve::CorruptionError& error) {
                require(!std::string_view{error.what()}.empty(), "a refusal says why");
            }
        }
    } catch (const varve::CorruptionError& error) {
        require(!std::string_view{error.what()}.empty(), "a refusal says why");
    }
    return 0;
}
