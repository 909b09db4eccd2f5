#include "locks/stored_lock.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <charconv>
#include <string_view>

namespace varve::locks {
namespace {

constexpr const char* counter_part = "counter";
constexpr const char* holder_part = "holder";
constexpr std::string_view queue_prefix = "queue/";
constexpr const char* drawn_attribute = "drawn";
constexpr const char* owner_attribute = "owner";
constexpr const char* expires_at_attribute = "expires_at";
constexpr const char* time_to_live_attribute = "time_to_live";
constexpr const char* store_expiry_attribute = "_expires";

/// Clocks may disagree; what a store removes by itself must be long past for everybody.
constexpr std::chrono::hours store_expiry_margin{1};

struct HolderData {
    Fence fence = 0;
    std::string owner;
    Ticket ticket = 0;
};

std::int64_t micros(Time time) {
    return time.time_since_epoch().count();
}

Time time(std::int64_t micros) {
    return Time{Duration{micros}};
}

Duration time_to_live(const store::Item& item) {
    const std::int64_t* micros = store::integer(item, time_to_live_attribute);
    return micros != nullptr ? Duration{*micros} : Duration{};
}

std::int64_t store_expiry(Time expires) {
    return std::chrono::ceil<std::chrono::seconds>(expires + store_expiry_margin).time_since_epoch().count();
}

transactions::Image image_of(const Holder& holder) {
    return {.data = json::encode(HolderData{holder.fence, holder.owner, holder.ticket}), .rev = holder.revision()};
}

/// What a row's plain write does, and the expiry beside the image.
store::Write write_holder(const std::string& name, const std::optional<std::string>& seen, const Holder& next) {
    const transactions::Image before{.data = {}, .rev = seen};
    store::Write write = transactions::write_row(holder_key(name), before, image_of(next));
    auto& update = std::get<store::Update>(write.action);
    if (next.owner.empty()) {
        update.remove.emplace_back(expires_at_attribute);
        update.remove.emplace_back(time_to_live_attribute);
    } else {
        update.set.emplace(expires_at_attribute, micros(next.expires));
        update.set.emplace(time_to_live_attribute, next.time_to_live.count());
    }
    return write;
}

[[noreturn]] void unreadable(const store::Key& key) {
    throw CorruptionError("the lock's item " + store::to_string(key) +
                          " cannot be read; it was written by a newer version of varve, by hand, or is damaged");
}

}  // namespace

const store::TableSchema& locks_table() {
    static const store::TableSchema schema{.name = "varve_locks",
                                           .partition_attribute = "name",
                                           .sort_attribute = "part",
                                           .sort = store::SortType::text,
                                           .expiry_attribute = store_expiry_attribute};
    return schema;
}

store::Key counter_key(const std::string& name) {
    return {locks_table().name, name, counter_part};
}

store::Key holder_key(const std::string& name) {
    return {locks_table().name, name, holder_part};
}

store::Key queue_key(const std::string& name, Ticket ticket) {
    constexpr std::size_t digits = 20;
    const std::string number = std::to_string(ticket);
    return {locks_table().name, name,
            std::string{queue_prefix} + std::string(digits - std::min(digits, number.size()), '0') + number};
}

std::optional<Ticket> ticket_of(const store::Key& key) {
    const auto* part = std::get_if<std::string>(&key.sort);
    if (part == nullptr || !part->starts_with(queue_prefix)) return std::nullopt;
    const std::string_view digits = std::string_view{*part}.substr(queue_prefix.size());
    Ticket ticket = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), ticket).ptr != digits.data() + digits.size()) {
        unreadable(key);
    }
    return ticket;
}

Time later_expiry(Clock& clock, Duration time_to_live, Time stored) {
    return std::max(clock.now() + time_to_live, stored + Duration{1});
}

std::optional<std::string> Holder::revision() const {
    if (fence == 0) return std::nullopt;
    return owner.empty() ? std::to_string(fence) : std::to_string(fence) + "/" + owner;
}

