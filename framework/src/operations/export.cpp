#include "operations/archive_line.h"
#include "operations/source.h"
#include "transactions/system_table.h"

#include <varve/core/ids.h>
#include <varve/operations/archive.h>

namespace varve::operations {

Moved export_store(store::ItemStore& from, std::ostream& to, const ExportOptions& options) {
    Source source{from, options.runtime};
    if (!options.events_only) source.begin_quiet();
    LineWriter writer{to};
    writer.write(Header{.id = uuid7(options.runtime),
                        .format = transactions::format_version,
                        .at = options.runtime.clock.get().now(),
                        .order = source.is_ordered() ? "changes" : "log",
                        .events_only = options.events_only});
    std::uint64_t written = 0;
    const auto write = [&](const Entry& entry) {
        writer.write(entry);
        if (++written % entries_between_progress != 0) return true;
        if (options.progress) options.progress({.items = written, .bytes = writer.bytes()});
        return !options.stop.stop_requested();
    };
    const auto write_events = [&] {
        SlotReader reader{from, options.runtime, 0};
        const store::Position end = source.end();
        for (std::vector<SlotReader::Found> found; reader.read(end, found); found.clear()) {
            for (SlotReader::Found& one : found) {
                if (!write(SlotEntry{std::move(one.slot)})) return false;
            }
        }
        return true;
    };
    const auto write_all = [&] {
        if (!source.slots(write) || !source.rest(write)) return false;
        source.check_quiet();
        return true;
    };
    const bool is_complete = options.events_only ? write_events() : write_all();
    if (is_complete) writer.end();
    Moved moved = operations::moved(writer.counts());
    moved.bytes = writer.bytes();
    moved.is_complete = is_complete;
    if (options.progress) options.progress({.items = written, .bytes = writer.bytes()});
    return moved;
}

}  // namespace varve::operations
