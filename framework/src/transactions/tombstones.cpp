#include "transactions/tombstones.h"

#include <varve/core/error.h>

#include <algorithm>

namespace varve::transactions {

std::optional<Image> Tombstones::read(const store::Record& record) try {
    Row row = decode_row(record.key, record.item);
    if (row.intent || !row.image.expires) return std::nullopt;
    return std::move(row.image);
} catch (const CorruptionError& error) {  // the others go on
    coordinator_.runtime().log.get().write(LogLevel::error,
                                           std::string{"the sweeper cannot read a row: "} + error.what());
    return std::nullopt;
}

bool Tombstones::is_over(const Image& tombstone) const {
    const auto now = std::chrono::floor<std::chrono::seconds>(coordinator_.runtime().clock.get().now());
    return *tombstone.expires <= now.time_since_epoch().count();
}

bool Tombstones::remove(std::span<const store::Write> removals) {
    if (removals.empty()) return true;
    return std::ranges::none_of(coordinator_.store().write(removals), [](const store::WriteAnswer& answer) {
        return std::holds_alternative<Failure>(answer);
    });
}

}  // namespace varve::transactions
