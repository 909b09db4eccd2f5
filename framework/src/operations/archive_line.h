#pragma once

#include "operations/checksum.h"
#include "operations/entry.h"

#include <varve/core/clock.h>
#include <varve/operations/archive.h>

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace varve::operations {

// The file: JSON, one object a line, ended by "\n".
//
//     file     := header {slot} {receipt} {table {row}} {snapshot} {counter | fence} [feed] end
//     line     := '{"line":N,' member ',"sum":"' 32 hexadecimal digits '"}'
//     header   := "header":{"version":1,"id","format","at","order":"changes" | "log","events_only"}
//     slot     := "slot":{"stream","version","item"}
//     receipt  := "receipt":{"stream","version","item"}
//     table    := "table":{"name","sorted","indexes"}
//     row      := "row":{"partition",["sort"],"rev","data"}
//     snapshot := "snapshot":{"stream","schema","item"}
//     counter  := "lock":{"name","drawn"}
//     fence    := "lock":{"name","fence"}
//     feed     := "feed":{"shards"}
//     end      := "end":{"slots","receipts","rows","snapshots","locks"}
//
// N counts lines from 1. `sum` is the beginning of the XXH3 of all bytes of the file before it, up to the `,"sum"`:
// so a line that is damaged, missing, doubled or in another place is the first whose sum is wrong, and the last line
// vouches for all. `item` has the attributes as store/item_text.h writes them; `indexes` and `data` are JSON, as text.

constexpr std::int64_t archive_version = 1;

struct Header {
    std::int64_t version = archive_version;
    std::string id;
    std::int64_t format = 0;  ///< of what is stored (transactions/system_table.h)
    Time at = {};
    std::string order;
    bool events_only = false;
};

struct End {
    std::uint64_t slots = 0;
    std::uint64_t receipts = 0;
    std::uint64_t rows = 0;
    std::uint64_t snapshots = 0;
    std::uint64_t locks = 0;
    bool operator==(const End&) const = default;
};

/// Counts what an end does.
void count(const Entry& entry, End& counts);
Moved moved(const End& counts);

/// Threads: one at a time.
class LineWriter {
  public:
    explicit LineWriter(std::ostream& to) : to_(to) {}

    void write(const Header& header);
    void write(const Entry& entry);
    /// What was counted; and makes sure that `to` has taken it all.
    void end();
    const End& counts() const { return counts_; }
    std::uint64_t bytes() const { return bytes_; }

  private:
    void write_line(const std::string& member);
    void check() const;

    std::ostream& to_;
    std::uint64_t line_ = 0;
    std::uint64_t bytes_ = 0;
    End counts_;
    Checksum sum_;
};

/// Reads what a LineWriter has written. CorruptionError naming the line that is not as it was written.
///
/// Threads: one at a time.
class LineReader {
  public:
    /// Reads the header. ConfigError for a file of another version.
    explicit LineReader(std::istream& from);

    const Header& header() const { return header_; }
    /// Nullopt: it was the end, all is whole.
    std::optional<Entry> next();

    std::uint64_t line() const { return line_; }  ///< that was read last; the first is 1
    const std::string& sum() const { return last_sum_; }
    std::uint64_t bytes() const { return bytes_; }
    const End& counts() const { return counts_; }
    [[noreturn]] void throw_damaged(const std::string& what) const;

  private:
    /// Up to its sum, which is as it has to be; with a '}' in place of it.
    std::string read_line();
    /// With its "\n", unless the file ends before that; empty: it has ended.
    std::string_view raw_line();

    std::istream& from_;
    std::string buffer_;
    std::size_t begin_ = 0;  // of what is left in it
    std::uint64_t line_ = 0;
    std::uint64_t bytes_ = 0;
    Header header_;
    End counts_;
    Checksum sum_;
    std::string last_sum_;
    std::string table_;        // whose rows come
    bool sorted_ = false;      // these
    std::size_t section_ = 0;  // of the last line
};

}  // namespace varve::operations
