#include "transactions/bell.h"

#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/attributes.h"
#include "transactions/system_table.h"

#include <varve/core/error.h>
#include <varve/core/fnv1a.h>

#include <limits>

namespace varve::transactions {
namespace {

constexpr const char* stream_attribute = "stream";
constexpr const char* version_attribute = "version";
constexpr const char* epoch_attribute = "epoch";
constexpr const char* beside_attribute = "beside";
constexpr const char* announced_attribute = "announced";

store::Item item_of(const Bell& bell) {
    VARVE_ASSERT(bell.slot.table == events_table().name, "what is announced are slots");
    store::Item item{{stream_attribute, bell.slot.partition},
                     {version_attribute, version_of(bell.slot)},
                     {epoch_attribute, bell.epoch}};
    if (!bell.beside.empty()) item.emplace(beside_attribute, encode_participants(bell.beside));
    return item;
}

store::Key key_of(const Bell& bell) {
    return {bells_table().name, feed_shard, bell.name};
}

store::Key setting_key() {
    return {system_table().name, "feed"};
}

std::optional<bool> setting(const std::optional<store::Item>& item) {
    if (!item) return std::nullopt;
    const std::int64_t* announced = integer_of(setting_key(), *item, announced_attribute, {0, 1});
    if (announced == nullptr) throw_damaged(setting_key(), "does not say whether commits are announced");
    return *announced == 1;
}

}  // namespace

const store::TableSchema& bells_table() {
    static const store::TableSchema schema{
        .name = "feed_bells", .partition_attribute = "shard", .sort_attribute = "name", .sort = store::SortType::text};
    return schema;
}

Bell bell_of(const std::string& tx, store::Key slot, Epoch epoch) {
    return {.name = tx + "@" + std::to_string(epoch), .slot = std::move(slot), .epoch = epoch};
}

Bell bell_for(const std::string& tx, store::Key slot) {
    // A transaction has one slot of a stream.
    return {.name = tx + "@" + std::to_string(fnv1a(slot.partition)) + "?", .slot = std::move(slot)};
}

std::string_view tx_of(const Bell& bell) {
    return std::string_view{bell.name}.substr(0, bell.name.rfind('@'));
}

store::Write ring(const Bell& bell) {
    // It always holds. A store may order only those writes that have a condition.
    return {key_of(bell), store::Put{item_of(bell)}, !store::item_exists() || store::exists(stream_attribute)};
}

store::Write remove_bell(const Bell& bell) {
    return {key_of(bell), store::Erase{},
            store::equals(stream_attribute, bell.slot.partition) &&
                store::equals(version_attribute, version_of(bell.slot)) && store::equals(epoch_attribute, bell.epoch)};
}

Bell decode_bell(const store::Key& key, const store::Item& item) {
    const auto* name = std::get_if<std::string>(&key.sort);
    const std::string* stream = text_of(key, item, stream_attribute);
    const std::int64_t* version = integer_of(key, item, version_attribute, {1, std::numeric_limits<Version>::max()});
    const std::int64_t* epoch = integer_of(key, item, epoch_attribute, {0, epoch_max});
    const std::string* beside = text_of(key, item, beside_attribute);
    if (name == nullptr || stream == nullptr || version == nullptr || epoch == nullptr)
        throw_damaged(key, "announces no slot");
    return {.name = *name,
            .slot = slot_key(*stream, *version),
            .epoch = *epoch,
            .beside = beside == nullptr ? std::vector<store::Key>{} : decode_participants(key, *beside)};
}

const store::TableSchema& watermarks_table() {
    static const store::TableSchema schema{.name = "feed_marks", .partition_attribute = "stream"};
    return schema;
}

store::Key watermark_key(std::string stream) {
    return {watermarks_table().name, std::move(stream)};
}

Version watermark(const store::Key& key, const std::optional<store::Item>& item) {
    if (!item) return 0;
    const std::int64_t* version = integer_of(key, *item, version_attribute, {1, std::numeric_limits<Version>::max()});
    if (version == nullptr) throw_damaged(key, "has no version");
    return *version;
}

store::Write raise_watermark(std::string stream, Version version) {
    store::Condition is_higher = !store::item_exists() || store::less(version_attribute, version);
    if (planted(PlantedFault::a_watermark_is_lowered)) is_higher = {};
    return {watermark_key(std::move(stream)), store::Put{{{version_attribute, version}}}, std::move(is_higher)};
}

bool are_commits_announced(store::ItemStore& store) {
    if (store.capabilities().ordered_changes) return false;
    const store::Key key = setting_key();
    store.ensure_table(system_table());
    return setting(store.read({&key, 1}).front()).value_or(false);
}

bool decide_on_announcing(store::ItemStore& store, std::optional<bool> wanted) {
    if (store.capabilities().ordered_changes) return false;
    const store::Key key = setting_key();
    store.ensure_table(system_table());
    for (;;) {
        const std::optional<bool> found = setting(store.read({&key, 1}).front());
        if (found && *found && wanted == false) {
            throw ConfigError(
                "ApplicationOptions::feed is false, and commits to this store are announced to those who follow its "
                "events; leave the option out, or use a store of its own");
        }
        if (found && (*found || !wanted.value_or(false))) return *found;
        const bool decided = wanted.value_or(true);
        const store::Write write{key, store::Put{{{announced_attribute, std::int64_t{decided}}}},
                                 found ? store::equals(announced_attribute, std::int64_t{0}) : !store::item_exists()};
        const store::WriteAnswer answer = store.write({&write, 1}).front();
        if (const auto* failure = std::get_if<Failure>(&answer)) raise({failure->kind, false, failure->message});
        if (std::holds_alternative<store::Applied>(answer)) return decided;
    }
}

}  // namespace varve::transactions
