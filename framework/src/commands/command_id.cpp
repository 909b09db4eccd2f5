#include "commands/command_id.h"

#include "transactions/attributes.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <utility>

namespace varve::detail {

using namespace transactions;

namespace {

constexpr std::size_t command_id_bytes_max = 200;
constexpr const char* receipt_attribute = "receipt";
constexpr const char* fingerprint_attribute = "fingerprint";

std::vector<Receipt::Written> written_in(const std::string& command_id, const Committed& slot) {
    const std::string* text = store::text(slot.payload, receipt_attribute);
    auto written = json::decode<std::vector<Receipt::Written>>(text ? *text : "");
    if (!written) {
        throw CorruptionError("the receipt of command '" + command_id + "' cannot be read: " + written.error().message);
    }
    return *std::move(written);
}

Outcome outcome_of_earlier(const std::string& command_id, const std::string& fingerprint, const Committed& slot) {
    std::vector<Receipt::Written> written = written_in(command_id, slot);
    const std::string* asked = store::text(slot.payload, fingerprint_attribute);
    if (asked != nullptr && *asked != fingerprint) {
        return Rejection{.code = "command_id_reused",
                         .message = "the command id '" + command_id + "' was used before for something else" +
                                    (written.empty() ? "" : ", at " + written.front().stream) +
                                    "; give each command an id of its own"};
    }
    Receipt receipt{.transaction = slot.write_id, .written = std::move(written), .repeated = true};
    if (slot.payload.contains(effects_attribute)) {
        const store::Key key = id_slot_key(command_id);
        receipt.effects_slot = Receipt::Written{key.partition, version_of(key)};
    }
    return receipt;
}

IdSlot read_id_slot(const std::string& command_id, const std::string& fingerprint, std::optional<store::Item> item,
                    SettledReader& reader) {
    const store::Key key = id_slot_key(command_id);
    const Slot slot = decode_slot(key, std::move(item));
    if (const auto* free = std::get_if<Free>(&slot)) return {.epoch = free->epoch};
    if (const auto* committed = std::get_if<Committed>(&slot)) {
        return {.ended_before = outcome_of_earlier(command_id, fingerprint, *committed)};
    }
    const StreamRead read = reader.stream(key.partition, 1);
    if (read.head == 0) return {.epoch = read.next.epoch};
    return {.ended_before = outcome_of_earlier(command_id, fingerprint, read.slots.front().content)};
}

}  // namespace

void check_command_id(const std::string& command_id) {
    if (command_id.size() <= command_id_bytes_max) return;
    throw InvalidError("a command id has at most " + std::to_string(command_id_bytes_max) + " bytes, this one has " +
                       std::to_string(command_id.size()));
}

store::Key id_slot_key(const std::string& command_id) {
    return slot_key(std::string{id_prefix} + command_id, 1);
}

std::vector<Receipt::Written> written_by_command(const store::Key& slot, const Committed& content) {
    static_cast<void>(text_of(slot, content.payload, fingerprint_attribute));
    return written_in(slot.partition.substr(id_prefix.size()), content);
}

store::Item id_slot_payload(const std::string& fingerprint, const std::vector<Receipt::Written>& written) {
    return {{receipt_attribute, json::encode(written)}, {fingerprint_attribute, fingerprint}};
}

IdSlot read_id_slot(const std::string& command_id, const std::string& fingerprint, SettledReader& reader) {
    const store::Key key = id_slot_key(command_id);
    return read_id_slot(command_id, fingerprint, reader.items({&key, 1}).front(), reader);
}

std::vector<IdSlot> read_id_slots(Commands commands, SettledReader& reader) {
    std::vector<IdSlot> slots(commands.size());
    std::vector<std::size_t> indexes;
    std::vector<store::Key> keys;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        if (commands[i]->options.command_id.empty()) continue;
        indexes.push_back(i);
        keys.push_back(id_slot_key(commands[i]->options.command_id));
    }
    if (keys.empty()) return slots;
    std::vector<std::optional<store::Item>> items = reader.items(keys);
    for (std::size_t k = 0; k < keys.size(); ++k) {
        const Command& command = *commands[indexes[k]];
        slots[indexes[k]] = read_id_slot(command.options.command_id, command.fingerprint, std::move(items[k]), reader);
    }
    return slots;
}

}  // namespace varve::detail
