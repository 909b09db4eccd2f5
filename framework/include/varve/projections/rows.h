#pragma once

#include <varve/commands/application.h>
#include <varve/core/json.h>

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
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
// partition are read as ranges in the order of their second part.

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

namespace detail {

store::TableSchema rows_table(std::string_view name, bool sorted);
store::Key row_key(std::string_view table, bool sorted, const RowKey& key);
store::Query row_query(std::string_view table, bool sorted, const RowRange& range);
RowKey row_key(const store::Key& key);
[[noreturn]] void throw_unreadable_row(const store::Key& key, const std::string& why);

template <ReadModel T>
void ensure_rows(RowTables& tables) {
    static constexpr NamedType type = NamedType::of<T>(T::table);
    if (!tables.knows(type)) tables.add(type, rows_table(T::table, is_sorted<T>()));
}

template <ReadModel T>
T decode_row(const store::Key& key, std::string_view data) {
    Result<T, json::DecodeError> row = json::decode<T>(data);
    if (!row) throw_unreadable_row(key, row.error().message);
    return std::move(row).value();
}

template <ReadModel T>
store::Key row_key_of(const RowKey& key) {
    return row_key(T::table, is_sorted<T>(), key);
}

/// Stands for the rows of what is no read model, so that the compiler says nothing more about them.
template <class T>
struct RefusedRows {
    using Isolation = transactions::Isolation;
    std::optional<T> get(const RowKey&, Isolation = Isolation::committed) const;
    std::vector<std::optional<T>> get_all(const std::vector<RowKey>&, Isolation = Isolation::committed) const;
    std::vector<RowOf<T>> range(const RowRange&, Isolation = Isolation::committed) const;
    std::vector<RowOf<T>> all(Isolation = Isolation::committed) const;
    void put(const RowKey&, const T&) const;
    void erase(const RowKey&) const;
    void update(const RowKey&, const auto&) const;
};

}  // namespace detail

/// The rows of a read model inside a transaction: read serializably, written with everything else.
///
/// Threads and lifetime: those of the transaction.
template <ReadModel T>
class RowsInTransaction {
  public:
    explicit RowsInTransaction(Transaction& tx) : tx_(tx) { detail::ensure_rows<T>(tx.row_tables()); }

    std::optional<T> get(const RowKey& key) const {
        const store::Key stored = detail::row_key_of<T>(key);
        const std::optional<std::string> data = tx_.read_row(stored);
        if (!data) return std::nullopt;
        return detail::decode_row<T>(stored, *data);
    }
    void put(const RowKey& key, const T& row) const { tx_.write_row(detail::row_key_of<T>(key), json::encode(row)); }
    void erase(const RowKey& key) const { tx_.write_row(detail::row_key_of<T>(key), std::nullopt); }
    /// Changes a row in place; one that is not there begins as T{}.
    void update(const RowKey& key, const std::invocable<T&> auto& change) const {
        T row = get(key).value_or(T{});
        change(row);
        put(key, row);
    }
    std::vector<RowOf<T>> range(const RowRange& range) const {
        std::vector<RowOf<T>> rows;
        for (const Transaction::RowFound& row :
             tx_.read_range(detail::row_query(T::table, detail::is_sorted<T>(), range))) {
            rows.push_back({detail::row_key(row.key), detail::decode_row<T>(row.key, row.data)});
        }
        return rows;
    }

  private:
    Transaction& tx_;
};

template <ReadModel T>
auto Transaction::rows() {
    return RowsInTransaction<T>{*this};
}

/// The rows of a read model, outside any transaction.
///
///     std::optional<Balance> row = bank.rows<Balance>().get("alice");
///
/// Threads: all methods may be called from any thread. Errors: those of the store; ConflictError from snapshot and
/// serializable reads of what never holds still. Lifetime: that of the application.
template <ReadModel T>
class Rows {
  public:
    using Isolation = transactions::Isolation;

    explicit Rows(Application& application) : application_(application) {
        detail::ensure_rows<T>(application.row_tables());
    }

    std::optional<T> get(const RowKey& key, Isolation isolation = Isolation::committed) const {
        return std::move(get_all({key}, isolation).front());
    }

    /// In the order of `keys`.
    std::vector<std::optional<T>> get_all(const std::vector<RowKey>& keys,
                                          Isolation isolation = Isolation::committed) const {
        std::vector<std::optional<T>> rows;
        if (isolation == Isolation::serializable) {
            application_
                .transact([&](Transaction& tx) {
                    rows.clear();
                    for (const RowKey& key : keys) rows.push_back(tx.rows<T>().get(key));
                })
                .value();
            return rows;
        }
        std::vector<store::Key> stored;
        for (const RowKey& key : keys) stored.push_back(detail::row_key_of<T>(key));
        const std::vector<transactions::Image> images = application_.coordinator().reader().rows(stored, isolation);
        for (std::size_t i = 0; i < images.size(); ++i) {
            rows.push_back(images[i].data ? std::optional{detail::decode_row<T>(stored[i], *images[i].data)}
                                          : std::nullopt);
        }
        return rows;
    }

    /// For sorted read models.
    std::vector<RowOf<T>> range(const RowRange& range, Isolation isolation = Isolation::committed) const {
        if (isolation == Isolation::serializable) {
            std::vector<RowOf<T>> rows;
            application_.transact([&](Transaction& tx) { rows = tx.rows<T>().range(range); }).value();
            return rows;
        }
        return decode(application_.coordinator().reader().range(
            detail::row_query(T::table, detail::is_sorted<T>(), range), isolation));
    }

    /// All rows, in no order; `committed` or `uncommitted`.
    std::vector<RowOf<T>> all(Isolation isolation = Isolation::committed) const {
        if (isolation != Isolation::committed && isolation != Isolation::uncommitted) {
            throw InvalidError("all rows of a table can be read at committed or uncommitted only; read ranges instead");
        }
        return decode(application_.coordinator().reader().scan(std::string{T::table}, isolation));
    }

  private:
    static std::vector<RowOf<T>> decode(const std::vector<transactions::Reader::FoundRow>& found) {
        std::vector<RowOf<T>> rows;
        for (const auto& row : found) {
            if (row.image.data)
                rows.push_back({detail::row_key(row.key), detail::decode_row<T>(row.key, *row.image.data)});
        }
        return rows;
    }

    Application& application_;
};

template <ReadModel T>
Rows<T> Application::rows() {
    return Rows<T>{*this};
}

}  // namespace varve
