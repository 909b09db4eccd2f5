#include "feed/log.h"
#include "operations/check_run.h"
#include "transactions/bell.h"
#include "transactions/in_turn.h"

#include <varve/core/error.h>
#include <varve/core/fnv1a.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

namespace varve::operations {

using namespace transactions;

namespace {

/// Goes through the log, and compares it with the slots that it names and with the watermarks.
class Log {
  public:
    explicit Log(CheckRun& run) : run_(run) {}

    /// As far as it goes now. Called again, it goes on from there.
    void read() {
        store::Query query = feed::whole_log();
        query.first = static_cast<std::int64_t>(end_ + 1);
        while (!is_broken_ && run_.goes_on()) {
            store::Page page = run_.store.query(query);
            run_.count(page.records.size());
            for (const store::Record& record : page.records) {
                if (!readable(run_, record.key, [&] { look_at(record); })) {
                    run_.report.not_checked.push_back("the log from " + store::to_string(record.key) +
                                                      " on, since this piece of it cannot be read");
                    is_broken_ = true;
                    return;
                }
            }
            run_.tell(query.table);
            if (!page.next) return;
            query.next = std::move(page.next);
        }
    }

    bool is_broken() const { return is_broken_; }

    /// So much of a stream is in the log, as far as it was read.
    Version logged(std::string_view stream) const {
        const auto found = logged_.find(fnv1a(stream));
        return found == logged_.end() ? 0 : found->second;
    }

  private:
    void look_at(const store::Record& record) {
        const feed::LogItem piece = feed::decode_log_item(record);
        if (piece.first != end_ + 1) {
            run_.find("log", record.key,
                      (piece.first > end_ ? "nothing is in the log between it and position "
                                          : "it says again what is at position ") +
                          std::to_string(end_));
        }
        end_ = piece.last();
        run_.report.logged += static_cast<std::size_t>(end_ - piece.first + 1);
        // Whoever appends a piece has made sure that the watermarks have the one before.
        check_watermarks(std::exchange(last_, {}));
        std::vector<store::Key> slots;
        for (const feed::Run& run : piece.runs) {
            check_order(record.key, run);
            for (Version version = run.first; version <= run.last; ++version) {
                if (!run_.goes_on()) return;
                slots.push_back(slot_key(run.stream, version));
                if (slots.size() == slots_max) check_slots(record.key, std::exchange(slots, {}));
            }
        }
        check_slots(record.key, slots);
        last_ = piece.runs;
    }

    void check_order(const store::Key& piece, const feed::Run& run) {
        Version& logged = logged_[fnv1a(run.stream)];
        if (run.first != logged + 1) {
            run_.find("log", piece,
                      "it has versions " + std::to_string(run.first) + " to " + std::to_string(run.last) + " of '" +
                          run.stream + "', and what is before it in the log ends at " + std::to_string(logged));
        }
        logged = std::max(logged, run.last);
    }

    void check_slots(const store::Key& piece, const std::vector<store::Key>& slots) {
        read_in_turn(run_.store, slots, [&](std::size_t i, std::optional<store::Item> item) {
            try {
                const Slot slot = decode_slot(slots[i], std::move(item));
                const auto* committed = std::get_if<Committed>(&slot);
                if (committed == nullptr) {
                    run_.find("log", slots[i], store::to_string(piece) + " names it, and it is not committed");
                } else if (!is_followed(slots[i], committed->payload)) {
                    run_.find("log", slots[i], store::to_string(piece) + " names it, and nobody follows such a slot");
                }
            } catch (const CorruptionError&) {  // found where it is met
            }
        });
    }

    void check_watermarks(const std::vector<feed::Run>& runs) {
        std::vector<store::Key> keys;
        for (const feed::Run& run : runs) keys.push_back(watermark_key(run.stream));
        const std::vector<std::optional<store::Item>> items = run_.store.read(keys);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            try {
                const Version mark = watermark(keys[i], items[i]);
                if (mark >= runs[i].last) continue;
                run_.find("log", keys[i],
                          "it says " + std::to_string(mark) + ", and the stream is in the log up to version " +
                              std::to_string(runs[i].last) + ": that would get there twice");
            } catch (const CorruptionError&) {  // found where it is met
            }
        }
    }

    static constexpr std::size_t slots_max = 500;

    CheckRun& run_;
    store::Position end_ = 0;
    std::vector<feed::Run> last_;                        // of the piece before
    std::unordered_map<std::uint64_t, Version> logged_;  // by the hash of the stream's name
    bool is_broken_ = false;
};

void look_at_watermark(CheckRun& run, Log& log, const store::Record& record) {
    const std::string& stream = record.key.partition;
    const Version mark = watermark(record.key, record.item);
    if (mark <= log.logged(stream)) return;
    log.read();  // a watermark comes after what it speaks of
    if (mark <= log.logged(stream) || log.is_broken()) return;
    run.find("log", record.key,
             "it says " + std::to_string(mark) + ", and the stream is in the log up to version " +
                 std::to_string(log.logged(stream)) + ": nobody will see what is between");
}

void look_at_bell(CheckRun& run, const store::Record& record) {
    const Bell bell = decode_bell(record.key, record.item);
    ++run.report.bells;
    if (!run.may_be(bell.slot)) throw CorruptionError("the bell announces a slot that cannot be");
    unsigned shard = 0;
    const char* const end = bell.shard.data() + bell.shard.size();
    const auto [stopped, failure] = std::from_chars(bell.shard.data(), end, shard);
    const bool is_heard = failure == std::errc{} && stopped == end && std::to_string(shard) == bell.shard &&
                          shard < read_bell_shards(run.store);
    if (!is_heard) run.find("log", record.key, "the bell stands in a shard that nobody looks into");
}

/// Counts the committed slots above the watermarks.
void count_not_in_order(CheckRun& run) {
    run.each_page(events_table().name, [&](const std::vector<store::Record>& page) {
        std::vector<store::Key> marks;
        std::vector<Version> versions;
        for (const store::Record& record : page) {
            if (!is_followed(record.key, record.item) || committed_by(record.item) == nullptr) continue;
            marks.push_back(watermark_key(record.key.partition));
            versions.push_back(version_of(record.key));
        }
        const std::vector<std::optional<store::Item>> items = run.store.read(marks);
        for (std::size_t i = 0; i < marks.size(); ++i) {
            try {
                if (versions[i] > watermark(marks[i], items[i])) ++run.report.not_in_order;
            } catch (const CorruptionError&) {  // found where it is met
            }
        }
    });
}

}  // namespace

void check_log(CheckRun& run) {
    if (run.store.capabilities().ordered_changes) return;
    try {
        if (read_bell_shards(run.store) == 0) return;
    } catch (const CorruptionError&) {  // found where it is met
        return;
    }
    for (const store::TableSchema* schema : {&bells_table(), &watermarks_table(), &feed::log_table()})
        run.know(*schema);
    Log log{run};
    log.read();
    run.each_page(watermarks_table().name, [&](const std::vector<store::Record>& page) {
        for (const store::Record& record : page)
            readable(run, record.key, [&] { look_at_watermark(run, log, record); });
    });
    run.each_page(bells_table().name, [&](const std::vector<store::Record>& page) {
        for (const store::Record& record : page) readable(run, record.key, [&] { look_at_bell(run, record); });
    });
    count_not_in_order(run);
}

}  // namespace varve::operations
