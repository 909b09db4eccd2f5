#pragma once

#include "connection.h"

#include <varve/store/item_store.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace varve::postgres {

/// How a table of the port lies in the schema:
///
///     CREATE TABLE varve."accounts" (
///         "id" text COLLATE "C" NOT NULL,  -- the partition key, under its attribute's name
///         "version" bigint NOT NULL,       -- the sort key, if there is one: bigint, or text COLLATE "C"
///         "item" jsonb NOT NULL,           -- the other attributes, see varve/store/item_text.h; bytes in hexadecimal
///         "position" bigint NOT NULL,      -- of the item's last write
///         "bytes" integer GENERATED ALWAYS AS (octet_length("item"::text)) STORED,  -- so that a page can end in time
///         CONSTRAINT "accounts~key" PRIMARY KEY ("id", "version"));
///     CREATE UNIQUE INDEX "accounts~position" ON varve."accounts" ("position");
///
/// and in varve.varve_tables a row per table: its schema, and `last_erased`. Whoever writes to a table locks this row
/// until it has committed; so positions are given in the order of commits.
///
/// The next position is one more than the largest in the table, or than `last_erased` if that is larger: the last
/// position that was given when the item that had it was erased. A counter in the row would do as well, but a row that
/// every commit changes leaves a dead one behind each time, and all of them stay while anybody's transaction is open.
///
/// Names follow from those of the port alone. One that is too long for the server ends in '~' and a hash; a table that
/// is called varve_tables is "varve_tables~", and a column whose name is taken gets a '_' before it.
///
/// Threads: immutable.
class Table {
  public:
    /// `space`: the quoted name of the schema.
    Table(const std::string& space, store::TableSchema schema);

    const store::TableSchema& schema() const { return schema_; }

    /// The statements that create it, and do nothing if it is there. The catalogue is there.
    std::vector<std::string> creation() const;
    /// Quoted, with its schema.
    const std::string& sql_name() const { return table_; }
    const std::string& partition() const { return partition_; }
    /// Empty if there is none.
    const std::string& sort() const { return sort_; }
    const std::string& item() const { return item_; }
    const std::string& position() const { return position_; }
    /// "name = 'accounts'"
    const std::string& entry() const { return entry_; }

    std::string select;         ///< $1 partition, $2 sort; column 0: item
    std::string select_many;    ///< $1, $2: arrays of them; columns: which, from 1, and item
    std::string changes;        ///< $1 after, $2 limit; columns: item, partition, sort, position
    std::string last_position;  ///< column 0: the last one given
    /// $1 partitions, $2 items, $3 sorts, arrays of as many. Inserts all of them, or none if one of these keys is
    /// there. The table is locked.
    std::string insert;

    /// Columns item, partition, sort; $1 partition, $2 limit, then from and to.
    struct Range {
        bool from;
        bool from_exclusive;
        bool to;
        bool to_exclusive;
        bool descending;
    };
    std::string range(const Range& range) const;
    /// Columns item, partition, sort, in the order of keys; $1 segments, $2 segment, $3 limit, then the key it goes on
    /// after if `after`.
    std::string scan(bool after) const;

    /// Reads columns 1 (partition) and 2 (sort).
    store::Key key(const Result& rows, int row) const;

  private:
    /// As many of the rows that fit " WHERE …", in this order, as belong into one page, with those columns.
    std::string page(const std::string& columns, const std::string& where, const std::string& order) const;

    store::TableSchema schema_;
    std::string space_;
    std::string base_;
    std::string table_;
    std::string partition_;
    std::string sort_;
    std::string item_;
    std::string position_;
    std::string bytes_;
    std::string entry_;
};

/// As the catalogue calls a store::SortType.
inline constexpr std::array<std::string_view, 3> sort_type_words{"none", "integer", "text"};

/// Quoted as a name of SQL.
std::string quoted_name(std::string_view name);
/// Quoted as a text of SQL.
std::string quoted_text(std::string_view text);

/// The statement that creates the table that describes all others, and does nothing if it is there.
std::string catalogue_creation(const std::string& space);

}  // namespace varve::postgres
