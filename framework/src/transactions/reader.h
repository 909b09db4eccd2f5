#pragma once

#include "transactions/plan.h"
#include "transactions/resolver.h"

#include <varve/transactions/options.h>

#include <limits>
#include <span>
#include <vector>

namespace varve::transactions {

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

    /// The slots first..last (as far as there are). `first` ≥ 1; what lies before it is taken to be there. `page`: the
    /// first one of the store's, if it has been read.
    StreamRead stream(const std::string& stream, Version first, Version last = std::numeric_limits<Version>::max(),
                      std::optional<store::Page> page = std::nullopt);

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
    static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
    /// Rows from the beginning of a range on; at `snapshot` tombstones too (they tell apart "not there" from "not there
    /// again").
    struct FoundRange {
        std::vector<FoundRow> rows;
        std::optional<store::SortKey> stopped_at = {};  ///< the last that was looked at; nullopt: the range's end
    };
    /// As far as about `limit` rows that are there go.
    FoundRange range(const store::Query& query, Isolation isolation, std::size_t limit = no_limit);
    /// Rows of a table in no order, and where the scan goes on. Each is of its own moment (`committed`
    /// or `uncommitted`).
    struct Scanned {
        std::vector<FoundRow> rows;
        std::optional<std::string> next;
    };
    /// At most `limit` rows that are there; fewer only if there are no more. `next`: from the scan before.
    Scanned scan(const std::string& table, Isolation isolation, std::size_t limit, std::optional<std::string> next);

    /// The rows' items as they stand, claims and all.
    std::vector<std::optional<store::Item>> raw(std::span<const store::Key> keys) { return store_.read(keys); }
    /// The items of a range as they stand, claims and all, until `limit` of them are no tombstones.
    struct Raw {
        std::vector<store::Record> records;
        std::optional<store::SortKey> stopped_at = {};
    };
    enum class Tombstones { kept, dropped };
    Raw raw(store::Query query, std::size_t limit = no_limit, Tombstones tombstones = Tombstones::kept);

  private:
    std::vector<Image> images(std::span<const store::Key> keys, std::vector<std::optional<store::Item>> items,
                              Isolation isolation);
    std::vector<FoundRow> found(std::vector<store::Record> records, Isolation isolation);

    store::ItemStore& store_;
    Resolver& resolver_;
    Runtime runtime_;
};

/// What of a range was looked at by one who stopped there.
store::Query up_to(store::Query query, const std::optional<store::SortKey>& stopped_at);

}  // namespace varve::transactions
