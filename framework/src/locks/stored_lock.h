#pragma once

#include "transactions/row.h"

#include <varve/locks/locks.h>
#include <varve/store/item_store.h>

#include <optional>
#include <string>

namespace varve::locks {

/// The table of all locks: (name, part), with `_expires` for the store's own expiry.
const store::TableSchema& locks_table();

// The items of one lock, by their sort key:
//
//     "counter"       := drawn                              the last ticket that was given
//     "holder"        := data _rev [claim]                  a row (transactions/row.h); absent: never entered
//     "queue/TICKET"  := owner claim _expires               TICKET in 20 digits
//     claim           := expires_at [time_to_live]
//     data            := {"fence","owner","ticket"}         owner "" and ticket 0: free
//
// `owner` is the id of one acquisition, `expires_at` microseconds of Unix time, `time_to_live` microseconds: a claim
// whose `expires_at` has not moved for so long is over as well. Every heartbeat moves it, forwards. `_rev` of the
// holder is "FENCE/OWNER", or "FENCE" while it is free: so it never recurs, a heartbeat leaves it alone, and a
// transaction that read it commits only if the lock is still in the same hands. `_expires`, Unix time in seconds, is an
// hour after `expires_at`: by then nobody needs the item. The holder and the counter stay for ever: a fence or a ticket
// that came twice would be two locks.

store::Key counter_key(const std::string& name);
store::Key holder_key(const std::string& name);
store::Key queue_key(const std::string& name, Ticket ticket);
/// The ticket of a queue's row; nullopt for another part.
std::optional<Ticket> ticket_of(const store::Key& key);

/// The expiry of a claim that is made or renewed now. Always later than `stored`, the one before, or whoever watches
/// the claim would take it for forgotten while its owner's wall clock is behind.
Time later_expiry(Clock& clock, Duration time_to_live, Time stored);

/// The stored items; nullopt: absent. CorruptionError for a form that this version does not know.
Ticket decode_counter(const store::Key& key, const std::optional<store::Item>& item);
Queued decode_queued(const store::Key& key, const store::Item& item);
Holder decode_holder(const store::Key& key, const std::optional<store::Item>& item);

/// The holder's item of a lock that is free and was entered so often.
store::Record free_holder(const std::string& name, Fence fence);

// The writes there are. Each is conditional on the state of its item as it was read, or on being one's own; so a
// request that arrives late or again is refused, or brings back a row of the queue that expires by itself.

/// drawn → drawn + 1.
store::Write draw(const std::string& name, Ticket drawn);
/// absent → queued.
store::Write enqueue(const std::string& name, Ticket ticket, const Queued& row);
/// queued by row.owner → with a later expiry.
store::Write extend(const std::string& name, Ticket ticket, const Queued& row);
/// queued by `owner` → absent.
store::Write leave(const std::string& name, Ticket ticket, const std::string& owner);
/// queued and expired, exactly as read → absent.
store::Write clean(const std::string& name, Ticket ticket, const Queued& read);
/// free or expired, exactly as read → `next`. This write is the acquisition.
store::Write enter(const std::string& name, const Holder& read, const Holder& next);
/// held by this very entering → with a later expiry.
store::Write extend(const std::string& name, const Holder& holder);
/// held by this very entering → free.
store::Write release(const std::string& name, const Holder& holder);

}  // namespace varve::locks
