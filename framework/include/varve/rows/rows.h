#pragma once

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/core/type_name.h>
#include <varve/transactions/options.h>

#include <concepts>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace varve {

// A read model is a plain struct, one value of it a row:
//
//     struct Balance {
//         static constexpr std::string_view table = "balances";
//         std::string owner;
//         std::int64_t cents = 0;
//     };
//
// Its rows are named by a key. With `static constexpr bool sorted = true` the key has two parts, and the rows of one
// partition are read as ranges in the order of their second part. With
// `static constexpr std::string_view kept_by = "balances"` only the follower of this name writes them, and they can be
// made anew beside those that are read (Application::rebuild).

namespace detail {

template <class T>
concept HasIndexes = requires {
    typename T::Indexes;
};
/// Of a list that is no varve::Indexes: refused. Those that are: rows/indexes.h.
template <class T, class List>
struct TableIndexesOf {
    static consteval auto refuse() { return Refused<Rule::has_bad_indexes, Type<T>>{}; }
};

template <class T>
consteval auto refuse_read_model() {
    if constexpr (!requires { typename std::bool_constant<(std::string_view{*&T::table}.size() > 0)>; }) {
        return Refused<Rule::has_no_table, Type<T>>{};
    } else if constexpr (
        requires { &T::sorted; } && !requires { typename std::bool_constant<*&T::sorted>; }) {
        return Refused<Rule::has_bad_sorted, Type<T>>{};
    } else if constexpr (HasIndexes<T> && !RefusedJson<T>::refused) {
        return TableIndexesOf<T, typename T::Indexes>::refuse();
    } else {
        return RefusedJson<T>{};
    }
}
template <class T>
using RefusedReadModel = decltype(refuse_read_model<T>());

}  // namespace detail

/// T's values are rows.
template <class T>
concept ReadModel = !detail::RefusedReadModel<T>::refused;

/// A row's key. `sort` belongs to sorted read models only, and must not be empty there.
struct RowKey {
    std::string partition;
    std::string sort = {};

    RowKey() = default;
    RowKey(std::string_view partition) : partition(partition) {}
    RowKey(const char* partition) : partition(partition) {}
    RowKey(const std::string& partition) : partition(partition) {}
    RowKey(std::string partition, std::string sort) : partition(std::move(partition)), sort(std::move(sort)) {}
    auto operator<=>(const RowKey&) const = default;
};

/// Rows of one partition with first <= sort <= last; empty: from the beginning, to the end.
struct RowRange {
    std::string partition;
    std::string first = {};
    std::string last = {};
    bool descending = false;
};

/// A row and its key.
template <class T>
struct RowOf {
    RowKey key;
    T value;
};

/// Some rows of a list, in its order, and where the list goes on.
template <class T>
struct RowPage {
    std::vector<RowOf<T>> rows;
    std::string next;  ///< for PageOptions::next; empty: the list ends here. Opaque, and nothing secret
};

/// All rows of a list, read a page at a time as one goes through them, so that a long list needs no memory:
///
///     for (const RowOf<Line>& line : bank.rows<Line>().range({"alice"})) …
///
/// Each begin() reads anew, and throws what reading a page throws; so does every step. Threads: one at a time.
/// Lifetime: that of the application, or the transaction, that it reads from.
template <class T>
class RowList {
  public:
    using Read = std::function<RowPage<T>(const PageOptions&)>;
    explicit RowList(Read read) : read_(std::move(read)) {}

    /// An input iterator.
    class Iterator {
      public:
        using value_type = RowOf<T>;
        using difference_type = std::ptrdiff_t;

        explicit Iterator(const Read& read) : read_(&read) { turn({}); }
        RowOf<T>& operator*() const { return page_->rows[at_]; }
        RowOf<T>* operator->() const { return &**this; }
        Iterator& operator++() {
            if (++at_ == page_->rows.size() && !page_->next.empty()) turn(page_->next);
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const { return at_ == page_->rows.size(); }

      private:
        static constexpr std::size_t rows_at_once = 1000;
        void turn(std::string next) {
            do {
                page_ = std::make_shared<RowPage<T>>((*read_)({.limit = rows_at_once, .next = std::move(next)}));
                next = page_->next;
            } while (page_->rows.empty() && !next.empty());
            at_ = 0;
        }

        const Read* read_;
        std::shared_ptr<RowPage<T>> page_;
        std::size_t at_ = 0;
    };
    Iterator begin() const { return Iterator{read_}; }
    std::default_sentinel_t end() const { return {}; }

    /// All of them in memory.
    std::vector<RowOf<T>> to_vector() const {
        std::vector<RowOf<T>> rows;
        for (RowOf<T>& row : *this) rows.push_back(std::move(row));
        return rows;
    }

