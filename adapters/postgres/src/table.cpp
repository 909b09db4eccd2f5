#include "table.h"

#include <varve/core/error.h>
#include <varve/core/fnv1a.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace varve::postgres {
namespace {

constexpr std::array<std::string_view, 3> sort_types{"", "bigint", "text COLLATE \"C\""};
constexpr std::size_t name_bytes_max = 50;  // of the server's 63, for what is put behind it

std::string quoted(std::string_view text, char quote) {
    std::string result{quote};
    for (const char c : text) result.append(c == quote ? 2 : 1, c);
    return result + quote;
}

std::string short_name(std::string name) {
    if (name.size() <= name_bytes_max) return name;
    std::array<char, 20> hash{};
    std::snprintf(hash.data(), hash.size(), "~%016llx", static_cast<unsigned long long>(fnv1a(name)));
    std::size_t end = name_bytes_max - 17;
    while ((static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // not within a character
    return name.substr(0, end) + hash.data();
}

}  // namespace

std::string quoted_name(std::string_view name) {
    return quoted(name, '"');
}

std::string quoted_text(std::string_view text) {
    // A backslash means itself in texts of the standard.
    return quoted(text, '\'');
}

Table::Table(const std::string& space, store::TableSchema schema) : schema_(std::move(schema)), space_(space) {
    const bool sorted = schema_.sort != store::SortType::none;
    // The server's own columns first.
    std::vector<std::string> taken{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"};
    const auto column = [&taken](std::string name) {
        name = short_name(std::move(name));
        while (std::ranges::find(taken, name) != taken.end()) name.insert(0, "_");
        taken.push_back(name);
        return quoted_name(name);
    };
    base_ = short_name(schema_.name == "varve_tables" ? "varve_tables~" : schema_.name);
    table_ = space_ + "." + quoted_name(base_);
    partition_ = column(schema_.partition_attribute);
    if (sorted) sort_ = column(schema_.sort_attribute);
    item_ = column("item");
    position_ = column("position");
    bytes_ = column("bytes");
    entry_ = "name = " + quoted_text(schema_.name);

    // Arrays of sort keys, and whether the key of a row of `of` is that of `t`.
    const auto sorts = [&](const std::string& parameter) {
        if (!sorted) return std::string{};
        return ", " + parameter + (schema_.sort == store::SortType::integer ? "::bigint[]" : "::text[]");
    };
    const auto same_key = [&](const std::string& of) {
        return "t." + partition_ + " = " + of + ".partition" + (sorted ? " AND t." + sort_ + " = " + of + ".sort" : "");
    };
    select = "SELECT " + item_ + " FROM " + table_ + " WHERE " + partition_ + " = $1" +
             (sorted ? " AND " + sort_ + " = $2" : "");
    select_many = "SELECT k.n, t." + item_ + " FROM unnest($1::text[]" + sorts("$2") +
                  ") WITH ORDINALITY AS k(partition" + (sorted ? ", sort" : "") + ", n) JOIN " + table_ + " t ON " +
                  same_key("k");
    changes = page("item, partition, sort, position", " WHERE " + position_ + " > $1", position_ + " LIMIT $2");
    last_position = "SELECT greatest(last_erased, (SELECT max(" + position_ + ") FROM " + table_ + ")) FROM " + space_ +
                    ".varve_tables WHERE " + entry_;
    insert = "WITH a AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::text[]" + sorts("$3") +
             ") WITH ORDINALITY AS a(partition, item" + (sorted ? ", sort" : "") + ", n)) INSERT INTO " + table_ +
             " (" + partition_ + ", " + item_ + ", " + position_ + (sorted ? ", " + sort_ : "") +
             ") SELECT partition, item::jsonb, (" + last_position + ") + n" + (sorted ? ", sort" : "") +
             " FROM a WHERE NOT EXISTS (SELECT FROM a JOIN " + table_ + " t ON " + same_key("a") + ")";
}

std::vector<std::string> Table::creation() const {
    const bool sorted = !sort_.empty();
    const auto type = static_cast<std::size_t>(schema_.sort);
    return {"CREATE TABLE IF NOT EXISTS " + table_ + " (\n    " + partition_ + " text COLLATE \"C\" NOT NULL,\n    " +
                (sorted ? sort_ + " " + std::string{sort_types[type]} + " NOT NULL,\n    " : "") + item_ +
                " jsonb NOT NULL,\n    " + position_ + " bigint NOT NULL,\n    " + bytes_ +
                " integer GENERATED ALWAYS AS (octet_length(" + item_ + "::text)) STORED,\n    CONSTRAINT " +
                quoted_name(base_ + "~key") + " PRIMARY KEY (" + partition_ + (sorted ? ", " + sort_ : "") + "))",
            "CREATE UNIQUE INDEX IF NOT EXISTS " + quoted_name(base_ + "~position") + " ON " + table_ + " (" +
                position_ + ")",
            "INSERT INTO " + space_ + ".varve_tables VALUES (" + quoted_text(schema_.name) + ", " +
                quoted_text(schema_.partition_attribute) + ", " + quoted_text(schema_.sort_attribute) + ", '" +
                std::string{sort_type_words[type]} + "', " + quoted_text(schema_.expiry_attribute) +
                ", 0) ON CONFLICT DO NOTHING"};
}

std::string Table::page(const std::string& columns, const std::string& where, const std::string& order) const {
    const std::string sort = sort_.empty() ? "NULL" : sort_;
    const std::string by = order.substr(0, order.find(" LIMIT"));
    // The sum of what comes before: rows are read up to the limit, but only those of the page bring their items along.
    return "SELECT " + columns + " FROM (SELECT " + item_ + " AS item, " + partition_ + " AS partition, " + sort +
           " AS sort, " + position_ + " AS position, sum(" + bytes_ + ") OVER (ORDER BY " + by +
           " ROWS UNBOUNDED PRECEDING) - " + bytes_ + " AS before FROM (SELECT * FROM " + table_ + where +
           " ORDER BY " + order + ") AS found) AS page WHERE before < " + std::to_string(store::page_bytes) +
           " ORDER BY before";
}

std::string Table::range(const Range& range) const {
    const std::string from = std::string{range.from_exclusive ? " > " : " >= "} + "$3";
    const std::string to = std::string{range.to_exclusive ? " < " : " <= "} + (range.from ? "$4" : "$3");
    return page("item, partition, sort",
                " WHERE " + partition_ + " = $1" + (range.from ? " AND " + sort_ + from : "") +
                    (range.to ? " AND " + sort_ + to : ""),
                sort_ + (range.descending ? " DESC" : "") + " LIMIT $2");
}

std::string Table::scan(bool after) const {
    const bool sorted = !sort_.empty();
    const std::string key = partition_ + (sorted ? ", " + sort_ : "");
    const std::string segment = "($1::bigint = 1 OR (hashtextextended(" + partition_ +
                                ", 0) & 9223372036854775807) % " + "$1::bigint = $2::bigint)";
    return page("item, partition, sort",
                " WHERE " + segment + (after ? " AND (" + key + ") > ($4" + (sorted ? ", $5" : "") + ")" : ""),
                key + " LIMIT $3");
}

store::Key Table::key(const Result& rows, int row) const {
    store::Key key{.table = schema_.name, .partition = std::string{rows.text(row, 1)}, .sort = {}};
    if (schema_.sort == store::SortType::integer) key.sort = rows.integer(row, 2);
    if (schema_.sort == store::SortType::text) key.sort = std::string{rows.text(row, 2)};
    return key;
}

std::string catalogue_creation(const std::string& space) {
    return "CREATE TABLE IF NOT EXISTS " + space +
           ".varve_tables (\n    name text COLLATE \"C\" PRIMARY KEY,\n    partition_attribute text NOT NULL,\n    "
           "sort_attribute text NOT NULL,\n    sort_type text NOT NULL,\n    expiry_attribute text NOT NULL,\n    "
           "last_erased bigint NOT NULL)";
}

}  // namespace varve::postgres
