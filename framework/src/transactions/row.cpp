#include "transactions/row.h"

#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/attributes.h"

#include <varve/core/error.h>
#include <varve/core/fnv1a.h>
#include <varve/core/json.h>

#include <bit>
#include <limits>

namespace varve::transactions {
namespace {

constexpr const char* data_attribute = "data";
constexpr const char* rev_attribute = "_rev";
constexpr const char* expires_attribute = "_expires";
constexpr const char* after_attribute = "_after";
constexpr const char* was_expires_attribute = "_was_expires";
constexpr const char* was_data_attribute = "_was_data";
constexpr const char* reserved_attribute = "_reserved";
constexpr const char* writers_attribute = "_writers";

std::optional<std::string> optional_text(const store::Key& key, const store::Item& item, const char* name) {
    const std::string* found = text_of(key, item, name);
    return found ? std::optional{*found} : std::nullopt;
}

std::optional<std::int64_t> optional_seconds(const store::Key& key, const store::Item& item, const char* name) {
    const std::int64_t* found = integer_of(key, item, name, {0, microseconds_max});
    return found ? std::optional{*found} : std::nullopt;
}

Writers writers_of(const store::Key& key, const store::Item& item) {
    const std::string* text = text_of(key, item, writers_attribute);
    if (text == nullptr) return {};
    auto writers = json::decode<Writers>(*text);
    if (!writers) {
        throw CorruptionError("the row " + store::to_string(key) + " has unreadable " + writers_attribute + " (" +
                              writers.error().message + ")");
    }
    return *std::move(writers);
}

/// What an intent keeps of the data that it was laid upon.
std::int64_t trace_of(const std::optional<std::string>& data) {
    return std::bit_cast<std::int64_t>(fnv1a(data.value_or("")));
}

/// Old intents keep no trace.
void check_trace(const store::Key& key, const store::Item& item, const Row& row) {
    using Limits = std::numeric_limits<std::int64_t>;
    const std::int64_t* trace = integer_of(key, item, was_data_attribute, {Limits::min(), Limits::max()});
    if (trace == nullptr || *trace == trace_of(row.image.data)) return;
    const std::string& tx = row.intent->claim.tx;
    throw CorruptionError("the row " + store::to_string(key) + " was changed from outside while transaction " + tx +
                          " had its intent on it. It is left as it is; put back its 'data', or remove '" +
                          was_data_attribute + "' to let the transaction end upon what is there");
}

store::Condition has_data(const std::optional<std::string>& data) {
    return data ? store::equals(data_attribute, *data) : !store::exists(data_attribute);
}

/// The update that makes `image` the committed one, intent or not.
store::Update replace_image(const Image& image) {
    VARVE_ASSERT(image.rev && !image.rev->empty(), "every image has a revision");
    VARVE_ASSERT(image.data || image.expires, "a tombstone expires");
    store::Update update{.set = {{rev_attribute, *image.rev}}, .remove = {}};
    if (image.data) {
        update.set.emplace(data_attribute, *image.data);
        update.remove.emplace_back(expires_attribute);
    } else {
        update.set.emplace(expires_attribute, *image.expires);
        update.remove.emplace_back(data_attribute);
    }
    return update;
}

void remove_intent(store::Update& update) {
    update.remove.insert(update.remove.end(), claim_attributes().begin(), claim_attributes().end());
    update.remove.emplace_back(after_attribute);
    update.remove.emplace_back(was_expires_attribute);
    update.remove.emplace_back(was_data_attribute);
    update.remove.emplace_back(reserved_attribute);
}

/// `intent` laid on the image as seen.
store::Write lay_intent(const store::Key& key, const Image& seen, const Claim& claim, store::Update intent) {
    VARVE_ASSERT(!claim.tx.empty(), "every claim names its transaction");
    VARVE_ASSERT(!(seen.data || seen.expires) || seen.rev, "what an intent is laid on has a revision");
    put_claim(intent.set, claim);
    intent.set.emplace(was_data_attribute, trace_of(seen.data));
    if (seen.expires) {
        intent.set.emplace(was_expires_attribute, *seen.expires);
        intent.remove.emplace_back(expires_attribute);
    }
    return {key, std::move(intent), unclaimed_at(seen.rev)};
}

}  // namespace

bool is_tombstone(const store::Item& item) {
    return item.contains(expires_attribute);  // a claim takes it aside
}

Row decode_row(const store::Key& key, const std::optional<store::Item>& item) {
    Row row;
    if (!item) return row;
    row.image = {.data = optional_text(key, *item, data_attribute),
                 .rev = optional_text(key, *item, rev_attribute),
                 .expires = optional_seconds(key, *item, expires_attribute),
                 .writers = writers_of(key, *item)};
    if (std::optional<Claim> claim = claim_on(key, *item)) {
        row.intent = Intent{.claim = std::move(*claim),
                            .after = optional_text(key, *item, after_attribute),
                            .was_expires = optional_seconds(key, *item, was_expires_attribute),
                            .reserved = integer_of(key, *item, reserved_attribute, {1, 1}) != nullptr};
        check_trace(key, *item, row);
        // Whoever sees the tombstone beneath may come to write upon it when the intent is gone.
        if (!row.image.data && !row.image.expires) row.image.expires = row.intent->was_expires;
    }
    if (!row.intent) {
        for (const char* name : {after_attribute, reserved_attribute, was_expires_attribute, was_data_attribute}) {
            if (item->contains(name)) throw_damaged(key, std::string{"has '"} + name + "' and nobody's intent");
        }
    }
    if (row.intent && row.intent->reserved && row.intent->after)
        throw_damaged(key, std::string{"has both '"} + after_attribute + "' and '" + reserved_attribute + "'");
    if (row.intent && row.intent->was_expires && !row.image.rev)
        throw_damaged(key, std::string{"has '"} + was_expires_attribute + "' and no revision of the tombstone's");
    if (row.image.rev && row.image.rev->empty()) throw_damaged(key, "has an empty revision");
    if (row.image.data ? !row.image.rev : !row.intent && !(row.image.rev && row.image.expires)) {
        throw CorruptionError(
            "the row " + store::to_string(key) +
            " has neither an image with a revision nor a transaction's intent; it was written by a newer "
            "version of varve, by hand, or is damaged");
    }
    return row;
}

Image after_image(const Intent& intent, std::int64_t expires) {
    Image image{.data = intent.after, .rev = intent.claim.tx};
    if (!image.data) image.expires = expires;
    return image;
}

store::Condition unclaimed_at(const std::optional<std::string>& rev) {
    return (rev ? store::equals(rev_attribute, *rev) : !store::exists(rev_attribute)) && unclaimed();
}

store::Write prepare_row(const store::Key& key, const Image& seen, const Claim& claim,
                         const std::optional<std::string>& after) {
    store::Update intent;
    if (after) intent.set.emplace(after_attribute, *after);
    return lay_intent(key, seen, claim, std::move(intent));
}

store::Write reserve_row(const store::Key& key, const Image& seen, const Claim& claim) {
    return lay_intent(key, seen, claim, {.set = {{reserved_attribute, std::int64_t{1}}}, .remove = {}});
}

store::Write fill_row(const store::Key& key, const std::string& tx, const std::optional<std::string>& after) {
    store::Update update{.set = {}, .remove = {reserved_attribute}};
    if (after) update.set.emplace(after_attribute, *after);
    return {key, std::move(update), claimed_by(tx)};
}

store::Write renew_row(const store::Key& key, const Claim& claim) {
    store::Update update;
    put_claim(update.set, claim);
    return {key, std::move(update), claimed_by(claim.tx)};
}

store::Write write_row(const store::Key& key, const Image& seen, const Image& image) {
    if (planted(PlantedFault::no_tombstones) && !image.data) return {key, store::Erase{}, unclaimed_at(seen.rev)};
    store::Update update = replace_image(image);
    if (!image.writers.empty()) update.set.emplace(writers_attribute, json::encode(image.writers));
    return {key, std::move(update), unclaimed_at(seen.rev)};
}

store::Write finalise_row(const store::Key& key, const Image& image, const Intent& intent, std::int64_t expires) {
    if (planted(PlantedFault::no_tombstones) && !intent.after)
        return {key, store::Erase{}, claimed_by(intent.claim.tx)};
    store::Update update = replace_image(after_image(intent, expires));
    remove_intent(update);
    return {key, std::move(update), claimed_by(intent.claim.tx) && has_data(image.data)};
}

store::Write undo_row(const store::Key& key, const Image& image, const Intent& intent) {
    if (!image.rev) return {key, store::Erase{}, claimed_by(intent.claim.tx)};
    store::Update update;
    remove_intent(update);
    if (intent.was_expires) update.set.emplace(expires_attribute, *intent.was_expires);
    return {key, std::move(update), claimed_by(intent.claim.tx)};
}

store::Write release_row(const store::Key& key, const Image& image, const Intent& intent) {
    store::Write release = undo_row(key, image, intent);
    if (!planted(PlantedFault::a_row_that_was_filled_meanwhile_is_released))
        release.condition = release.condition && store::exists(reserved_attribute);
    return release;
}

store::Write fence_row(const store::Key& key, const std::string& rev, const std::string& next) {
    VARVE_ASSERT(rev != next, "a revision is never used again");
    return {key, store::Update{.set = {{rev_attribute, next}}, .remove = {}}, store::equals(rev_attribute, rev)};
}

store::Write remove_tombstone(const store::Key& key, const Image& tombstone) {
    VARVE_ASSERT(!tombstone.data && tombstone.rev && tombstone.expires, "what is collected is a tombstone");
    return {key, store::Erase{}, unclaimed_at(tombstone.rev) && store::equals(expires_attribute, *tombstone.expires)};
}

}  // namespace varve::transactions
