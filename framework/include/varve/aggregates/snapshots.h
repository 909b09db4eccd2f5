#pragma once

#include <varve/core/clock.h>
#include <varve/core/json.h>
#include <varve/events/event.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace varve {

/// When the state of an aggregate is stored beside its stream. A load then reads the last snapshot and the slots since,
/// not the whole stream. An aggregate without a policy has no snapshots; this one has:
///
///     struct Account {
///         static constexpr varve::SnapshotPolicy snapshots{.every_slots = 1000};
///         …
///
/// The state must have a JSON form (core/json.h): a plain struct without private data. A snapshot is taken as soon as
/// one of the limits is reached. This happens in the background: no command waits for it.
struct SnapshotPolicy {
    /// Raise it when `apply` changes its meaning: older snapshots are then no longer used. A change of the state's
    /// fields is noticed without it.
    int version = 1;
    Version every_slots = 0;      ///< since the last one; 0: do not count slots
    std::size_t every_bytes = 0;  ///< of events since the last one; 0: do not count bytes
    Duration load_time_max{};     ///< one is taken after a load that took longer; 0: do not measure
};

/// What a check of a snapshot against the events has found.
struct SnapshotCheck {
    Version version = 0;      ///< of the snapshot; 0: there is none
    std::string stored = {};  ///< its state, JSON text
    std::string folded = {};  ///< the state that the events up to there give

    bool holds() const { return version == 0 || json::same(stored, folded); }
};

/// The snapshots of an aggregate's type, erased.
struct SnapshotType {
    SnapshotPolicy policy;
    std::string schema;  ///< version and fingerprint
    std::string (*encode)(const void* state);
    std::shared_ptr<void> (*decode)(std::string_view text);  ///< null: not readable
};

namespace detail {

/// "VERSION-FINGERPRINT"
std::string snapshot_schema(int version, const std::string& shape);

/// Null for a type without a policy.
template <class A>
const SnapshotType* snapshot_type() {
    if constexpr (requires { A::snapshots; }) {
        constexpr SnapshotPolicy policy = A::snapshots;
        static const SnapshotType type{
            .policy = policy,
            .schema = snapshot_schema(policy.version, json::shape<A>()),
            .encode = [](const void* state) { return json::encode(*static_cast<const A*>(state)); },
            .decode = [](std::string_view text) -> std::shared_ptr<void> {
                auto state = json::decode<A>(text, {.require_all = true});
                return state ? std::make_shared<A>(std::move(*state)) : nullptr;
            }};
        return &type;
    } else {
        return nullptr;
    }
}

}  // namespace detail
}  // namespace varve
