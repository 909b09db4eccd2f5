#include "operations/archive_line.h"

#include "events/snapshot.h"
#include "locks/stored_lock.h"
#include "transactions/slot.h"
#include "transactions/system_table.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/store/item_text.h>

#include <istream>
#include <limits>
#include <ostream>

namespace varve::operations {
namespace {

constexpr std::size_t sum_digits = Checksum::digits;
constexpr std::string_view sum_begins = ",\"sum\":\"";
constexpr std::string_view tail_ends = "\"}\n";
constexpr std::size_t tail_bytes = sum_begins.size() + sum_digits + tail_ends.size();
/// Of an item of 16 MB of which each byte is escaped twice.
constexpr std::size_t line_bytes_max = std::size_t{256} << 20;
constexpr std::size_t read_bytes = std::size_t{1} << 20;

struct SlotMember {
    std::string stream;
    transactions::Version version = 0;
    json::Raw item;
};
struct TableMember {
    std::string name;
    bool sorted = false;
    std::string indexes;
};
struct RowMember {
    std::string partition;
    std::optional<std::string> sort;
    std::string rev;
    std::string data;
};
struct SnapshotMember {
    std::string stream;
    std::string schema;
    json::Raw item;
};
struct LockMember {
    std::string name;
    std::optional<std::int64_t> drawn;
    std::optional<std::int64_t> fence;
};
struct FeedMember {
    unsigned shards = 0;
};
struct HeaderMember {
    std::int64_t version = 0;
    std::string id;
    std::int64_t format = 0;
    Time at;
    std::string order;
    bool events_only = false;
};

/// One of them, behind the line's number.
struct Line {
    std::uint64_t line = 0;
    std::optional<HeaderMember> header;
    std::optional<SlotMember> slot;
    std::optional<SlotMember> receipt;
    std::optional<TableMember> table;
    std::optional<RowMember> row;
    std::optional<SnapshotMember> snapshot;
    std::optional<LockMember> lock;
    std::optional<FeedMember> feed;
    std::optional<End> end;
};

std::string quoted(std::string_view name, std::string_view text) {
    return "\"" + std::string{name} + "\":" + json::quote(text);
}

std::string member_of(std::string_view name, const store::Record& slot) {
    return "\"" + std::string{name} + "\":{" + quoted("stream", slot.key.partition) +
           ",\"version\":" + std::to_string(transactions::version_of(slot.key)) +
           ",\"item\":" + store::item_text(slot.item) + "}";
}

struct MemberOf {
    std::string operator()(const SlotEntry& e) const { return member_of("slot", e.slot); }
    std::string operator()(const ReceiptEntry& e) const { return member_of("receipt", e.slot); }
    std::string operator()(const TableEntry& e) const {
        return "\"table\":" + json::encode(TableMember{e.name, e.sorted, e.indexes});
    }
    std::string operator()(const RowEntry& e) const {
        const auto* sort = std::get_if<std::string>(&e.key.sort);
        return "\"row\":{" + quoted("partition", e.key.partition) + (sort ? "," + quoted("sort", *sort) : "") + "," +
               quoted("rev", e.rev) + "," + quoted("data", e.data) + "}";
    }
    std::string operator()(const SnapshotEntry& e) const {
        return "\"snapshot\":{" + quoted("stream", e.snapshot.key.partition) + "," +
               quoted("schema", std::get<std::string>(e.snapshot.key.sort)) +
               ",\"item\":" + store::item_text(e.snapshot.item) + "}";
    }
    std::string operator()(const CounterEntry& e) const {
        return "\"lock\":" + json::encode(LockMember{e.lock, e.drawn, {}});
    }
    std::string operator()(const FenceEntry& e) const {
        return "\"lock\":" + json::encode(LockMember{e.lock, {}, e.fence});
    }
    std::string operator()(const FeedEntry& e) const { return "\"feed\":" + json::encode(FeedMember{e.shards}); }
};

/// Where an entry may stand: after those of smaller or the same sections.
struct SectionOf {
    std::size_t operator()(const SlotEntry&) const { return 0; }
    std::size_t operator()(const ReceiptEntry&) const { return 1; }
    std::size_t operator()(const TableEntry&) const { return 2; }
    std::size_t operator()(const RowEntry&) const { return 2; }
    std::size_t operator()(const SnapshotEntry&) const { return 3; }
    std::size_t operator()(const CounterEntry&) const { return 4; }
    std::size_t operator()(const FenceEntry&) const { return 4; }
    std::size_t operator()(const FeedEntry&) const { return 5; }
};

}  // namespace

void count(const Entry& entry, End& counts) {
    counts.slots += std::holds_alternative<SlotEntry>(entry);
    counts.receipts += std::holds_alternative<ReceiptEntry>(entry);
    counts.rows += std::holds_alternative<RowEntry>(entry);
    counts.snapshots += std::holds_alternative<SnapshotEntry>(entry);
    counts.locks += std::holds_alternative<CounterEntry>(entry) || std::holds_alternative<FenceEntry>(entry);
}

Moved moved(const End& counts) {
    return {.slots = counts.slots,
            .receipts = counts.receipts,
            .rows = counts.rows,
            .snapshots = counts.snapshots,
            .locks = counts.locks};
}

void LineWriter::write(const Header& header) {
    write_line("\"header\":" + json::encode(HeaderMember{header.version, header.id, header.format, header.at,
                                                         header.order, header.events_only}));
}

void LineWriter::write(const Entry& entry) {
    count(entry, counts_);
    write_line(std::visit(MemberOf{}, entry));
}

void LineWriter::end() {
    write_line("\"end\":" + json::encode(counts_));
    to_.flush();
    check();
}

void LineWriter::write_line(const std::string& member) {
    std::string line = "{\"line\":" + std::to_string(++line_) + "," + member;
    sum_.add(line);
    std::string tail{sum_begins};
    tail += sum_.hex();
    tail += tail_ends;
    sum_.add(tail);
    line += tail;
    bytes_ += line.size();
    to_.write(line.data(), static_cast<std::streamsize>(line.size()));
    check();
}

void LineWriter::check() const {
    if (to_) return;
    throw UnavailableError("the export could not be written after " + std::to_string(bytes_) +
                           " bytes; see that there is room for it, and begin again");
}

LineReader::LineReader(std::istream& from) : from_(from) {
    auto line = json::decode<Line>(read_line());
    if (!line || !line->header) throw_damaged("is not the first of an export");
    const HeaderMember& header = *line->header;
    if (header.version != archive_version || header.format != transactions::format_version) {
        throw ConfigError("the file is an export of version " + std::to_string(header.version) +
                          ", of a store in format " + std::to_string(header.format) + "; this program reads version " +
                          std::to_string(archive_version) + " and format " +
                          std::to_string(transactions::format_version));
    }
    if (header.id.empty()) throw_damaged("has no id");
    header_ = {header.version, header.id, header.format, header.at, header.order, header.events_only};
}

std::optional<Entry> LineReader::next() {
    const std::string text = read_line();
    auto line = json::decode<Line>(text, {.bytes_max = line_bytes_max});
    if (!line) throw_damaged("cannot be read (" + line.error().message + ")");
    if (line->line != line_) throw_damaged("has the number " + std::to_string(line->line));
    const auto item_in = [&](const json::Raw& raw) {
        try {
            return store::parse_item(raw.text);
        } catch (const CorruptionError& error) {
            throw_damaged(std::string{"has an item that cannot be read ("} + error.what() + ")");
        }
    };
    const auto slot_in = [&](const SlotMember& slot) {
        store::Record record{transactions::slot_key(slot.stream, slot.version), item_in(slot.item)};
        if (slot.stream.empty() || slot.version < 1 || transactions::committed_by(record.item) == nullptr)
            throw_damaged("is no committed slot");
        return record;
    };
    std::optional<Entry> entry;
    if (line->slot) {
        entry = SlotEntry{slot_in(*line->slot)};
    } else if (line->receipt) {
        entry = ReceiptEntry{slot_in(*line->receipt)};
    } else if (line->table) {
        table_ = line->table->name;
        sorted_ = line->table->sorted;
        entry = TableEntry{table_, sorted_, std::move(line->table->indexes)};
    } else if (line->row) {
        RowMember& row = *line->row;
        if (table_.empty() || sorted_ != row.sort.has_value()) throw_damaged("is no row of the table before it");
        store::Key key{table_, std::move(row.partition)};
        if (row.sort) key.sort = *std::move(row.sort);
        entry = RowEntry{std::move(key), std::move(row.rev), std::move(row.data)};
    } else if (line->snapshot) {
        entry = SnapshotEntry{
            {events::snapshot_key(line->snapshot->stream, line->snapshot->schema), item_in(line->snapshot->item)}};
    } else if (line->lock && line->lock->drawn) {
        entry = CounterEntry{line->lock->name, *line->lock->drawn};
    } else if (line->lock && line->lock->fence) {
        entry = FenceEntry{line->lock->name, *line->lock->fence};
    } else if (line->feed) {
        entry = FeedEntry{line->feed->shards};
    } else if (line->end) {
        if (!(*line->end == counts_)) throw_damaged("counts other lines than there are");
        if (!raw_line().empty()) throw_damaged("is the end, and there is more behind it");
        return std::nullopt;
    } else {
        throw_damaged("has nothing that this program knows");
    }
    const std::size_t section = std::visit(SectionOf{}, *entry);
    if (section < section_ || (section > 0 && header_.events_only)) throw_damaged("is not in its place");
    section_ = section;
    count(*entry, counts_);
    return entry;
}

std::string_view LineReader::raw_line() {
    for (std::size_t looked_at = begin_;;) {
        const std::size_t end = buffer_.find('\n', looked_at);
        if (end != std::string::npos) {
            const std::string_view line = std::string_view{buffer_}.substr(begin_, end + 1 - begin_);
            begin_ = end + 1;
            return line;
        }
        looked_at = buffer_.size();
        if (looked_at - begin_ > line_bytes_max) break;
        buffer_.erase(0, begin_);
        looked_at -= begin_;
        begin_ = 0;
        buffer_.resize(looked_at + read_bytes);
        from_.read(buffer_.data() + looked_at, read_bytes);
        buffer_.resize(looked_at + static_cast<std::size_t>(from_.gcount()));
        if (buffer_.size() == looked_at) break;
    }
    return std::string_view{buffer_}.substr(begin_);
}

std::string LineReader::read_line() {
    const std::string_view raw = raw_line();
    ++line_;
    if (raw.empty()) throw_damaged("is missing: the file ends before it");
    if (raw.size() <= tail_bytes || !raw.ends_with(tail_ends)) throw_damaged("is cut short");
    const std::string_view content = raw.substr(0, raw.size() - tail_bytes);
    const std::string_view tail = raw.substr(content.size());
    sum_.add(content);
    std::string sum = sum_.hex();
    if (!tail.starts_with(sum_begins) || tail.substr(sum_begins.size(), sum_digits) != sum)
        throw_damaged("is not as it was written, or not in its place: its sum is another one");
    sum_.add(tail);
    bytes_ += raw.size();
    last_sum_ = std::move(sum);
    return std::string{content} + "}";
}

void LineReader::throw_damaged(const std::string& what) const {
    throw CorruptionError("line " + std::to_string(line_) + " of the export " + what +
                          ". Nothing of it, or of what comes behind it, was imported; get the file as it was written");
}

}  // namespace varve::operations
