#pragma once

#include <varve/core/error.h>
#include <varve/store/condition.h>
#include <varve/store/item.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace varve::store {

/// Replaces the whole item, or creates it.
struct Put {
    Item item;
};
/// Sets some attributes and removes others; the rest stays. Creates the item if there is none. No attribute is in both.
struct Update {
    Item set;
    std::vector<std::string> remove;
};
/// Removes the item; removing nothing is no failure.
struct Erase {};
/// Changes nothing: its condition takes part in `write_atomically`. InvalidError elsewhere.
struct Check {};

struct Write {
    Key key;
    std::variant<Put, Update, Erase, Check> action;
    Condition condition = {};
};

struct Applied {};
/// The condition did not hold of `current` (nullopt: there was no item). Nothing was changed.
struct Refused {
    std::optional<Item> current;
};
/// An answer that nobody has given is a Failure.
using WriteAnswer = std::variant<Failure, Applied, Refused>;

/// Which writes of an atomic batch had a condition that did not hold, in ascending order of index, each with its item
/// as it stood.
struct RefusedBatch {
    struct One {
        std::size_t index;
        std::optional<Item> current;
    };
    std::vector<One> refused;
};
using AtomicAnswer = std::variant<Failure, Applied, RefusedBatch>;

/// A page ends at the latest with the record that brings its records to this size, as `bytes(key, item)` or the store
/// counts them. So whoever reads in pages needs memory for this many bytes and one item.
inline constexpr std::size_t page_bytes = std::size_t{1} << 20;

/// One page of a query or scan. `next` continues it. It may be there even if `records` is empty, or has fewer than the
/// limit.
struct Page {
    std::vector<Record> records;
    std::optional<std::string> next;  ///< opaque; belongs to this query and table
};

/// The items of one partition with first <= sort key <= last, in order.
struct Query {
    std::string table;
    std::string partition;
    SortKey first = {};  ///< monostate: from the beginning
    SortKey last = {};   ///< monostate: to the end
    bool descending = false;
    std::size_t limit = 1000;              ///< at most so many records in the page; also see page_bytes
    std::optional<std::string> next = {};  ///< from the page before
};

/// What several reads have found.
struct FoundTogether {
    std::vector<std::optional<Item>> items;  ///< in the order of the keys
    std::vector<Page> pages;                 ///< in the order of the queries
};

/// All items of a table, in no order. As many scans as `segments` says, one for each value of `segment`, cover the
/// table.
struct Scan {
    std::string table;
    std::uint32_t segment = 0;
    std::uint32_t segments = 1;
    std::size_t limit = 1000;
    std::optional<std::string> next = {};
};

/// A place in the order of a table's changes: 1, 2, 3 … in the order of commits. 0 is before the first.
using Position = std::uint64_t;

struct Change {
    Position position;
    Record record;
};

struct Capabilities {
    /// A Put of a larger item, or an Update that sets more, fails with an InvalidError that names item, size and limit.
    /// An Update that lets an item grow beyond the limit is answered with a Failure of that kind.
    std::size_t item_bytes_max;
    std::size_t atomic_writes_max;  ///< how many writes write_atomically takes; 0: it is not there
    bool ordered_changes;           ///< whether changes() is there
};

/// THE port: what a store must do to carry varve, and all of it. An adapter knows items, not events or transactions.
/// An adapter is right when it passes the suite in testing/store_conformance.h, which tests every sentence below.
///
/// What every implementation promises
///  - Each write of ONE item is atomic and linearizable, its condition included. Nothing more is needed.
///  - In a store that keeps data, what was answered `Applied` survives the death of every process (see the adapter's
///    README).
///  - Reads and queries see every write answered before they began.
///  - Text keys and values are UTF-8 without NUL; other text is refused with InvalidError. Bytes are any bytes.
///  - Empty text and empty bytes are values, different from a missing attribute.
///
/// Errors. Methods throw: InvalidError (a table nobody ensured, a key that does not fit its table, a bad attribute
/// name, an item beyond the limit), UnavailableError and the other kinds of error.h as their names say. A write that
/// fails because of the world does not throw: it is answered with a `Failure`, so that the rest of its batch is not
/// lost. Any other exception from a write, such as std::bad_alloc, leaves open what has become of the batch. A store
/// may repeat a request that was not answered. The answer to a write may then be that of a later delivery. It may even
/// be a refusal, because of the first delivery or of what came after it. So whoever writes must recognise its own
/// writes.
///
/// Threads: every method may be called from any number of threads at once. Destroying a store while a call runs is a
/// programmer's error.
class ItemStore {
  public:
    virtual ~ItemStore() = default;

