#include "transactions/sweep_scans.h"

#include "transactions/bell.h"

#include <algorithm>

namespace varve::transactions {
namespace {

constexpr std::uint32_t segments = 4;

}  // namespace

Sweeper::Scans::Scans(Coordinator& coordinator, std::vector<std::string> tables, const ScanOptions& options)
    : coordinator_(coordinator),
      settler_(coordinator),
      tombstones_(coordinator),
      tables_(std::move(tables)),
      options_(options),
      last_sweep_(coordinator_.runtime().clock.get().steady_now()) {
    next_scan_ = next_page_ = last_sweep_;
}

std::size_t Sweeper::Scans::sweep() {
    read_pages();
    settle_due();
    return unsettled_.size();
}

void Sweeper::Scans::read_pages() {
    const SteadyTime now = coordinator_.runtime().clock.get().steady_now();
    next_page_ = std::max(next_page_, last_sweep_);  // what was not read since the last sweep may be read now
    last_sweep_ = now;
    if (segments_.empty()) {
        if (next_scan_ > now) return;
        begin();
    }
    for (int page = 0; page < pages_per_sweep_max && !segments_.empty(); ++page) {
        if (next_page_ > now || unsettled_.size() >= unsettled_max) return;
        next_page_ += options_.page_interval;
        read_page(segments_.back(), now);
        if (!segments_.back().next) segments_.pop_back();
    }
    if (!segments_.empty()) return;
    next_scan_ = now + options_.pause;
    has_scanned_ = true;
}

void Sweeper::Scans::begin() {
    for (const std::string& table : tables_) {
        for (std::uint32_t segment = 0; segment < segments; ++segment) segments_.push_back({table, segment});
    }
    const auto first = static_cast<std::ptrdiff_t>(coordinator_.runtime().random.get().next() % segments_.size());
    std::rotate(segments_.begin(), segments_.begin() + first, segments_.end());
}

void Sweeper::Scans::read_page(Segment& segment, SteadyTime now) {
    store::Page page = coordinator_.store().scan({.table = segment.table,
                                                  .segment = segment.number,
                                                  .segments = segments,
                                                  .limit = page_size,
                                                  .next = segment.next});
    if (coordinator_.announces() && segment.table == events_table().name) announce(page.records);
    std::vector<store::Write> removals;
    for (store::Record& record : page.records) {
        if (settler_.look_after(record)) {
            const std::size_t size = store::bytes(record.key, record.item);
            unsettled_.try_emplace(std::move(record.key), Met{size, now});
        } else if (segment.table != events_table().name) {
            const std::optional<Image> image = tombstones_.read(record);
            if (image && tombstones_.is_over(*image)) removals.push_back(remove_tombstone(record.key, *image));
        }
    }
    tombstones_.remove(removals);  // where it was not answered, the next scan comes by again
    segment.next = std::move(page.next);
}

void Sweeper::Scans::announce(const std::vector<store::Record>& slots) {
    std::map<std::string_view, const store::Record*> last;  // of each stream
    for (const store::Record& slot : slots) {
        if (!is_followed(slot.key, slot.item) || committed_by(slot.item) == nullptr) continue;
        const store::Record*& one = last[slot.key.partition];
        if (one == nullptr || one->key < slot.key) one = &slot;
    }
    std::vector<store::Key> keys;
    for (const auto& [stream, slot] : last) keys.push_back(watermark_key(std::string{stream}));
    const std::vector<std::optional<store::Item>> watermarks = coordinator_.store().read(keys);
    std::vector<store::Write> bells;
    std::size_t i = 0;
    for (const auto& [stream, slot] : last) {
        try {
            if (version_of(slot->key) > watermark(keys[i], watermarks[i]))
                bells.push_back(ring(bell_for(*committed_by(slot->item), slot->key, coordinator_.bell_shards())));
        } catch (const CorruptionError& error) {
            coordinator_.runtime().log.get().write(
                LogLevel::error, std::string{"whether a stream has been announced is not known: "} + error.what());
        }
        ++i;
    }
    if (!bells.empty()) static_cast<void>(coordinator_.store().write(bells));  // or the next scan does
}

void Sweeper::Scans::settle_due() {
    const SteadyTime due = coordinator_.runtime().clock.get().steady_now() - coordinator_.options().lease;
    std::map<store::Key, std::size_t> keys;
    for (const auto& [key, met] : unsettled_) {
        if (met.at <= due) keys.emplace(key, met.bytes);
    }
    for (const store::Key& key : settler_.settle(keys)) unsettled_.erase(key);
}

}  // namespace varve::transactions
