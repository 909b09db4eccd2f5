#pragma once

#include "transactions/coordinator.h"

#include <varve/core/error.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace varve::transactions {

/// Settles these claims, no key twice, and returns how many it has. It begins with all at once. If that fails because
/// of what one of them is, each is tried by itself: what cannot be settled is reported and stays, and the others go on.
/// Other errors: those of Resolver::settle.
std::size_t settle_each(Resolver& resolver, std::span<const Resolver::Claimed> claimed,
                        const std::function<void(const Error&)>& report);

/// Settles what a sweeper has met, wherever it met it: claims whose owner may have died, and commits whose participants
/// may not be in place. What cannot be settled is logged and stays; the others go on.
///
///     if (settler.look_after(record)) unsettled.emplace(record.key, bytes);
///     …                                                                   // so much later
///     for (const store::Key& key : settler.settle(unsettled)) unsettled.erase(key);
///
/// Errors: those of the store. Threads: as its sweeper.
class Settler {
  public:
    explicit Settler(Coordinator& coordinator) : coordinator_(coordinator) {}

    /// After how long a record must be settled; nullopt: there is nothing to settle. A record that cannot be read must
    /// be looked at again: nobody passes it by.
    std::optional<Duration> look_after(const store::Record& record);

    /// Reads what lies under these keys now and settles it. Gives the keys where that read found nothing to settle.
    /// With each key stand the bytes that lay there when it was met: many large items are read in turn, so that an idle
    /// process stays small.
    std::set<store::Key> settle(const std::map<store::Key, std::size_t>& keys);

  private:
    /// A commit whose participants are not known to be in place.
    struct Unfinished {
        store::Key primary;
        Committed commit;
    };
    static std::optional<Committed> unfinished_commit(const store::Key& key, const store::Item& item);

    void settle_some(std::span<const store::Key> keys, std::set<store::Key>& settled);
    void settle_claims(std::span<const Resolver::Claimed> claimed);
    /// Begins with all at once, as settle_each does. Where there are done marks: finalises the participants and marks
    /// the primaries, those of which every answer came. Adds these to `settled`, or else those of which all is in
    /// place.
    void finish(std::span<const Unfinished> commits, std::set<store::Key>& settled);
    void report(const Error& error);

    Coordinator& coordinator_;
};

}  // namespace varve::transactions
