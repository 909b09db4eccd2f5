#pragma once

#include "transactions/row.h"
#include "transactions/slot.h"

#include <varve/core/runtime.h>
#include <varve/transactions/metrics.h>
#include <varve/transactions/options.h>
#include <varve/transactions/outcome.h>

#include <map>
#include <memory>
#include <set>
#include <span>

namespace varve::store {
class Sightings;
}

namespace varve::transactions {

/// The table of the protocol, in one place: what a transaction's primary slot says about it. Everybody who meets
/// somebody else's claim, be it reader, writer or sweeper, decides by this and by nothing else.
///
/// | primary slot                                                         | the transaction is |
/// |----------------------------------------------------------------------|--------------------|
/// | committed, by that transaction                                       | committed          |
/// | free at the epoch it expects, or pending by that very transaction    | undecided          |
/// | anything else (a higher epoch, somebody else's)                      | aborted for ever   |
Verdict judge(const Claim& claim, const Slot& primary);

/// Settles what other transactions left behind. Anybody may fence, undo and finalise; only the owner commits.
///
///     const store::Item item = …;                            // read under `key`, with a claim on it
///     if (resolver.settle(key, item) == Verdict::undecided)  // its transaction is alive, or the store silent
///         …                                                  // come by later
///
/// Threads: all methods may be called from any thread.
///
/// Errors of all methods that ask the store: its own, UnavailableError if it does not answer a read; CorruptionError
/// naming the item for a primary, a claimed item or a list of participants that this version cannot read. A write that
/// was not answered is no error: whoever comes by next repeats it.
class Resolver {
  public:
    Resolver(store::ItemStore& store, Runtime runtime, Options options, Metrics& metrics);
    ~Resolver();

    struct Resolution {
        Verdict verdict;
        Slot primary;
    };
    /// Reads the primary and judges. Writes nothing, never waits: for readers.
    Resolution look(const Claim& claim);

    /// All other participants of a committed transaction; reads the slots that continue their list.
    std::vector<store::Key> participants(const Committed& primary);

    /// What a claimed slot holds now that its transaction has committed; nullopt: nothing, it was reserved in vain.
    std::optional<store::Item> payload(const store::Key& key, const Pending& pending, const Committed& primary);

    /// The write that puts the claimed item into place; `item` as read, `primary` committed by the same transaction.
    store::Write finalise(const store::Key& key, const store::Item& item, const Committed& primary);

    /// For writers and sweepers, about the claim that stands on the item under `key`: an undecided transaction is
    /// fenced if its lease is over, or if it is another attempt of the command `own`; then what it left under `key` is
    /// finalised or undone. `undecided` means: still alive and not to be touched, or not cleared for want of an
    /// answer; wait.
    /// Errors: also what the store says of a write that it will never take.
    Verdict settle(const store::Key& key, const store::Item& item, std::string_view own = {});

    /// The same about many at once, no key twice: one read of all their primaries, one batch of fences, one of what
    /// clears them, or several where these may be large. One verdict for each, in the order of `claimed`. An error
    /// concerns one of them, the others may be settled or not.
    struct Claimed {
        const store::Key& key;
        const store::Item& item;
    };
    std::vector<Verdict> settle(std::span<const Claimed> claimed, std::string_view own = {});

    /// Whether this process has seen the claim stand still under `key` for the length of its lease; from the first call
    /// on, if the claim is new to it. Also if it was over so long ago that no difference between clocks explains it.
    bool lease_is_over(const store::Key& key, const Claim& claim);

    /// Whether the transaction has committed. One that is undecided is ended now, whether its owner lives or not.
    Verdict resolve(const Claim& claim);

    /// Unix time in seconds when a tombstone written now may go.
    std::int64_t tombstone_expiry() const;

  private:
    using Slots = std::map<store::Key, Slot>;
    /// Turns these primaries, which are free or pending, to void; afterwards it has them as they are.
    void fence(Slots& primaries);

    store::ItemStore& store_;
    Runtime runtime_;
    Options options_;
    Metrics& metrics_;
    const std::unique_ptr<store::Sightings> sightings_;
};

/// The attribute of a primary's payload that holds attribute `name` of its reserved participant `index`.
std::string copied_attribute(std::size_t index, std::string_view name);

}  // namespace varve::transactions
