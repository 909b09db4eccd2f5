#include "transactions/claim.h"

#include "core/planted_faults.h"
#include "transactions/attributes.h"
#include "transactions/slot.h"

#include <varve/core/error.h>

namespace varve::transactions {
namespace {

constexpr const char* tx_attribute = "_tx";
constexpr const char* primary_attribute = "_primary";
constexpr const char* primary_version_attribute = "_primary_version";
constexpr const char* primary_epoch_attribute = "_primary_epoch";
constexpr const char* lease_attribute = "_lease";
constexpr const char* lease_length_attribute = "_lease_length";
constexpr const char* priority_attribute = "_priority";

std::int64_t microseconds(Time time) {
    return time.time_since_epoch().count();
}

}  // namespace

std::string attempt_id(const std::string& first, unsigned number) {
    return number == 1 ? first : first + "." + std::to_string(number);
}

std::string_view command_of(std::string_view tx) {
    return tx.substr(0, tx.find('.'));
}

std::optional<Claim> claim_on(const store::Key& key, const store::Item& item) {
    const std::string* tx = text_of(key, item, tx_attribute);
    if (tx == nullptr) {
        for (const std::string& name : claim_attributes()) {
            if (item.contains(name)) throw_damaged(key, "has '" + name + "' and nobody's claim");
        }
        return std::nullopt;
    }
    constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    const std::string* stream = text_of(key, item, primary_attribute);
    const std::int64_t* version = integer_of(key, item, primary_version_attribute, {1, largest});
    const std::int64_t* epoch = integer_of(key, item, primary_epoch_attribute, {0, epoch_max});
    const std::int64_t* lease = integer_of(key, item, lease_attribute, {0, microseconds_max});
    const std::int64_t* lease_length = integer_of(key, item, lease_length_attribute, {1, microseconds_max});
    const std::int64_t* priority = integer_of(key, item, priority_attribute, {0, microseconds_max});
    if (!stream || !version || !epoch || !lease || !priority || tx->empty() || stream->empty()) {
        throw_damaged(key, "bears a transaction's claim in a form that this version does not know");
    }
    return Claim{.tx = *tx,
                 .primary = slot_key(*stream, *version),
                 .primary_epoch = *epoch,
                 .lease = Time{Duration{*lease}},
                 .priority = Time{Duration{*priority}},
                 .lease_length = Duration{lease_length != nullptr ? *lease_length : 0}};
}

void put_claim(store::Item& item, const Claim& claim) {
    item.insert_or_assign(tx_attribute, claim.tx);
    item.insert_or_assign(primary_attribute, claim.primary.partition);
    item.insert_or_assign(primary_version_attribute, version_of(claim.primary));
    item.insert_or_assign(primary_epoch_attribute, claim.primary_epoch);
    item.insert_or_assign(lease_attribute, microseconds(claim.lease));
    if (claim.lease_length > Duration::zero())
        item.insert_or_assign(lease_length_attribute, std::int64_t{claim.lease_length.count()});
    item.insert_or_assign(priority_attribute, microseconds(claim.priority));
}

Claim claim_there(const store::Key& key, const store::Item& item) {
    std::optional<Claim> claim = claim_on(key, item);
    if (!claim) throw_damaged(key, "bears no claim although a transaction has left one there");
    return *std::move(claim);
}

void remove_claim(store::Item& item) {
    for (const std::string& name : claim_attributes()) item.erase(name);
}

const std::vector<std::string>& claim_attributes() {
    static const std::vector<std::string> names{
        tx_attribute,    primary_attribute,      primary_version_attribute, primary_epoch_attribute,
        lease_attribute, lease_length_attribute, priority_attribute};
    return names;
}

store::Condition claimed_by(const std::string& tx) {
    if (planted(PlantedFault::a_rows_undo_and_finalise_do_not_check_the_transaction))
        return store::exists(tx_attribute);
    return store::equals(tx_attribute, tx);
}

store::Condition unclaimed() {
    return !store::exists(tx_attribute);
}

}  // namespace varve::transactions
