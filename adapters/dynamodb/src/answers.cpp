#include "answers.h"

#include "item_json.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>

#include <algorithm>

namespace varve::dynamodb {
namespace {

using rapidjson::Value;

std::string text_member(const Value& object, const char* name) {
    const auto member = object.FindMember(name);
    if (member == object.MemberEnd() || !member->value.IsString()) return {};
    return {member->value.GetString(), member->value.GetStringLength()};
}

/// nullptr if it is missing or null.
const Value* member_of(const Value& object, const char* name) {
    const auto member = object.FindMember(name);
    return member == object.MemberEnd() || member->value.IsNull() ? nullptr : &member->value;
}

const Value& object_member(const Value& object, const char* name) {
    const Value* value = member_of(object, name);
    if (value == nullptr || !value->IsObject()) {
        throw CorruptionError("the server's answer has no object '" + std::string{name} + "'");
    }
    return *value;
}

const Value& array_member(const Value& object, const char* name) {
    const Value* value = member_of(object, name);
    if (value == nullptr || !value->IsArray()) {
        throw CorruptionError("the server's answer has no array '" + std::string{name} + "'");
    }
    return *value;
}

store::Record parse_record(const Value& object, const Table& table) {
    return {.key = parse_key(object, table), .item = parse_item(object, table)};
}

const Table& known(const FindTable& find, const Value& name) {
    const Table* table = find({name.GetString(), name.GetStringLength()});
    if (table == nullptr) {
        throw CorruptionError("the server's answer is about table '" + std::string{name.GetString()} +
                              "', which was not asked for");
    }
    return *table;
}

}  // namespace

std::optional<store::Item> parse_get_item(const Value& answer, const Table& table) {
    const Value* item = member_of(answer, "Item");
    if (item == nullptr) return std::nullopt;
    return parse_item(*item, table);
}

BatchOfItems parse_batch_get_item(const Value& answer, const FindTable& find) {
    BatchOfItems batch;
    for (const auto& responses : object_member(answer, "Responses").GetObject()) {
        const Table& table = known(find, responses.name);
        if (!responses.value.IsArray()) throw CorruptionError("the answer to BatchGetItem has no list of items");
        for (const Value& item : responses.value.GetArray()) batch.records.push_back(parse_record(item, table));
    }
    if (const Value* unprocessed = member_of(answer, "UnprocessedKeys")) {
        if (!unprocessed->IsObject()) throw CorruptionError("the answer to BatchGetItem has no map UnprocessedKeys");
        for (const auto& keys : unprocessed->GetObject()) {
            const Table& table = known(find, keys.name);
            if (!keys.value.IsObject()) throw CorruptionError("the answer to BatchGetItem has no map of keys");
            for (const Value& key : array_member(keys.value, "Keys").GetArray()) {
                batch.unprocessed.push_back(parse_key(key, table));
            }
        }
    }
    return batch;
}

PageOfItems parse_page(const Value& answer, const Table& table) {
    PageOfItems page;
    for (const Value& item : array_member(answer, "Items").GetArray())
        page.records.push_back(parse_record(item, table));
    if (const Value* last = member_of(answer, "LastEvaluatedKey")) page.last = parse_key(*last, table);
    return page;
}

NamedError parse_error(const Value& answer) {
    NamedError error{.name = text_member(answer, "__type"), .message = text_member(answer, "message")};
    if (error.message.empty()) error.message = text_member(answer, "Message");
    error.name.resize(std::min(error.name.find(':'), error.name.size()));
    if (const std::size_t hash = error.name.rfind('#'); hash != std::string::npos) error.name.erase(0, hash + 1);
    return error;
}

std::optional<store::Item> parse_refusing_item(const Value& answer, const Table& table) {
    const Value* item = member_of(answer, "Item");
    if (item == nullptr) return std::nullopt;
    return parse_item(*item, table);
}

DescribedTable parse_described_table(const Value& answer) {
    const Value* table = member_of(answer, "Table");
    const Value& description =
        table != nullptr && table->IsObject() ? *table : object_member(answer, "TableDescription");
    const auto type_of = [&description](const std::string& attribute) -> std::string {
        for (const Value& one : array_member(description, "AttributeDefinitions").GetArray()) {
            if (one.IsObject() && text_member(one, "AttributeName") == attribute)
                return text_member(one, "AttributeType");
        }
        return {};
    };
    DescribedTable result{.active = text_member(description, "TableStatus") == "ACTIVE" ||
                                    text_member(description, "TableStatus") == "UPDATING",
                          .arn = text_member(description, "TableArn"),
                          .partition_attribute = {},
                          .partition_type = {},
                          .sort_attribute = {},
                          .sort_type = {}};
    for (const Value& one : array_member(description, "KeySchema").GetArray()) {
        if (!one.IsObject()) throw CorruptionError("the description of a table has no schema of its key");
        const std::string name = text_member(one, "AttributeName");
        if (text_member(one, "KeyType") == "HASH") {
            result.partition_attribute = name;
            result.partition_type = type_of(name);
        } else {
            result.sort_attribute = name;
            result.sort_type = type_of(name);
        }
    }
    return result;
}

std::optional<std::string> parse_tag(const Value& answer, std::string_view name) {
    for (const Value& tag : array_member(answer, "Tags").GetArray()) {
        if (tag.IsObject() && text_member(tag, "Key") == name) return text_member(tag, "Value");
    }
    return std::nullopt;
}

std::optional<std::string> parse_alternator_setting(const Value& answer) {
    for (const Value& item : array_member(answer, "Items").GetArray()) {
        if (!item.IsObject()) continue;
        const Value* value = member_of(item, "value");
        if (value == nullptr || !value->IsObject()) continue;
        std::string text = text_member(*value, "S");
        // A text's value is in the form of JSON.
        if (text.size() >= 2 && text.starts_with('"') && text.ends_with('"')) text = text.substr(1, text.size() - 2);
        return text;
    }
    return std::nullopt;
}

std::string parse_time_to_live(const Value& answer) {
    const Value& description = object_member(answer, "TimeToLiveDescription");
    const std::string status = text_member(description, "TimeToLiveStatus");
    return status == "ENABLED" || status == "ENABLING" ? text_member(description, "AttributeName") : std::string{};
}

}  // namespace varve::dynamodb
