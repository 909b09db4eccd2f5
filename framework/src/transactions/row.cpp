#include "mutants.h"

#include <varve/core/error.h>
#include <varve/transactions/row.h>

namespace varve::transactions {
namespace {

constexpr const char* data_attribute = "data";
constexpr const char* rev_attribute = "_rev";
constexpr const char* expires_attribute = "_expires";
constexpr const char* after_attribute = "_after";
constexpr const char* was_expires_attribute = "_was_expires";
constexpr const char* reserved_attribute = "_reserved";

std::optional<std::string> optional_text(const store::Item& item, const char* name) {
    const std::string* found = store::text(item, name);
    return found ? std::optional{*found} : std::nullopt;
}

std::optional<std::int64_t> optional_integer(const store::Item& item, const char* name) {
    const std::int64_t* found = store::integer(item, name);
    return found ? std::optional{*found} : std::nullopt;
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

store::Condition at(const std::optional<std::string>& rev) {
    return rev ? store::equals(rev_attribute, *rev) : !store::exists(rev_attribute);
}

/// `intent` laid on the image as seen, or in the place of another one.
store::Write intent_over(const store::Key& key, const Image& seen, store::Update intent,
                         const std::optional<std::string>& over) {
    if (over) {
        for (const char* name : {after_attribute, reserved_attribute, was_expires_attribute}) {
            if (!intent.set.contains(name)) intent.remove.emplace_back(name);
        }
    }
    if (seen.expires) {
        intent.set.emplace(was_expires_attribute, *seen.expires);
        std::erase(intent.remove, was_expires_attribute);
        intent.remove.emplace_back(expires_attribute);
    }
    return {key, std::move(intent), over ? at(seen.rev) && claimed_by(*over) : unclaimed_at(seen.rev)};
}

void remove_intent(store::Update& update) {
    update.remove.insert(update.remove.end(), claim_attributes().begin(), claim_attributes().end());
    update.remove.emplace_back(after_attribute);
    update.remove.emplace_back(was_expires_attribute);
    update.remove.emplace_back(reserved_attribute);
}

}  // namespace

Row decode_row(const store::Key& key, const std::optional<store::Item>& item) {
    Row row;
    if (!item) return row;
    row.image = {.data = optional_text(*item, data_attribute),
                 .rev = optional_text(*item, rev_attribute),
                 .expires = optional_integer(*item, expires_attribute)};
    if (std::optional<Claim> claim = claim_on(key, *item)) {
        row.intent = Intent{.claim = std::move(*claim),
                            .after = optional_text(*item, after_attribute),
                            .was_expires = optional_integer(*item, was_expires_attribute),
                            .reserved = item->contains(reserved_attribute)};
    }
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
    return at(rev) && unclaimed();
}

store::Write prepare_row(const store::Key& key, const Image& seen, const Claim& claim,
                         const std::optional<std::string>& after, const std::optional<std::string>& over) {
    store::Update update;
    put_claim(update.set, claim);
    if (after) update.set.emplace(after_attribute, *after);
    return intent_over(key, seen, std::move(update), over);
}

store::Write reserve_row(const store::Key& key, const Image& seen, const Claim& claim,
                         const std::optional<std::string>& over) {
    store::Update update;
    put_claim(update.set, claim);
    update.set.emplace(reserved_attribute, std::int64_t{1});
    return intent_over(key, seen, std::move(update), over);
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
    if (VARVE_MUTANT("no tombstones") && !image.data) return {key, store::Erase{}, unclaimed_at(seen.rev)};
    return {key, replace_image(image), unclaimed_at(seen.rev)};
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

store::Write release_row(const store::Key& key, const Image& image, const Intent& intent) {
    store::Write release = undo_row(key, image, intent);
    if (!VARVE_MUTANT("a row that was filled meanwhile is released"))
        release.condition = release.condition && store::exists(reserved_attribute);
    return release;
}

store::Write remove_tombstone(const store::Key& key, const Image& tombstone) {
    return {key, store::Erase{},
            unclaimed_at(tombstone.rev) && store::equals(expires_attribute, tombstone.expires.value())};
}

}  // namespace varve::transactions
