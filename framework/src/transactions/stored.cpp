#include "transactions/row.h"
#include "transactions/slot.h"

#include <varve/transactions/stored.h>

namespace varve::transactions {

Stored look_at_slot(const store::Key& key, const store::Item& item) {
    const Slot slot = decode_slot(key, item);
    if (std::holds_alternative<Pending>(slot)) return Stored::pending;
    if (std::holds_alternative<Committed>(slot)) return Stored::committed;
    return std::holds_alternative<Part>(slot) ? Stored::part : Stored::free;
}

Stored look_at_row(const store::Key& key, const store::Item& item) {
    const Row row = decode_row(key, item);
    if (row.intent) return Stored::pending;
    return row.image.data ? Stored::committed : Stored::free;
}

}  // namespace varve::transactions
