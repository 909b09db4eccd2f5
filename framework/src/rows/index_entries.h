#pragma once

#include <varve/rows/indexes.h>
#include <varve/store/item_store.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What indexes say is kept in rows of a table of the framework's own, `indexes`: one partition for each index, in it an
// entry for each row that has a value.
//
//     partition := table "/" field
//     sort      := value 0x01                              of a Unique
//                | value 0x01 partition [0x01 sort]        of an Index: the row's key
//     data      := {"partition":"c-17","sort":""}          the row's key (JSON)
//
// A value is text that is ordered as the field is. Bytes 0x00 to 0x02 in values and keys are written as 0x02 and 0x01
// to 0x03, so that 0x01 ends them and sorts before all that they may go on with.
//
//     value := "false" | "true"                            bool
//            | 20 digits                                   integers, times and durations of 0 or more, by their count
//            | "-" 20 digits of: 2^63 + number             below 0
//            | 16 hexadecimal digits                       floating: the bits of a double, all inverted below 0, else
//                                                          the first one
//            | the text; of an enum the enumerator's name

namespace varve::detail {

/// The table of all entries.
extern const RowTable index_rows;

/// As long as a sort key may be.
inline constexpr std::size_t entry_bytes_max = 1024;

/// "customers.email"
std::string name_of_index(const RowTable& table, std::size_t index);
/// What an index is, apart from its name, for those who compare: "unique text".
std::string form_of_index(const IndexedField& field);

/// One place in an index for each of the table's; nullopt: the row has none there.
using Entries = std::vector<std::optional<store::Key>>;
/// InvalidError naming the field, if a value is too long; CorruptionError if the row cannot be read.
Entries entries_of(const RowTable& table, const store::Key& row, const std::optional<std::string>& data);
/// Those that a row may have that somebody has written, perhaps without indexes: what cannot have an entry has none.
Entries entries_left_by(const RowTable& table, const store::Key& row, const std::optional<std::string>& data);
/// That of a row with this value (ordered_value), for who does not know the row's type.
struct EntryOf {
    std::string_view table;
    std::string_view field;
    bool unique;
};
store::Key entry_of_value(const EntryOf& of, const std::string& value, const store::Key& row);
store::Key entry_of_unique(const RowTable& table, std::size_t index, const std::string& sort);
/// All that the range may find.
store::Query query_of(const RowTable& table, const IndexRange& range);
/// The rows that these entries name, in their order.
std::vector<store::Key> rows_named_by(const RowTable& table, const std::vector<StoredRow>& entries);
/// The row, if it is one that the range asks for: an entry may name one that has changed. CorruptionError if it cannot
/// be read.
std::optional<StoredRow> row_in(const IndexRange& range, const RowTable& table, const store::Key& key,
                                std::optional<std::string> data);

/// The value of an entry, as people read it.
std::string value_in(const store::Key& entry);
std::string encode_entry(const store::Key& row);
/// CorruptionError for what is none.
RowKey decode_entry(const store::Key& entry, const std::string& data);

}  // namespace varve::detail
