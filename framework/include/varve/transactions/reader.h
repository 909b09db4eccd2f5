#pragma once

#include <varve/transactions/plan.h>
#include <varve/transactions/resolver.h>

#include <limits>
#include <span>
#include <vector>

namespace varve::transactions {

/// What a read may see of transactions that run at the same time.
enum class Isolation {
    uncommitted,   ///< raw: also what transactions only intend
    committed,     ///< never an intention; every acknowledged commit. Each item is of its own moment. The default
    snapshot,      ///< all items of one call are of one moment. No writes, no locks; repeats until it has seen one
    serializable,  ///< as part of a transaction: validated as it commits
};

/// A stream as read: its committed slots in order, and what stands after them.
struct StreamRead {
    struct One {
        Version version;
        Committed content;
    };
    std::vector<One> slots;                 ///< those asked for
    Version head = 0;                       ///< the last committed version, also if it was not asked for
    Free next;                              ///< how slot head + 1 was found free; meaningful when nothing `blocks`
    std::optional<store::Record> blocking;  ///< slot head + 1, claimed and not committed
    bool mine = false;  ///< slot head + 1 is claimed by the reading transaction itself; `next` is what lies beneath
    bool unfinalised =
        false;  ///< the last of `slots` is committed, but still claimed in place: nobody may build on it yet
};

/// Reads through other transactions' claims by the table of resolver.h. Never writes, and waits for nobody; a snapshot
/// repeats its reads until two rounds agree.
///
///     const StreamRead read = reader.stream("account-alice", 1);              // all its committed slots
///     const std::vector<Image> rows = reader.rows(keys, Isolation::snapshot);  // all of one moment
///
/// Threads: all methods may be called from any thread.
///
/// Errors: those of the store, UnavailableError if it does not answer; CorruptionError naming the item for one in a
/// form that this version does not know, and naming the stream for one with holes; ConflictError from `rows` and
/// `range` at `snapshot`, if in 200 rounds or 10 s no moment was found at which all that they read held still.
class Reader {
  public:
    Reader(store::ItemStore& store, Resolver& resolver, Runtime runtime)
        : store_(store), resolver_(resolver), runtime_(runtime) {}

    /// The slots first..last (as far as there are). `first` ≥ 1; what lies before it is taken to be there.
    StreamRead stream(const std::string& stream, Version first, Version last = std::numeric_limits<Version>::max());

    /// The last committed version of a stream, 0 if there is none, and how the slot after it was found: one query,
    /// whatever the stream's length. `slots` has at most the last two.
    StreamRead head(const std::string& stream);

    /// The images of rows, in the order of `keys`. `serializable` reads as `committed` does.
    std::vector<Image> rows(std::span<const store::Key> keys, Isolation isolation);

    struct FoundRow {
        store::Key key;
        Image image;
        bool operator==(const FoundRow&) const = default;
    };
    /// The rows of a range, over all its pages; tombstones too (they tell apart "not there" from "not there again").
    std::vector<FoundRow> range(const store::Query& query, Isolation isolation);
    /// All rows of a table, tombstones too, in no order. Each is of its own moment (`committed` or `uncommitted`).
    std::vector<FoundRow> scan(const std::string& table, Isolation isolation);

    /// The rows' items as they stand, claims and all.
    std::vector<std::optional<store::Item>> raw(std::span<const store::Key> keys) { return store_.read(keys); }
    /// All items of a range as they stand, over all its pages.
    std::vector<store::Record> raw(store::Query query);

  private:
    std::vector<Image> images(std::span<const store::Key> keys, std::vector<std::optional<store::Item>> items,
                              Isolation isolation);
    std::vector<FoundRow> found(std::vector<store::Record> records, Isolation isolation);

    store::ItemStore& store_;
    Resolver& resolver_;
    Runtime runtime_;
};

}  // namespace varve::transactions
