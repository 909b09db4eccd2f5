#pragma once

#include <varve/core/error.h>
#include <varve/core/retry.h>
#include <varve/transactions/coordinator.h>
#include <varve/transactions/patience.h>

#include <map>
#include <optional>
#include <string>

namespace varve::transactions {

/// Another transaction was still running when an attempt's lease was over. The attempt has failed, the command may try
/// again.
struct BlockedError : ConflictError {
    using ConflictError::ConflictError;
};

class Reservation;

/// The reads of one attempt: what it returns may be built on, for nobody else has a claim on it any more. Others' claims
/// are settled, a transaction that is alive is waited for (patience.h).
///
///     SettledReader reader{coordinator, tx, since};
///     const StreamRead alice = reader.stream("account-alice", 1);
///     plan.slots.push_back({slot_key("account-alice", alice.head + 1), alice.next.epoch, payload});
///
/// Threads: belongs to one attempt on one thread.
///
/// Errors of all methods: BlockedError naming the item if another transaction still holds it after a lease of waiting;
/// those of Reader and Resolver.
class SettledReader {
  public:
    /// `since`: when the command began; `tx`: the attempt's id. `reservation`, if there is any, is the attempt's own,
    /// and is kept alive while it waits.
    SettledReader(Coordinator& coordinator, const std::string& tx, Time since, Reservation* reservation = nullptr);

    /// Reads all of these together, ahead of what will ask for them one after the other: rows, and slots around a stream's
    /// head. What is claimed, or goes on behind what was read, is asked for again when it is wanted.
    void fetch(const std::vector<store::Key>& keys);
    /// The slots from `first` on, and how the one after them is free.
    StreamRead stream(const std::string& stream, Version first);
    /// The head of a stream, whatever its length.
    StreamRead head(const std::string& stream);
    /// As Reader::rows and Reader::range at `committed`.
    std::vector<Image> rows(std::span<const store::Key> keys);
    std::vector<Reader::FoundRow> range(const store::Query& query);

    /// Whether it had to wait for anybody.
    bool waited() const { return patience_.waited(); }

  private:
    StreamRead settled(const std::string& stream, auto read);
    /// What the attempt has reserved for itself is as good as free.
    bool claimed_by_another(const store::Key& key, const store::Item& item) const;
    /// False: it was waited for.
    bool settle(const store::Key& key, const store::Item& item);

    std::optional<StreamRead> fetched(const std::string& stream, Version first) const;

    Coordinator& c_;
    const std::string tx_;
    std::map<store::Key, std::optional<store::Item>> fetched_;
    Patience patience_;
    Reservation* const reservation_;
    std::optional<Backoff> backoff_;  // since the first wait
};

}  // namespace varve::transactions
