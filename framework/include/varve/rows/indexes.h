#pragma once

#include <varve/rows/rows.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Indexes of a read model: its rows found by the values of a field. Included by those who declare some.
//
//     struct Customer {
//         static constexpr std::string_view table = "customers";
//         std::string email, city;
//         std::int64_t since_year = 0;
//         using Indexes = varve::Indexes<varve::Unique<&Customer::email>, varve::Index<&Customer::city>,
//                                        varve::Index<&Customer::since_year>>;
//     };
//     std::optional<RowOf<Customer>> one = shop.rows<Customer>().find<&Customer::email>("a@b.c");
//     RowPage<Customer> page = shop.rows<Customer>().where<&Customer::city>("Oslo", {.limit = 50, .next = token});
//     for (const auto& row : shop.rows<Customer>().between<&Customer::since_year>({.first = 2020})) …
//     for (const auto& row : shop.rows<Customer>().starting_with<&Customer::email>({"a"})) …
//
// Whoever writes a row writes what the index says of it in the same transaction, whether the row is written by a
// command, an inline projection or a follower: so the two never disagree, not even after a crash. Only entries that
// change are written. A row whose Unique value is another row's is refused with the rejection `not_unique`, as soon as
// the command has decided all: two rows may swap their values in one transaction.
//
// Values are ordered as C++ orders them; text by its bytes, enums by their enumerators' names. A std::optional without
// value is not in the index, and never refused as not unique.

namespace varve {

/// Rows are found by this field.
template <auto field>
struct Index {
    static constexpr auto pointer = field;
    static constexpr bool unique = false;
};

/// And no two rows have the same value.
template <auto field>
struct Unique {
    static constexpr auto pointer = field;
    static constexpr bool unique = true;
};

/// The indexes of a read model: a list of Index and Unique, each on a field of it.
template <class... Each>
struct Indexes {};

/// Rows with first <= value <= last, in the order of the values; nullopt: from the smallest, to the largest.
template <class Value>
struct ValueRange {
    std::optional<Value> first = {};
    std::optional<Value> last = {};
    bool descending = false;
};

/// Rows with a text that begins so, in the order of the texts.
struct TextsFrom {
    std::string prefix;
    bool descending = false;
};

namespace detail {

/// An index and the part of it that is asked for, as `first` <= entry <= `last`; empty: its beginning, its end.
struct IndexRange {
    std::size_t index;
    std::string first = {};
    std::string last = {};
    bool descending = false;
};

/// What an index orders by; nullopt if an optional has no value.
std::optional<std::string> ordered_value(const json::detail::Type& type, const void* value);
/// Between which entries those of a value, of a range of values, and of texts with a prefix lie.
IndexRange entries_between(std::size_t index, const std::optional<std::string>& first,
                           const std::optional<std::string>& last, bool descending);
IndexRange entries_from(std::size_t index, const TextsFrom& texts);

template <class T>
inline constexpr bool has_order =
    std::same_as<T, bool> || json::detail::Integer<T> || std::same_as<T, double> || std::same_as<T, float> ||
    std::same_as<T, std::string> || std::same_as<T, Time> || json::detail::is_duration<T> || std::is_enum_v<T>;
template <class T>
inline constexpr bool has_order<std::optional<T>> = has_order<T>;

template <class T>
struct ValueOf {
    using Type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
    using Type = T;
};

template <class Pointer>
struct Member {
    using Owner = void;
    using Field = void;
};
template <class O, class F>
struct Member<F O::*> {
    using Owner = O;
    using Field = F;
};
template <auto field>
using FieldType = typename Member<std::remove_const_t<decltype(field)>>::Field;
/// What its index is asked for.
template <auto field>
using IndexedValue = typename ValueOf<FieldType<field>>::Type;

template <class T, class One>
consteval auto refuse_one_index() {
    if constexpr (!requires {
                      One::pointer;
                      One::unique;
                  }) {
        return Refused<Rule::has_bad_indexes, Type<T>>{};
    } else if constexpr (!std::same_as<typename Member<std::remove_const_t<decltype(One::pointer)>>::Owner, T>) {
        return Refused<Rule::has_bad_indexes, Type<T>>{};
    } else if constexpr (!has_order<FieldType<One::pointer>>) {
        return Refused<Rule::has_no_order, FieldOf<T, One::pointer>>{};
    } else {
        return Fine{};
    }
}

template <class... Each>
constexpr bool is_one_per_field() {
    return all_differ({field_name<Each::pointer>()...});
}

template <class T, class... Each>
struct TableIndexesOf<T, Indexes<Each...>> {
    static consteval auto refuse() {
        using EachOne = FirstRefused<decltype(refuse_one_index<T, Each>())...>;
        if constexpr (EachOne::refused) {
            return EachOne{};
        } else if constexpr (sizeof...(Each) == 0 || !is_one_per_field<Each...>()) {
            return Refused<Rule::has_bad_indexes, Type<T>>{};
        } else {
            return Fine{};
        }
    }
    static constexpr std::array fields{IndexedField{field_name<Each::pointer>(), Each::unique,
                                                    &json::detail::TypeOf<FieldType<Each::pointer>>::value}...};
    static std::vector<std::optional<std::string>> values(const RowKey& key, std::string_view data) {
        const T row = decode_row<T>(key, data);
        return {ordered_value(json::detail::TypeOf<FieldType<Each::pointer>>::value, &(row.*Each::pointer))...};
    }
    static constexpr TableIndexes value{fields, &values};

