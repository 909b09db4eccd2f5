#include "operations/archive_line.h"
#include "operations/target.h"

#include <varve/core/error.h>
#include <varve/operations/archive.h>

namespace varve::operations {
namespace {

constexpr std::uint64_t lines_between_progress = 1000;

}  // namespace

Moved import_store(std::istream& from, store::ItemStore& to, const ImportOptions& options) {
    LineReader reader{from};
    Target target{to, options.runtime, "export " + reader.header().id, Target::Existing::refuse};
    const Mark known = target.mark();
    const auto result = [&](bool is_complete) {
        Moved moved = operations::moved(reader.counts());
        moved.bytes = reader.bytes();
        moved.is_complete = is_complete;
        return moved;
    };
    const auto tell = [&] {
        if (options.progress) options.progress({.items = reader.line() - 1, .bytes = reader.bytes()});
    };
    while (std::optional<Entry> entry = reader.next()) {
        if (reader.line() == known.at && reader.sum() != known.what) {
            throw ConfigError("the import into this store was begun with another file of the same id: line " +
                              std::to_string(reader.line()) + " differs; go on with that one");
        }
        if (reader.line() > known.at && !target.was_done()) {
            target.add(*std::move(entry), {.at = reader.line(), .what = reader.sum()});
        } else if (!target.was_done()) {
            target.pass_by(*entry);
        }
        if (reader.line() % lines_between_progress != 0) continue;
        tell();
        if (options.stop.stop_requested()) {
            if (!target.was_done()) target.flush();
            return result(false);
        }
    }
    if (reader.line() - 1 < known.at) reader.throw_damaged("is the end, and more was imported before");
    if (!target.was_done()) target.complete(reader.counts().receipts);
    tell();
    return result(true);
}

}  // namespace varve::operations