  private:
    Read read_;
};

namespace detail {

/// A field that rows are found by.
struct IndexedField {
    std::string_view name;
    bool unique;
    const json::detail::Type* type;
};
struct IndexRange;
struct TableIndexes {
    std::span<const IndexedField> fields = {};
    /// The values that a row has in them, in their order; nullopt: it is not in this one.
    std::vector<std::optional<std::string>> (*values)(const RowKey& key, std::string_view data) = nullptr;
};

/// A table of rows with their type erased.
struct RowTable {
    NamedType type;  ///< named by the table
    bool sorted;
    /// A row as this program would write it. CorruptionError if it cannot be read.
    std::string (*rewritten)(const RowKey& key, std::string_view data);
    TableIndexes indexes = {};
    std::string_view kept_by = {};  ///< a follower's name: rows are in several builds (commands/build.h)
};

template <ReadModel T>
std::string rewritten_row(const RowKey& key, std::string_view data);

template <ReadModel T>
constexpr bool is_sorted() {
    if constexpr (requires { T::sorted; }) return T::sorted;
    return false;
}

template <ReadModel T>
constexpr RowTable describe_rows() {
    RowTable table{NamedType::of<T>(T::table), is_sorted<T>(), &rewritten_row<T>};
    if constexpr (HasIndexes<T>) table.indexes = TableIndexesOf<T, typename T::Indexes>::value;
    if constexpr (requires { T::kept_by; }) table.kept_by = T::kept_by;
    return table;
}
template <ReadModel T>
inline constexpr RowTable row_table = describe_rows<T>();

/// Reads by index: rows/indexes.h.
template <class T, class Store>
class IndexReads {
  public:
    explicit IndexReads(Store&) {}
};

/// A row and its key with its type erased.
struct StoredRow {
    RowKey key;
    std::string data;  ///< JSON text
};
struct StoredPage {
    std::vector<StoredRow> rows;
    std::string next = {};
};

/// The rows that a transaction reads and writes. Data are JSON text; nullopt: there is no such row.
class RowsOfTransaction {
  public:
    /// Makes the table if it is used for the first time. ConfigError if another type's rows are in it, InvalidError for
    /// a name that the framework uses itself; the store's errors.
    virtual void ensure(const RowTable& table) = 0;
    virtual std::optional<std::string> read(const RowTable& table, const RowKey& key) = 0;
    virtual void write(const RowTable& table, const RowKey& key, std::optional<std::string> data) = 0;
    /// The row in one entry of an index, and those in several.
    virtual std::optional<StoredRow> find(const RowTable& table, const IndexRange& entry) = 0;
    virtual StoredPage indexed(const RowTable& table, const IndexRange& range, const PageOptions& page) = 0;
    /// In order, with what this transaction has written so far.
    virtual StoredPage range(const RowTable& table, const RowRange& range, const PageOptions& page) = 0;

  protected:
    ~RowsOfTransaction() = default;
};

/// The rows of a store, outside any transaction.
class RowsOfStore {
  public:
    virtual void ensure(const RowTable& table) = 0;
    /// In the order of `keys`.
    virtual std::vector<std::optional<std::string>> read(const RowTable& table, const std::vector<RowKey>& keys,
                                                         transactions::Isolation isolation) = 0;
    virtual StoredPage range(const RowTable& table, const RowRange& range, const PageOptions& page,
                             transactions::Isolation isolation) = 0;
    virtual StoredPage all(const RowTable& table, const PageOptions& page, transactions::Isolation isolation) = 0;
    /// The row in one entry of an index, and those in several; read committed.
    virtual std::optional<StoredRow> find(const RowTable& table, const IndexRange& entry) = 0;
    virtual StoredPage indexed(const RowTable& table, const IndexRange& range, const PageOptions& page) = 0;

