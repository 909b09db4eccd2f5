#pragma once

#include "transactions/coordinator.h"
#include "transactions/patience.h"

#include <varve/core/error.h>
#include <varve/core/retry.h>

#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace varve::transactions {

/// Others were still in the way when a lease, or the caller's time, was over. The attempt has failed, the command may
/// try again.
struct BlockedError : ConflictError {
    using ConflictError::ConflictError;
};

class Reservation;

/// The reads of one attempt: what it returns may be built on, for nobody else has a claim on it any more. Others'
/// claims are settled, a transaction that is alive is waited for (patience.h).
///
///     SettledReader reader{coordinator, tx, since};
///     const StreamRead alice = reader.stream("account-alice", 1);
///     plan.slots.push_back({slot_key("account-alice", alice.head + 1), alice.next.epoch, payload});
///
/// Threads: belongs to one attempt on one thread.
///
/// Errors of all methods: BlockedError naming the item if another transaction still holds it after a lease of waiting,
/// or after `until`;
/// those of Reader and Resolver.
class SettledReader {
  public:
    /// `since`: when the command began; `tx`: the attempt's id; `until`: nobody is waited for after that.
    /// `reservation`, if there is any, is the attempt's own, and is kept alive while it waits.
    SettledReader(Coordinator& coordinator, const std::string& tx, Time since, SteadyTime until = SteadyTime::max(),
                  Reservation* reservation = nullptr);

    /// What is going to be asked for, in one round trip, but for what was read ahead already. The next `stream`,
    /// `items` and `rows` of it find the answers; where others have a claim they read again. A stream's query is
    /// ascending from the slot that `stream` will be asked for, or of the newest slots.
    struct Ahead {
        std::vector<store::Key> keys;
        std::vector<store::Query> streams;
    };
    void read_ahead(Ahead ahead);

    /// Items as they stand, claims and all.
    std::vector<std::optional<store::Item>> items(std::span<const store::Key> keys);
    /// The slots from `first` on, and how the one after them is free. Those up to `last`, where the caller holds the
    /// one after it.
    StreamRead stream(const std::string& stream, Version first, Version last = std::numeric_limits<Version>::max());
    /// The head of a stream, whatever its length.
    StreamRead head(const std::string& stream);
    /// As Reader::rows and Reader::range at `committed`.
    std::vector<Image> rows(std::span<const store::Key> keys);
    Reader::FoundRange range(const store::Query& query, std::size_t limit = Reader::no_limit);

    /// Whether it had to wait for anybody.
    bool waited() const { return patience_.waited(); }

  private:
    StreamRead settled(const std::string& stream, auto read);
    /// Settles the claims on what was read ahead; true if one of them is gone.
    bool settle_all(const Ahead& ahead, const store::FoundTogether& found);
    /// Once somebody who was in the way may be gone: reads again `wanted` and what else was read ahead and had a claim,
    /// together, if there is any.
    void read_again(Ahead wanted);
    /// The slots from `first` on, if they were read ahead.
    std::optional<store::Page> page_ahead(const std::string& stream, Version first);
    /// What the attempt holds for itself is as good as free.
    bool claimed_by_another(const store::Key& key, const store::Item& item) const;
    /// False: it was waited for.
    bool settle(const store::Key& key, const store::Item& item);

    Coordinator& coordinator_;
    const std::string tx_;
    Patience patience_;
    const SteadyTime until_;
    Reservation* const reservation_;
    std::optional<Backoff> backoff_;  // since the first wait
    bool may_be_gone_ = false;        // who had a claim on what was read ahead
    std::map<store::Key, std::optional<store::Item>> items_ahead_;
    std::map<std::string, std::pair<store::Query, store::Page>> pages_ahead_;  // by stream
};

}  // namespace varve::transactions
