#pragma once

#include "connection.h"

#include <varve/store/item_store.h>

#include <optional>
#include <string>

namespace varve::sqlite {

/// How a table of the port lies in the file:
///
///     CREATE TABLE "accounts" (
///         "id" TEXT NOT NULL,              -- the partition key, under its attribute's name
///         "version" INTEGER NOT NULL,      -- the sort key, if there is one: INTEGER or TEXT
///         item TEXT NOT NULL,              -- the other attributes, see varve/store/item_text.h
///         position INTEGER NOT NULL,       -- of the item's last write
///         PRIMARY KEY ("id", "version")) WITHOUT ROWID;
///     CREATE UNIQUE INDEX "accounts~position" ON "accounts" (position);
///
/// and in the file's own table `varve_tables` a row per table: its schema, the name it has in SQLite, and
/// `last_erased`.
///
/// The next position is one more than the largest in the table, or than `last_erased` if that is larger: the last
/// position that was given when an item was erased. A counter would do as well, but each commit would write its page.
///
/// SQLite compares names without regard to case and keeps some to itself; a table whose name is taken is kept as
/// "name~2", which cannot be anybody's name in the port. A column whose name is taken gets a '_' before it.
///
/// Threads: immutable.
class Table {
  public:
    Table(store::TableSchema schema, std::string sql_name);

    const store::TableSchema& schema() const { return schema_; }
    const std::string& sql_name() const { return sql_name_; }

    /// Creates table and index in an open transaction.
    void create(Connection& connection) const;

    // Parameters: 1 partition, 2 sort, 3 item, 4 position, as far as the statement has them.
    std::string select;  ///< column 0: item
    std::string insert_if_absent;
    std::string put;
    std::string erase;
    std::string changes;          ///< 1 after, 2 limit; columns: position, item, partition, sort
    std::string last_position;    ///< column 0: the last one given
    std::string set_last_erased;  ///< 1 position

    /// Columns item, partition, sort; 1 partition, 2 from, 3 to, 4 limit.
    struct Range {
        bool from;  ///< there is a parameter 2
        bool from_exclusive;
        bool to;  ///< there is a parameter 3
        bool to_exclusive;
        bool descending;
    };
    std::string range(const Range& range) const;
    /// Columns item, partition, sort, in the order of keys; after the key in 1, 2 if `after`.
    std::string scan(bool after) const;

    /// Reads columns `column` (partition) and `column` + 1 (sort).
    store::Key key(const Statement& row, int column) const;

  private:
    store::TableSchema schema_;
    std::string sql_name_;
    std::string table_;
    std::string partition_;
    std::string sort_;  // empty if there is none
    std::string item_;
    std::string position_;
};

/// Creates the table that describes all others, in an open transaction.
void create_catalogue(Connection& connection);

/// The table as the file describes it; nullopt: it has none of this name.
std::optional<Table> find_table(Connection& connection, const std::string& name);

/// Creates the table as described by `schema` in an open transaction, in which `find_table` has not found it.
Table create_table(Connection& connection, const store::TableSchema& schema);

}  // namespace varve::sqlite
