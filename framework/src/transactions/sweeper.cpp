#include "sweeper_source.h"

#include <varve/core/error.h>

#include <algorithm>

namespace varve::transactions {

Sweeper::Sweeper(Coordinator& coordinator, std::vector<std::string> row_tables, const ScanOptions& scan) {
    row_tables.insert(row_tables.begin(), events_table().name);
    if (coordinator.store().capabilities().ordered_changes) {
        source_ = std::make_unique<Changes>(coordinator, std::move(row_tables));
    } else {
        source_ = std::make_unique<Scans>(coordinator, std::move(row_tables), scan);
    }
}

Sweeper::~Sweeper() = default;

std::size_t Sweeper::sweep() {
    return source_->sweep();
}

bool Sweeper::is_through() const {
    return source_->is_through();
}

bool Sweeper::Source::needs_a_look(const store::Record& record) try {
    if (claim_on(record.key, record.item)) return true;
    if (record.key.table != events_table().name) return false;
    const Slot slot = decode_slot(record.key, record.item);
    const auto* committed = std::get_if<Committed>(&slot);
    return committed != nullptr && !committed->done &&
           (committed->continued > 0 || std::ranges::any_of(committed->participants, [](const store::Key& key) {
                return key.table != events_table().name;
            }));
} catch (const CorruptionError&) {
    return true;
}

std::vector<store::Key> Sweeper::Source::settle(std::span<const store::Key> keys) {
    std::vector<store::Key> settled;
    if (keys.empty()) return settled;
    const std::vector<std::optional<store::Item>> items = c_.store().read(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        try {
            if (is_settled(keys[i], items[i])) settled.push_back(keys[i]);
        } catch (const CorruptionError& error) {  // it stays, the others go on
            c_.runtime().log.write(LogLevel::error, std::string{"the sweeper cannot settle an item: "} + error.what());
        }
    }
    return settled;
}

bool Sweeper::Source::is_settled(const store::Key& key, const std::optional<store::Item>& item) {
    if (!item) return true;
    if (claim_on(key, *item)) {
        if (c_.resolver().settle(key, *item, nullptr) != Verdict::undecided) ++c_.metrics().swept;
        return false;  // until the next pass has seen it without a claim
    }
    if (key.table != events_table().name) return true;
    const Slot slot = decode_slot(key, *item);
    const auto* committed = std::get_if<Committed>(&slot);
    if (committed == nullptr || committed->done) return true;
    if (committed->participants.empty() && committed->continued == 0) return true;

    ++c_.metrics().swept;
    return finish_participants(key, *committed);
}

bool Sweeper::Source::finish_participants(const store::Key& primary, const Committed& commit) {
    const std::vector<store::Key> participants = c_.resolver().participants(commit);
    const std::vector<std::optional<store::Item>> items = c_.store().read(participants);
    std::vector<store::Write> writes;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::optional<Claim> claim = items[i] ? claim_on(participants[i], *items[i]) : std::nullopt;
        if (claim && claim->tx == commit.write_id) {
            writes.push_back(c_.resolver().finalise(participants[i], *items[i], commit));
        }
    }
    if (!write(writes)) return false;
    c_.metrics().finalised_for_others += writes.size();
    const store::Write done = mark_done(primary, commit.write_id);
    return write({&done, 1});
}

std::optional<Image> Sweeper::Source::tombstone(const store::Record& record) try {
    Image image = decode_row(record.key, record.item).image;
    if (!image.expires) return std::nullopt;
    return image;
} catch (const CorruptionError& error) {  // the others go on
    c_.runtime().log.write(LogLevel::error, std::string{"the sweeper cannot read a row: "} + error.what());
    return std::nullopt;
}

bool Sweeper::Source::is_over(const Image& tombstone) const {
    const auto now = std::chrono::floor<std::chrono::seconds>(c_.runtime().clock.now());
    return *tombstone.expires <= now.time_since_epoch().count();
}

bool Sweeper::Source::write(std::span<const store::Write> writes) {
    if (writes.empty()) return true;
    return std::ranges::none_of(c_.store().write(writes), [](const store::WriteAnswer& answer) {
        return std::holds_alternative<Failure>(answer);
    });
}

}  // namespace varve::transactions
