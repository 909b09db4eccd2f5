#include "attributes.h"
#include "mutants.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/transactions/row.h>

namespace varve::transactions {
namespace {

constexpr const char* data_attribute = "data";
constexpr const char* rev_attribute = "_rev";
constexpr const char* expires_attribute = "_expires";
constexpr const char* after_attribute = "_after";
constexpr const char* was_expires_attribute = "_was_expires";
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

/// The update that makes `image` the committed one, intent or not.
store::Update replace_image(const Image& image) {
    store::Update update{.set = {{rev_attribute, image.rev.value()}}, .remove = {}};
    if (image.data) {
        update.set.emplace(data_attribute, *image.data);
        update.remove.emplace_back(expires_attribute);
    } else {
        update.set.emplace(expires_attribute, image.expires.value());
        update.remove.emplace_back(data_attribute);
    }
    return update;
}

void remove_intent(store::Update& update) {
    update.remove.insert(update.remove.end(), claim_attributes().begin(), claim_attributes().end());
    update.remove.emplace_back(after_attribute);
    update.remove.emplace_back(was_expires_attribute);
}

}  // namespace

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
                            .was_expires = optional_seconds(key, *item, was_expires_attribute)};
    }
    if (!row.intent) {
        for (const char* name : {after_attribute, was_expires_attribute}) {
            if (item->contains(name)) throw_damaged(key, std::string{"has '"} + name + "' and nobody's intent");
        }
    }
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
    store::Update update;
    put_claim(update.set, claim);
    if (after) update.set.emplace(after_attribute, *after);
    if (seen.expires) {
        update.set.emplace(was_expires_attribute, *seen.expires);
        update.remove.emplace_back(expires_attribute);
    }
    return {key, std::move(update), unclaimed_at(seen.rev)};
}

store::Write write_row(const store::Key& key, const Image& seen, const Image& image) {
    if (VARVE_MUTANT("no tombstones") && !image.data) return {key, store::Erase{}, unclaimed_at(seen.rev)};
    store::Update update = replace_image(image);
    if (!image.writers.empty()) update.set.emplace(writers_attribute, json::encode(image.writers));
    return {key, std::move(update), unclaimed_at(seen.rev)};
}

store::Write finalise_row(const store::Key& key, const Intent& intent, std::int64_t expires) {
    if (VARVE_MUTANT("no tombstones") && !intent.after) return {key, store::Erase{}, claimed_by(intent.claim.tx)};
    store::Update update = replace_image(after_image(intent, expires));
    remove_intent(update);
    return {key, std::move(update), claimed_by(intent.claim.tx)};
}

store::Write undo_row(const store::Key& key, const Image& image, const Intent& intent) {
    if (!image.rev) return {key, store::Erase{}, claimed_by(intent.claim.tx)};
    store::Update update;
    remove_intent(update);
    if (intent.was_expires) update.set.emplace(expires_attribute, *intent.was_expires);
    return {key, std::move(update), claimed_by(intent.claim.tx)};
}

store::Write fence_row(const store::Key& key, const std::string& rev, const std::string& next) {
    return {key, store::Update{.set = {{rev_attribute, next}}, .remove = {}}, store::equals(rev_attribute, rev)};
}

store::Write remove_tombstone(const store::Key& key, const Image& tombstone) {
    return {key, store::Erase{},
            unclaimed_at(tombstone.rev) && store::equals(expires_attribute, tombstone.expires.value())};
}

}  // namespace varve::transactions
