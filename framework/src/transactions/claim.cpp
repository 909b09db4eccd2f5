#include "mutants.h"

#include <varve/core/error.h>
#include <varve/transactions/claim.h>
#include <varve/transactions/slot.h>

namespace varve::transactions {
namespace {

constexpr const char* tx_attribute = "_tx";
constexpr const char* primary_attribute = "_primary";
constexpr const char* version_attribute = "_primary_version";
constexpr const char* epoch_attribute = "_primary_epoch";
constexpr const char* lease_attribute = "_lease";
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
    if (!item.contains(tx_attribute)) return std::nullopt;
    const std::string* tx = store::text(item, tx_attribute);
    const std::string* stream = store::text(item, primary_attribute);
    const std::int64_t* version = store::integer(item, version_attribute);
    const std::int64_t* epoch = store::integer(item, epoch_attribute);
    const std::int64_t* lease = store::integer(item, lease_attribute);
    const std::int64_t* priority = store::integer(item, priority_attribute);
    if (!tx || !stream || !version || !epoch || !lease || !priority) {
        throw CorruptionError("the item " + store::to_string(key) +
                              " bears a transaction's claim in a form that this version does not know");
    }
    return Claim{.tx = *tx,
                 .primary = slot_key(*stream, *version),
                 .primary_epoch = *epoch,
                 .lease = Time{Duration{*lease}},
                 .priority = Time{Duration{*priority}}};
}

void put_claim(store::Item& item, const Claim& claim) {
    item.insert_or_assign(tx_attribute, claim.tx);
    item.insert_or_assign(primary_attribute, claim.primary.partition);
    item.insert_or_assign(version_attribute, version_of(claim.primary));
    item.insert_or_assign(epoch_attribute, claim.primary_epoch);
    item.insert_or_assign(lease_attribute, microseconds(claim.lease));
    item.insert_or_assign(priority_attribute, microseconds(claim.priority));
}

void remove_claim(store::Item& item) {
    for (const std::string& name : claim_attributes()) item.erase(name);
}

const std::vector<std::string>& claim_attributes() {
    static const std::vector<std::string> names{tx_attribute,    primary_attribute, version_attribute,
                                                epoch_attribute, lease_attribute,   priority_attribute};
    return names;
}

store::Condition claimed_by(const std::string& tx) {
    if (VARVE_MUTANT("a row's undo and finalise do not check the transaction")) return store::exists(tx_attribute);
    return store::equals(tx_attribute, tx);
}

store::Condition unclaimed() {
    return !store::exists(tx_attribute);
}

}  // namespace varve::transactions