    /// Makes sure that the table is there. Cheap and harmless when repeated, also by several processes at once. Throws
    /// a ConfigError that names both shapes if the table exists with another one.
    virtual void ensure_table(const TableSchema& schema) = 0;

    /// Whether the table is there; if it is, as if it had been ensured. Makes and changes nothing: for those who only
    /// look. Errors: those of ensure_table.
    [[nodiscard]] virtual bool has_table(const TableSchema& schema) = 0;

    /// The items under `keys`, in the order of `keys`; nullopt where there is none. Each is read strongly consistently,
    /// on its own: two of them need not be of one moment. A key may be named twice. Throws if any could not be read.
    [[nodiscard]] virtual std::vector<std::optional<Item>> read(std::span<const Key> keys) = 0;

    /// Applies every write whose condition holds, each on its own and in no order, never all or nothing. Gives one
    /// answer per write, in the order of `writes`. Costs about one round trip. Two writes of one batch must not name
    /// the same key (InvalidError). InvalidError means that none of the batch was applied.
    [[nodiscard]] virtual std::vector<WriteAnswer> write(std::span<const Write> writes) = 0;

    /// Strongly consistent. InvalidError if the table has no sort key or `limit` is 0.
    [[nodiscard]] virtual Page query(const Query& query) = 0;

    /// What `read` and `query` answer to each, asked for at once. A remote store has all requests in flight together,
    /// at the cost of about one round trip. A store that does not override this asks one after the other. Errors: those
    /// of `read` and `query`.
    [[nodiscard]] virtual FoundTogether read_together(std::span<const Key> keys, std::span<const Query> queries);

    /// Finds every item that is there from the scan's first page to its last, once. It may find others too.
    [[nodiscard]] virtual Page scan(const Scan& scan) = 0;

    virtual Capabilities capabilities() const = 0;

    /// Optional (Capabilities::ordered_changes). The table's items whose LAST change came after `after`, in the order
    /// of these changes, each item once, at most `limit` and as many as a page may hold. The answer is empty only if
    /// there are none. Positions are given in the order of commits, and without gaps when they are given: when position
    /// p is visible, no smaller one will ever appear. An erased item is no longer there. A write that was refused is no
    /// change; every applied one is.
    [[nodiscard]] virtual std::vector<Change> changes(const std::string& table, Position after, std::size_t limit);

    /// Optional (Capabilities::ordered_changes). The last position that was given in the table, 0 if none was: whoever
    /// has read the changes up to there has seen every write that was answered before this call.
    [[nodiscard]] virtual Position last_change(const std::string& table);

    /// Optional (Capabilities::atomic_writes_max). Applies all writes if all their conditions hold at one moment, else
    /// none. Keys follow the rule of `write`. They show at one moment, too: who has read one of them, by whatever call,
    /// finds all of them from then on. A store that cannot promise that does not offer this: commands rest on it. Where
    /// changes have an order, those of one table get positions in the order of `writes`.
    [[nodiscard]] virtual AtomicAnswer write_atomically(std::span<const Write> writes);

    /// Optional; nullptr: the store cannot. Calls `changed`, from a thread of the store's, soon after another handle,
    /// in whatever process, has changed an item of the table, until what is returned is gone: no call runs after that.
    /// It is a hint for those who look again anyway: calls may be late, missing, or for nothing. `changed` must return
    /// at once, throw nothing, and call no method of the store.
    ///
    ///     const auto watch = store.watch("events", [&] { loop.wake(); });
    [[nodiscard]] virtual std::shared_ptr<void> watch(const std::string& table, std::function<void()> changed);

    /// Optional. What whoever runs this store should know of its settings, a sentence for each: under which of them it
    /// promises less than it could, such as writes that a power cut may take. Errors: those of `read`.
    [[nodiscard]] virtual std::vector<std::string> concerns();
};

}  // namespace varve::store