Ticket decode_counter(const store::Key& key, const std::optional<store::Item>& item) {
    if (!item) return 0;
    const std::int64_t* drawn = store::integer(*item, drawn_attribute);
    if (drawn == nullptr || *drawn < 0) unreadable(key);
    return *drawn;
}

Queued decode_queued(const store::Key& key, const store::Item& item) {
    const std::string* owner = store::text(item, owner_attribute);
    const std::int64_t* expires = store::integer(item, expires_at_attribute);
    if (owner == nullptr || expires == nullptr) unreadable(key);
    return {.owner = *owner, .expires = time(*expires), .time_to_live = time_to_live(item)};
}

Holder decode_holder(const store::Key& key, const std::optional<store::Item>& item) {
    const transactions::Row row = transactions::decode_row(key, item);
    if (row.intent) unreadable(key);
    if (!row.image.rev) return {};
    auto data = json::decode<HolderData>(row.image.data.value_or(""));
    const std::int64_t* expires = store::integer(*item, expires_at_attribute);
    if (!data || data->fence < 1 || (!data->owner.empty() && expires == nullptr)) unreadable(key);
    return {.fence = data->fence,
            .owner = std::move(data->owner),
            .ticket = data->ticket,
            .expires = expires != nullptr ? time(*expires) : Time{},
            .time_to_live = time_to_live(*item)};
}

store::Record free_holder(const std::string& name, Fence fence) {
    const transactions::Image image = image_of({.fence = fence});
    return {holder_key(name), {{"data", *image.data}, {"_rev", *image.rev}}};
}

store::Write draw(const std::string& name, Ticket drawn) {
    return {counter_key(name), store::Put{{{drawn_attribute, drawn + 1}}},
            drawn == 0 ? !store::item_exists() : store::equals(drawn_attribute, drawn)};
}

store::Write enqueue(const std::string& name, Ticket ticket, const Queued& row) {
    return {queue_key(name, ticket),
            store::Put{{{owner_attribute, row.owner},
                        {expires_at_attribute, micros(row.expires)},
                        {time_to_live_attribute, row.time_to_live.count()},
                        {store_expiry_attribute, store_expiry(row.expires)}}},
            !store::item_exists()};
}

store::Write extend(const std::string& name, Ticket ticket, const Queued& row) {
    return {
        queue_key(name, ticket),
        store::Update{
            .set = {{expires_at_attribute, micros(row.expires)}, {store_expiry_attribute, store_expiry(row.expires)}},
            .remove = {}},
        store::equals(owner_attribute, row.owner) && store::less(expires_at_attribute, micros(row.expires)),
    };
}

store::Write leave(const std::string& name, Ticket ticket, const std::string& owner) {
    return {queue_key(name, ticket), store::Erase{}, store::equals(owner_attribute, owner)};
}

store::Write clean(const std::string& name, Ticket ticket, const Queued& read) {
    return {queue_key(name, ticket), store::Erase{},
            store::equals(owner_attribute, read.owner) && store::equals(expires_at_attribute, micros(read.expires))};
}

store::Write enter(const std::string& name, const Holder& read, const Holder& next) {
    store::Write write = write_holder(name, read.revision(), next);
    if (!read.owner.empty()) {
        write.condition = std::move(write.condition) && store::equals(expires_at_attribute, micros(read.expires));
    }
    return write;
}

store::Write extend(const std::string& name, const Holder& holder) {
    return {holder_key(name), store::Update{.set = {{expires_at_attribute, micros(holder.expires)}}, .remove = {}},
            transactions::unclaimed_at(holder.revision()) && store::less(expires_at_attribute, micros(holder.expires))};
}

store::Write release(const std::string& name, const Holder& holder) {
    return write_holder(name, holder.revision(), {.fence = holder.fence});
}

}  // namespace varve::locks
