#include "operations/archive_line.h"
#include "operations/comparison.h"
#include "operations/source.h"
#include "operations/target.h"

#include <varve/core/error.h>
#include <varve/operations/copy.h>

namespace varve::operations {
namespace {

/// Stands in the mark for the slot at its place, so that no other store is taken for the one it began with.
std::string name_of(const store::Record& slot) {
    return *transactions::committed_by(slot.item) + " " + store::to_string(slot.key);
}

void check_begun_here(store::ItemStore& from, const Runtime& runtime, const Mark& mark) {
    if (mark == Mark{}) return;
    SlotReader reader{from, runtime, mark.at - 1};
    std::vector<SlotReader::Found> found;
    while (found.empty() && reader.read(mark.at, found)) {
    }
    if (!found.empty() && name_of(found.front().slot) == mark.what) return;
    throw ConfigError("the copy into this store was begun from another one: at position " + std::to_string(mark.at) +
                      " that had '" + mark.what + "'; name that, or begin anew with an empty store");
}

/// One run.
class Copying {
  public:
    Copying(store::ItemStore& from, store::ItemStore& to, const CopyOptions& options)
        : from_(from),
          options_(options),
          source_(from, options.runtime),
          target_(to, options.runtime, "copy", Target::Existing::replace),
          mark_(target_.mark()) {
        if (target_.was_done()) throw ConfigError("the store is not empty: a copy into it is complete; name a new one");
        check_begun_here(from, options.runtime, mark_);
    }

    Copied run() {
        counts_.slots = mark_.slots;
        if (!follow()) return stopped();
        const bool all = source_.rest([&](Entry entry) { return add(std::move(entry)); });
        target_.flush();
        if (!all) return stopped();
        Comparison comparison{from_, target_.store(), options_.runtime};
        target_.check_is_mine();
        comparison.remove_others();
        std::vector<Difference> differences = comparison.differences();
        source_.check_quiet();
        const bool is_complete = differences.empty();
        if (is_complete) target_.complete(counts_.receipts);
        return copied(is_complete, std::move(differences));
    }

  private:
    /// Slots, until the writers have stopped; false: it was asked to stop.
    bool follow() {
        SlotReader reader{from_, options_.runtime, mark_.at};
        for (;;) {
            const bool is_last = !options_.finish || options_.finish();
            if (is_last) source_.begin_quiet();
            const store::Position end = source_.end();
            for (std::vector<SlotReader::Found> found; reader.read(end, found); found.clear()) {
                for (SlotReader::Found& one : found) {
                    mark_ = {.at = one.position, .what = name_of(one.slot)};
                    if (!add(SlotEntry{std::move(one.slot)})) return false;
                }
            }
            target_.flush();
            tell();
            if (is_last) return true;
            options_.runtime.clock.get().sleep_for(options_.poll_interval, options_.stop);
            if (options_.stop.stop_requested()) return false;
        }
    }

    bool add(Entry entry) {
        count(entry, counts_);
        if (const std::optional<store::Record> record = record_of(entry))
            bytes_ += store::bytes(record->key, record->item);
        target_.add(std::move(entry), mark_);
        if (++items_ % entries_between_progress != 0) return true;
        tell();
        return !options_.stop.stop_requested();
    }

    void tell() const {
        if (options_.progress) options_.progress({.items = items_, .bytes = bytes_});
    }

    Copied stopped() {
        target_.flush();
        return copied(false, {});
    }
    Copied copied(bool is_complete, std::vector<Difference> differences) const {
        Copied copied{.moved = moved(counts_), .differences = std::move(differences)};
        copied.moved.bytes = bytes_;
        copied.moved.is_complete = is_complete;
        return copied;
    }

    store::ItemStore& from_;
    const CopyOptions& options_;
    Source source_;
    Target target_;
    Mark mark_;  // of the last slot
    End counts_;
    std::uint64_t items_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace

Copied copy_store(store::ItemStore& from, store::ItemStore& to, const CopyOptions& options) {
    return Copying{from, to, options}.run();
}

}  // namespace varve::operations