  protected:
    ~RowsOfStore() = default;
};

[[noreturn]] void throw_unreadable_row(const RowTable& table, const RowKey& key, const std::string& why);

template <ReadModel T>
T decode_row(const RowKey& key, std::string_view data) {
    Result<T, json::DecodeError> row = json::decode<T>(data);
    if (!row) throw_unreadable_row(row_table<T>, key, row.error().message);
    return std::move(row).value();
}

template <ReadModel T>
std::string rewritten_row(const RowKey& key, std::string_view data) {
    return json::encode(decode_row<T>(key, data));
}

template <ReadModel T>
RowPage<T> decode_rows(StoredPage stored) {
    RowPage<T> page{{}, std::move(stored.next)};
    page.rows.reserve(stored.rows.size());
    for (StoredRow& row : stored.rows) {
        T value = decode_row<T>(row.key, row.data);
        page.rows.push_back({std::move(row.key), std::move(value)});
    }
    return page;
}

/// Stands for the rows of what is no read model, so that the compiler says nothing more about them.
template <class T>
struct RefusedRows {
    using Isolation = transactions::Isolation;
    std::optional<T> get(const RowKey&, Isolation = Isolation::committed) const;
    std::vector<std::optional<T>> get_all(const std::vector<RowKey>&, Isolation = Isolation::committed) const;
    RowList<T> range(const RowRange&) const;
    RowPage<T> range(const RowRange&, const PageOptions&, Isolation = Isolation::committed) const;
    RowList<T> all() const;
    RowPage<T> all(const PageOptions&, Isolation = Isolation::committed) const;
    void put(const RowKey&, const T&) const;
    void erase(const RowKey&) const;
    void update(const RowKey&, const auto&) const;
};

}  // namespace detail

/// The rows of a read model inside a transaction: read serializably, written with everything else.
///
/// Threads and lifetime: those of the transaction.
template <ReadModel T>
class RowsInTransaction : public detail::IndexReads<T, detail::RowsOfTransaction> {
  public:
    explicit RowsInTransaction(detail::RowsOfTransaction& rows)
        : detail::IndexReads<T, detail::RowsOfTransaction>(rows), rows_(rows) {
        rows_.ensure(table());
    }

    std::optional<T> get(const RowKey& key) const {
        const std::optional<std::string> data = rows_.read(table(), key);
        if (!data) return std::nullopt;
        return detail::decode_row<T>(key, *data);
    }
    void put(const RowKey& key, const T& row) const { rows_.write(table(), key, json::encode(row)); }
    void erase(const RowKey& key) const { rows_.write(table(), key, std::nullopt); }
    /// Changes a row in place; one that is not there begins as T{}.
    void update(const RowKey& key, const std::invocable<T&> auto& change) const {
        T row = get(key).value_or(T{});
        change(row);
        put(key, row);
    }
    /// For sorted read models: all rows of the range. What was read of it is validated with the rest.
    RowList<T> range(RowRange range) const {
        return RowList<T>{
            [rows = *this, range = std::move(range)](const PageOptions& page) { return rows.range(range, page); }};
    }
    /// One page of it.
    RowPage<T> range(const RowRange& range, const PageOptions& page) const {
        return detail::decode_rows<T>(rows_.range(table(), range, page));
    }

  private:
    static constexpr const detail::RowTable& table() { return detail::row_table<T>; }

    detail::RowsOfTransaction& rows_;
};

/// The rows of a read model, outside any transaction.
///
///     std::optional<Balance> row = bank.rows<Balance>().get("alice");
///
/// Threads: all methods may be called from any thread. Errors: those of the store; ConflictError from snapshot and
/// serializable reads of what never holds still. Lifetime: that of the application.
template <ReadModel T>
class Rows : public detail::IndexReads<T, detail::RowsOfStore> {
  public:
    using Isolation = transactions::Isolation;

    explicit Rows(detail::RowsOfStore& rows) : detail::IndexReads<T, detail::RowsOfStore>(rows), rows_(rows) {
        rows_.ensure(table());
    }

    std::optional<T> get(const RowKey& key, Isolation isolation = Isolation::committed) const {
        return std::move(get_all({key}, isolation).front());
    }
    /// In the order of `keys`.
    std::vector<std::optional<T>> get_all(const std::vector<RowKey>& keys,
                                          Isolation isolation = Isolation::committed) const {
        const std::vector<std::optional<std::string>> stored = rows_.read(table(), keys, isolation);
        std::vector<std::optional<T>> rows;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            rows.push_back(stored[i] ? std::optional{detail::decode_row<T>(keys[i], *stored[i])} : std::nullopt);
        }
        return rows;
    }
    /// For sorted read models: all rows of the range, read committed.
    RowList<T> range(RowRange range) const {
        return RowList<T>{
            [rows = *this, range = std::move(range)](const PageOptions& page) { return rows.range(range, page); }};
    }
    /// One page of it; `isolation` is that of the rows of this page among themselves. InvalidError for a `next` that
    /// is not of this range.
    RowPage<T> range(const RowRange& range, const PageOptions& page, Isolation isolation = Isolation::committed) const {
        return detail::decode_rows<T>(rows_.range(table(), range, page, isolation));
    }
    /// All rows, in no order, read committed. A row that is there all the time comes once.
    RowList<T> all() const {
        return RowList<T>{[rows = *this](const PageOptions& page) { return rows.all(page); }};
    }
    /// One page of them; `committed` or `uncommitted`.
    RowPage<T> all(const PageOptions& page, Isolation isolation = Isolation::committed) const {
        return detail::decode_rows<T>(rows_.all(table(), page, isolation));
    }

  private:
    static constexpr const detail::RowTable& table() { return detail::row_table<T>; }

    detail::RowsOfStore& rows_;
};

}  // namespace varve
