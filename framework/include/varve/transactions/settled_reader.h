#pragma once

#include <varve/core/error.h>
#include <varve/core/retry.h>
#include <varve/transactions/coordinator.h>
#include <varve/transactions/patience.h>

#include <functional>
#include <optional>
#include <string>

namespace varve::transactions {

/// Another transaction was still running when an attempt's lease was over. The attempt has failed, the command may try
/// again.
struct BlockedError : ConflictError {
    using ConflictError::ConflictError;
};

/// The reads of one attempt: what it returns may be built on, for nobody has a claim on it any more. Others' claims are
/// settled, a transaction that is alive is waited for (patience.h).
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
    /// `since`: when the command began; `tx`: the attempt's id. `while_waiting`, if there is any, runs before each
    /// round in which it waits.
    SettledReader(Coordinator& coordinator, const std::string& tx, Time since,
                  std::function<void()> while_waiting = {});

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
    /// False: it was waited for.
    bool settle(const store::Key& key, const store::Item& item);

    Coordinator& c_;
    const std::string tx_;
    Patience patience_;
    const std::function<void()> while_waiting_;
    std::optional<Backoff> backoff_;  // since the first wait
};

}  // namespace varve::transactions
