#pragma once

#include <varve/store/item_store.h>

namespace varve::transactions {

/// What stands in a stored item, for tools that look at a store from below, as an audit does. Streams and rows are read
/// through EventStore and Rows.
enum class Stored {
    free,       ///< a slot that was fenced and not written; a row that was deleted
    pending,    ///< a transaction has a claim on it; where it has ended, `Application::settle` removes that
    committed,  ///< a slot that holds what it holds for ever; a row that is there
    part,       ///< a slot of a transaction's own, with a piece of its list of participants
};

/// Of an item of the table `events`, and of one of a read model's table. CorruptionError that names the item if it is
/// in a form that this version does not know: an attribute missing, of another type, or one too many. What the events,
/// the effects or the row's fields say is not looked at. Threads: any.
///
///     for (const store::Record& record : store.scan({.table = "events"}).records)
///         pending += look_at_slot(record.key, record.item) == Stored::pending;
Stored look_at_slot(const store::Key& key, const store::Item& item);
Stored look_at_row(const store::Key& key, const store::Item& item);

}  // namespace varve::transactions
