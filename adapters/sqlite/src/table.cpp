#include "table.h"

#include <varve/store/item_store.h>

#include <algorithm>
#include <array>
#include <vector>

namespace varve::sqlite {
namespace {

constexpr std::array<const char*, 3> sort_types = {"", "INTEGER", "TEXT"};

std::string quoted_name(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) {
        if (c == '"') text += '"';
        text += c;
    }
    return text + '"';
}

std::string literal(std::string_view value) {
    std::string text = "'";
    for (const char c : value) {
        if (c == '\'') text += '\'';
        text += c;
    }
    return text + '\'';
}

/// SQLite folds the case of ASCII letters only.
std::string folded(std::string text) {
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
}

}  // namespace

Table::Table(store::TableSchema schema, std::string sql_name)
    : schema_(std::move(schema)), sql_name_(std::move(sql_name)) {
    const bool sorted = schema_.sort != store::SortType::none;
    std::vector<std::string> taken;
    const auto column = [&taken](std::string name) {
        while (std::ranges::find(taken, folded(name)) != taken.end()) name.insert(0, "_");
        taken.push_back(folded(name));
        return quoted_name(name);
    };
    table_ = quoted_name(sql_name_);
    partition_ = column(schema_.partition_attribute);
    if (sorted) sort_ = column(schema_.sort_attribute);
    item_ = column("item");
    position_ = column("position");

    const std::string key = partition_ + (sorted ? ", " + sort_ : "");
    const std::string here = " WHERE " + partition_ + " = ?1" + (sorted ? " AND " + sort_ + " = ?2" : "");
    const std::string insert = "INSERT INTO " + table_ + " (" + key + ", " + item_ + ", " + position_ + ") VALUES (?1" +
                               (sorted ? ", ?2" : "") + ", ?3, ?4) ON CONFLICT (" + key + ") DO ";
    select = "SELECT " + item_ + " FROM " + table_ + here;
    insert_if_absent = insert + "NOTHING";
    put = insert + "UPDATE SET " + item_ + " = ?3, " + position_ + " = ?4";
    erase = "DELETE FROM " + table_ + here;
    changes = "SELECT " + position_ + ", " + item_ + ", " + key + " FROM " + table_ + " WHERE " + position_ +
              " > ?1 ORDER BY " + position_ + " LIMIT ?2";
    const std::string entry = " WHERE name = " + literal(schema_.name);
    last_position = "SELECT max(last_erased, ifnull((SELECT max(" + position_ + ") FROM " + table_ +
                    "), 0)) FROM varve_tables" + entry;
    set_last_erased = "UPDATE varve_tables SET last_erased = ?1" + entry;
}

void Table::create(Connection& connection) const {
    const bool sorted = !sort_.empty();
    connection.execute(
        "CREATE TABLE " + table_ + " (" + partition_ + " TEXT NOT NULL, " +
        (sorted ? sort_ + " " + sort_types[static_cast<std::size_t>(schema_.sort)] + " NOT NULL, " : "") + item_ +
        " TEXT NOT NULL, " + position_ + " INTEGER NOT NULL, PRIMARY KEY (" + partition_ +
        (sorted ? ", " + sort_ : "") + ")) WITHOUT ROWID");
    connection.execute("CREATE UNIQUE INDEX " + quoted_name(sql_name_ + "~position") + " ON " + table_ + " (" +
                       position_ + ")");
}

std::string Table::range(const Range& range) const {
    return "SELECT " + item_ + ", " + partition_ + ", " + sort_ + " FROM " + table_ + " WHERE " + partition_ + " = ?1" +
           (range.from ? " AND " + sort_ + (range.from_exclusive ? " > ?2" : " >= ?2") : "") +
           (range.to ? " AND " + sort_ + (range.to_exclusive ? " < ?3" : " <= ?3") : "") + " ORDER BY " + sort_ +
           (range.descending ? " DESC" : "") + " LIMIT ?4";
}

std::string Table::scan(bool after) const {
    const bool sorted = !sort_.empty();
    const std::string key = partition_ + (sorted ? ", " + sort_ : "");
    return "SELECT " + item_ + ", " + key + " FROM " + table_ +
           (after ? " WHERE (" + key + ") > (?1" + (sorted ? ", ?2" : "") + ")" : "") + " ORDER BY " + key;
}

store::Key Table::key(const Statement& row, int column) const {
    store::Key key{.table = schema_.name, .partition = std::string{row.text(column)}, .sort = {}};
    if (schema_.sort == store::SortType::integer) key.sort = row.integer(column + 1);
    if (schema_.sort == store::SortType::text) key.sort = std::string{row.text(column + 1)};
    return key;
}

void create_catalogue(Connection& connection) {
    connection.execute(
        "CREATE TABLE varve_tables (name TEXT PRIMARY KEY, sql_name TEXT NOT NULL, partition_attribute TEXT NOT NULL, "
        "sort_attribute TEXT NOT NULL, sort_type TEXT NOT NULL, expiry_attribute TEXT NOT NULL, "
        "last_erased INTEGER NOT NULL) WITHOUT ROWID");
}

std::optional<Table> find_table(Connection& connection, const std::string& name) {
    static const std::string sql =
        "SELECT sql_name, partition_attribute, sort_attribute, sort_type, expiry_attribute FROM varve_tables "
        "WHERE name = ?1";
    Statement row = connection.prepare(sql);
    if (!row.bind(1, std::string_view{name}).step()) return std::nullopt;
    store::TableSchema schema{.name = name,
                              .partition_attribute = std::string{row.text(1)},
                              .sort_attribute = std::string{row.text(2)},
                              .expiry_attribute = std::string{row.text(4)}};
    const auto type = std::ranges::find(sort_types, row.text(3));
    if (type == sort_types.end()) {
        throw CorruptionError("varve_tables has an unknown sort type for table '" + name +
                              "': " + std::string{row.text(3)});
    }
    schema.sort = static_cast<store::SortType>(type - sort_types.begin());
    return Table{std::move(schema), std::string{row.text(0)}};
}

Table create_table(Connection& connection, const store::TableSchema& schema) {
    const auto taken = [&](const std::string& name) {
        if (folded(name).starts_with("sqlite_")) return true;
        Statement row = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE");
        return row.bind(1, std::string_view{name}).step();
    };
    const std::string base = folded(schema.name).starts_with("sqlite_") ? "~" + schema.name : schema.name;
    std::string sql_name = base;
    for (int i = 2; taken(sql_name); ++i) sql_name = base + "~" + std::to_string(i);
    Table table{schema, sql_name};
    table.create(connection);
    connection
        .prepare(
            "INSERT INTO varve_tables (name, sql_name, partition_attribute, sort_attribute, sort_type, "
            "expiry_attribute, last_erased) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0)")
        .bind(1, std::string_view{schema.name})
        .bind(2, std::string_view{sql_name})
        .bind(3, std::string_view{schema.partition_attribute})
        .bind(4, std::string_view{schema.sort_attribute})
        .bind(5, std::string_view{sort_types[static_cast<std::size_t>(schema.sort)]})
        .bind(6, std::string_view{schema.expiry_attribute})
        .run();
    return table;
}

}  // namespace varve::sqlite
