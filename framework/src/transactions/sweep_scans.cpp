#include "sweeper_source.h"

#include <algorithm>

namespace varve::transactions {
namespace {

constexpr std::uint32_t segments = 4;

}  // namespace

Sweeper::Scans::Scans(Coordinator& coordinator, std::vector<std::string> tables, const ScanOptions& options)
    : Source(coordinator),
      tables_(std::move(tables)),
      options_(options),
      last_sweep_(c_.runtime().clock.get().steady_now()) {
    next_scan_ = next_page_ = last_sweep_;
}

std::size_t Sweeper::Scans::sweep() {
    read_pages();
    settle_due();
    return unsettled_.size();
}

void Sweeper::Scans::read_pages() {
    const SteadyTime now = c_.runtime().clock.get().steady_now();
    next_page_ = std::max(next_page_, last_sweep_);  // what was not read since the last sweep may be read now
    last_sweep_ = now;
    if (parts_.empty()) {
        if (next_scan_ > now) return;
        begin();
    }
    for (int page = 0; page < pages_per_sweep_max && !parts_.empty(); ++page) {
        if (next_page_ > now || unsettled_.size() >= unsettled_max) return;
        next_page_ += options_.page_interval;
        read_page(parts_.back(), now);
        if (!parts_.back().next) parts_.pop_back();
    }
    if (!parts_.empty()) return;
    next_scan_ = now + options_.pause;
    has_scanned_ = true;
}

void Sweeper::Scans::begin() {
    for (const std::string& table : tables_) {
        for (std::uint32_t segment = 0; segment < segments; ++segment) parts_.push_back({table, segment});
    }
    const auto first = static_cast<std::ptrdiff_t>(c_.runtime().random.get().next() % parts_.size());
    std::rotate(parts_.begin(), parts_.begin() + first, parts_.end());
}

void Sweeper::Scans::read_page(Part& part, SteadyTime now) {
    store::Page page = c_.store().scan(
        {.table = part.table, .segment = part.segment, .segments = segments, .limit = page_size, .next = part.next});
    std::vector<store::Write> removals;
    for (store::Record& record : page.records) {
        if (needs_a_look(record)) {
            const std::size_t size = store::bytes(record.key, record.item);
            unsettled_.try_emplace(std::move(record.key), Met{size, now});
        } else if (part.table != events_table().name) {
            const std::optional<Image> image = tombstone(record);
            if (image && is_over(*image)) removals.push_back(remove_tombstone(record.key, *image));
        }
    }
    write(removals);  // where it was not answered, the next scan comes by again
    part.next = std::move(page.next);
}

void Sweeper::Scans::settle_due() {
    const SteadyTime due = c_.runtime().clock.get().steady_now() - c_.options().lease;
    std::map<store::Key, std::size_t> keys;
    for (const auto& [key, met] : unsettled_) {
        if (met.at <= due) keys.emplace(key, met.bytes);
    }
    for (const store::Key& key : settle(keys)) unsettled_.erase(key);
}

}  // namespace varve::transactions