    /// As many as there are: none is of this field.
    template <auto field>
    static constexpr std::size_t index_of() {
        constexpr std::string_view name = field_name<field>();
        std::size_t at = 0;
        while (at < fields.size() && fields[at].name != name) ++at;
        return at;
    }
};

template <class T>
using IndexesOf = TableIndexesOf<T, typename T::Indexes>;

/// Why T has no such index on the field.
template <class T, auto field, bool unique>
consteval auto refuse_query() {
    if constexpr (!std::same_as<typename Member<std::remove_const_t<decltype(field)>>::Owner, T>) {
        return Refused<Rule::has_no_such_index, Type<T>>{};
    } else if constexpr (IndexesOf<T>::template index_of<field>() == IndexesOf<T>::fields.size()) {
        return Refused<Rule::has_no_such_index, FieldOf<T, field>>{};
    } else if constexpr (unique && !IndexesOf<T>::fields[IndexesOf<T>::template index_of<field>()].unique) {
        return Refused<Rule::is_not_unique, FieldOf<T, field>>{};
    } else {
        return Fine{};
    }
}
template <class T, auto field, bool unique = false>
using RefusedQuery = decltype(refuse_query<T, field, unique>());

/// What Rows and RowsInTransaction offer for T, which has indexes. Outside a transaction what it finds is read
/// committed: every row that is returned has the value that was asked for, and a row that has it all the time is found.
/// In a transaction what was asked for is validated with the rest: that there was no such row, too.
///
/// Errors: ConfigError for an index that is not whole yet, and for one that was built for another form of T
/// (Application::build_indexes); InvalidError for a value that is too long to be in an index.
template <class T, class Store>
requires HasIndexes<T>
class IndexReads<T, Store> {
  public:
    explicit IndexReads(Store& store) : store_(store) {}

    /// The row with this value, by a Unique.
    template <auto field>
    requires(!RefusedQuery<T, field, true>::refused) std::optional<RowOf<T>> find(const IndexedValue<field>& value)
    const {
        std::optional<StoredRow> row = store_.find(row_table<T>, equal<field>(value));
        if (!row) return std::nullopt;
        T decoded = decode_row<T>(row->key, row->data);
        return RowOf<T>{std::move(row->key), std::move(decoded)};
    }
    template <auto field, VARVE_WHY(RefusedQuery<T, field, true>)>
    requires(RefusedQuery<T, field, true>::refused) std::optional<RowOf<T>> find(const auto& value)
    const VARVE_REFUSED;

    /// The rows with this value, in the order of their keys.
    template <auto field>
    requires(!RefusedQuery<T, field>::refused) RowList<T> where(const IndexedValue<field>& value)
    const { return list(equal<field>(value)); }
    template <auto field>
    requires(!RefusedQuery<T, field>::refused) RowPage<T> where(const IndexedValue<field>& value,
                                                                const PageOptions& page)
    const { return this->page(equal<field>(value), page); }
    template <auto field, VARVE_WHY(RefusedQuery<T, field>)>
    requires(RefusedQuery<T, field>::refused) RowPage<T> where(const auto& value, const PageOptions& page = {})
    const VARVE_REFUSED;

    /// The rows with values in a range, in the order of the values, and where these are equal of the keys. Outside a
    /// transaction a row that moves within the range meanwhile may come at its old place.
    template <auto field>
    requires(!RefusedQuery<T, field>::refused) RowList<T> between(const ValueRange<IndexedValue<field>>& range)
    const { return list(entries<field>(range)); }
    template <auto field>
    requires(!RefusedQuery<T, field>::refused) RowPage<T> between(const ValueRange<IndexedValue<field>>& range,
                                                                  const PageOptions& page)
    const { return this->page(entries<field>(range), page); }

    /// The rows with texts that begin so, in the order of the texts.
    template <auto field>
    requires(!RefusedQuery<T, field>::refused &&
             std::same_as<IndexedValue<field>, std::string>) RowList<T> starting_with(const TextsFrom& texts)
    const { return list(entries_from(IndexesOf<T>::template index_of<field>(), texts)); }
    template <auto field>
    requires(!RefusedQuery<T, field>::refused &&
             std::same_as<IndexedValue<field>, std::string>) RowPage<T> starting_with(const TextsFrom& texts,
                                                                                      const PageOptions& page)
    const { return this->page(entries_from(IndexesOf<T>::template index_of<field>(), texts), page); }

  private:
    template <auto field>
    static IndexRange entries(const ValueRange<IndexedValue<field>>& range) {
        const auto ordered = [](const std::optional<IndexedValue<field>>& value) {
            return value ? ordered_value(json::detail::TypeOf<IndexedValue<field>>::value, &*value) : std::nullopt;
        };
        return entries_between(IndexesOf<T>::template index_of<field>(), ordered(range.first), ordered(range.last),
                               range.descending);
    }
    template <auto field>
    static IndexRange equal(const IndexedValue<field>& value) {
        return entries<field>({.first = value, .last = value});
    }
    RowList<T> list(IndexRange range) const {
        return RowList<T>{
            [reads = *this, range = std::move(range)](const PageOptions& page) { return reads.page(range, page); }};
    }
    RowPage<T> page(const IndexRange& range, const PageOptions& page) const {
        return decode_rows<T>(store_.indexed(row_table<T>, range, page));
    }

    Store& store_;
};

}  // namespace detail
}  // namespace varve
