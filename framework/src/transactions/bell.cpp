#include "transactions/bell.h"

#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/attributes.h"
#include "transactions/system_table.h"

#include <varve/core/error.h>
#include <varve/core/fnv1a.h>

#include <algorithm>
#include <limits>

namespace varve::transactions {
namespace {

constexpr const char* stream_attribute = "stream";
constexpr const char* slot_version_attribute = "version";
constexpr const char* slot_epoch_attribute = "epoch";
constexpr const char* beside_attribute = "beside";
constexpr const char* announced_attribute = "announced";
constexpr const char* shards_attribute = "shards";

store::Item item_of(const Bell& bell) {
    VARVE_ASSERT(bell.slot.table == events_table().name, "what is announced are slots");
    store::Item item{{stream_attribute, bell.slot.partition},
                     {slot_version_attribute, version_of(bell.slot)},
                     {slot_epoch_attribute, bell.epoch}};
    if (!bell.beside.empty()) item.emplace(beside_attribute, encode_participants(bell.beside));
    return item;
}

std::string shard_of(const std::string& name, unsigned shards) {
    VARVE_ASSERT(shards >= 1 && shards <= bell_shards_max, "whoever rings knows in how many shards");
    return std::to_string(fnv1a(name) % shards);
}

store::Item setting(unsigned shards) {
    store::Item item{{announced_attribute, std::int64_t{shards > 0}}};
    if (shards > 1) item.emplace(shards_attribute, std::int64_t{shards});
    return item;
}

/// That the item still says what was found.
store::Condition says(const std::optional<unsigned>& found) {
    if (!found) return !store::item_exists();
    if (*found == 0) return store::equals(announced_attribute, std::int64_t{0});
    store::Condition as_many = store::equals(shards_attribute, std::int64_t{*found});
    if (*found == 1) as_many = std::move(as_many) || !store::exists(shards_attribute);
    return store::equals(announced_attribute, std::int64_t{1}) && std::move(as_many);
}

/// ConfigError if commits are announced in so many shards, and should be in fewer, or not at all.
void refuse_fewer_than(unsigned there, const WantedBells& wanted) {
    if (there > 0 && wanted.announced == false) {
        throw ConfigError(
            "ApplicationOptions::feed is false, and commits to this store are announced to those who follow its "
            "events; leave the option out, or use a store of its own");
    }
    if (wanted.shards.value_or(there) < there) {
        throw ConfigError("ApplicationOptions::feed_shards is " + std::to_string(*wanted.shards) +
                          ", and this store has " + std::to_string(there) +
                          " shards already, each of which may hold what is not in order yet: the number can only "
                          "grow. Leave the option out, or give it at least " +
                          std::to_string(there));
    }
}

}  // namespace

const store::TableSchema& bells_table() {
    static const store::TableSchema schema{
        .name = "feed_bells", .partition_attribute = "shard", .sort_attribute = "name", .sort = store::SortType::text};
    return schema;
}

store::Query bells_in(unsigned number) {
    return {.table = bells_table().name, .partition = std::to_string(number)};
}

Bell bell_of(const std::string& tx, store::Key slot, Epoch epoch, unsigned shards) {
    const std::string name = tx + "@" + std::to_string(epoch);
    return {.name = name, .shard = shard_of(name, shards), .slot = std::move(slot), .epoch = epoch};
}

Bell bell_for(const std::string& tx, store::Key slot, unsigned shards) {
    // A transaction has one slot of a stream.
    const std::string name = tx + "@" + std::to_string(fnv1a(slot.partition)) + "?";
    return {.name = name, .shard = shard_of(name, shards), .slot = std::move(slot)};
}

std::string_view tx_of(const Bell& bell) {
    return std::string_view{bell.name}.substr(0, bell.name.rfind('@'));
}

store::Key bell_key(const Bell& bell) {
    return {bells_table().name, bell.shard, bell.name};
}

store::Write ring(const Bell& bell) {
    // It always holds. A store may order only those writes that have a condition.
    return {bell_key(bell), store::Put{item_of(bell)}, !store::item_exists() || store::exists(stream_attribute)};
}

store::Write remove_bell(const Bell& bell) {
    return {bell_key(bell), store::Erase{},
            store::equals(stream_attribute, bell.slot.partition) &&
                store::equals(slot_version_attribute, version_of(bell.slot)) &&
                store::equals(slot_epoch_attribute, bell.epoch)};
}

Bell decode_bell(const store::Key& key, const store::Item& item) {
    const auto* name = std::get_if<std::string>(&key.sort);
    const std::string* stream = text_of(key, item, stream_attribute);
    const std::int64_t* version =
        integer_of(key, item, slot_version_attribute, {1, std::numeric_limits<Version>::max()});
    const std::int64_t* epoch = integer_of(key, item, slot_epoch_attribute, {0, epoch_max});
    const std::string* beside = text_of(key, item, beside_attribute);
    if (name == nullptr || stream == nullptr || version == nullptr || epoch == nullptr)
        throw_damaged(key, "announces no slot");
    return {.name = *name,
            .shard = key.partition,
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
    const std::int64_t* version =
        integer_of(key, *item, slot_version_attribute, {1, std::numeric_limits<Version>::max()});
    if (version == nullptr) throw_damaged(key, "has no version");
    return *version;
}

store::Write raise_watermark(std::string stream, Version version) {
    store::Condition is_higher = !store::item_exists() || store::less(slot_version_attribute, version);
    if (planted(PlantedFault::a_watermark_is_lowered)) is_higher = {};
    return {watermark_key(std::move(stream)), store::Put{{{slot_version_attribute, version}}}, std::move(is_higher)};
}

store::Key feed_setting_key() {
    return {system_table().name, "feed"};
}

std::optional<unsigned> decode_bell_shards(const std::optional<store::Item>& setting) {
    if (!setting) return std::nullopt;
    const store::Key key = feed_setting_key();
    const std::int64_t* announced = integer_of(key, *setting, announced_attribute, {0, 1});
    if (announced == nullptr) throw_damaged(key, "does not say whether commits are announced");
    const std::int64_t* shards = integer_of(key, *setting, shards_attribute, {1, bell_shards_max});
    if (*announced == 0) return 0;
    return shards == nullptr ? 1 : static_cast<unsigned>(*shards);
}

unsigned announced_bell_shards(const std::optional<store::Item>& setting) {
    const unsigned shards = decode_bell_shards(setting).value_or(0);
    if (shards == 0) throw_damaged(feed_setting_key(), "does not say in how many shards commits are announced");
    return shards;
}

unsigned read_bell_shards(store::ItemStore& store) {
    if (store.capabilities().ordered_changes) return 0;
    const store::Key key = feed_setting_key();
    store.ensure_table(system_table());
    return decode_bell_shards(store.read({&key, 1}).front()).value_or(0);
}

unsigned decide_on_bells(store::ItemStore& store, const WantedBells& wanted) {
    if (store.capabilities().ordered_changes) return 0;
    const store::Key key = feed_setting_key();
    store.ensure_table(system_table());
    for (;;) {
        const std::optional<unsigned> found = decode_bell_shards(store.read({&key, 1}).front());
        refuse_fewer_than(found.value_or(0), wanted);
        const bool announced = wanted.announced.value_or(!found || *found > 0);
        const unsigned shards = announced ? wanted.shards.value_or(std::max(found.value_or(0), 1u)) : 0;
        if (found == shards) return shards;
        const store::Write write{key, store::Put{setting(shards)}, says(found)};
        const store::WriteAnswer answer = store.write({&write, 1}).front();
        if (const auto* failure = std::get_if<Failure>(&answer))
            raise_certain(*failure);  // to begin again does no harm
        if (std::holds_alternative<store::Applied>(answer)) return shards;
    }
}

}  // namespace varve::transactions
