#include "requests.h"

#include "expression.h"

#include <varve/store/item_store.h>

#include <algorithm>
#include <limits>
#include <map>

namespace varve::dynamodb {
namespace {

/// A JSON object being written; the braces are its scope.
class Body {
  public:
    Body() { writer_.StartObject(); }

    Writer& writer() { return writer_; }
    void text(const char* name, std::string_view value) {
        writer_.Key(name);
        write_string(writer_, value);
    }
    void flag(const char* name, bool value) {
        writer_.Key(name);
        writer_.Bool(value);
    }
    void number(const char* name, std::uint64_t value) {
        writer_.Key(name);
        writer_.Uint64(value);
    }
    std::string finish() {
        writer_.EndObject();
        return {buffer_.GetString(), buffer_.GetSize()};
    }

  private:
    rapidjson::StringBuffer buffer_;
    Writer writer_{buffer_};
};

void write_text(Writer& writer, const char* name, std::string_view value) {
    writer.Key(name);
    write_string(writer, value);
}

std::string about(const store::Key& key) {
    return "the item " + to_string(key);
}
std::string about(const Table& table) {
    return "table '" + table.name + "'";
}

/// The members that PutItem, UpdateItem and DeleteItem have in common.
void write_members(Writer& writer, const TableWrite& one) {
    const auto& [table, write] = one;
    Expressions expressions{*table};
    write_text(writer, "TableName", table->name);
    if (const auto* put = std::get_if<store::Put>(&write->action)) {
        writer.Key("Item");
        write_item(writer, *table, write->key, put->item);
    } else {
        writer.Key("Key");
        write_key(writer, *table, write->key);
    }
    if (const auto* update = std::get_if<store::Update>(&write->action)) {
        const std::string text = expressions.update(*update);
        if (!text.empty()) write_text(writer, "UpdateExpression", text);
    }
    const std::string condition = expressions.condition(write->condition);
    if (!condition.empty()) {
        write_text(writer, "ConditionExpression", condition);
        write_text(writer, "ReturnValuesOnConditionCheckFailure", "ALL_OLD");
    }
    expressions.write_placeholders(writer);
}

std::uint64_t limit_of(std::size_t limit) {
    return std::min<std::size_t>(limit, std::numeric_limits<std::int32_t>::max());
}

void write_start(Body& body, const Table& table, const std::optional<store::Key>& after) {
    if (!after) return;
    body.writer().Key("ExclusiveStartKey");
    write_key(body.writer(), table, *after);
}

store::Value value_of(const store::SortKey& sort) {
    if (const auto* number = std::get_if<std::int64_t>(&sort)) return *number;
    return std::get<std::string>(sort);
}

bool is_open(const store::SortKey& bound) {
    return std::holds_alternative<std::monostate>(bound);
}

}  // namespace

Call get_item(const TableKey& one) {
    Body body;
    body.text("TableName", one.table->name);
    body.writer().Key("Key");
    write_key(body.writer(), *one.table, *one.key);
    body.flag("ConsistentRead", true);
    return {.operation = "GetItem", .body = body.finish(), .about = about(*one.key)};
}

Call batch_get_item(std::span<const TableKey> keys) {
    std::map<const Table*, std::vector<const store::Key*>> by_table;
    for (const TableKey& one : keys) by_table[one.table].push_back(one.key);
    Body body;
    Writer& writer = body.writer();
    writer.Key("RequestItems");
    writer.StartObject();
    for (const auto& [table, its_keys] : by_table) {
        write_string(writer, table->name);
        writer.StartObject();
        writer.Key("ConsistentRead");
        writer.Bool(true);
        writer.Key("Keys");
        writer.StartArray();
        for (const store::Key* key : its_keys) write_key(writer, *table, *key);
        writer.EndArray();
        writer.EndObject();
    }
    writer.EndObject();
    return {.operation = "BatchGetItem",
            .body = body.finish(),
            .about = std::to_string(keys.size()) + " items, the first of which is " + to_string(*keys.front().key),
            .answer_bytes_max = Call::answer_of_a_batch};
}

Call write_item(const TableWrite& one) {
    static constexpr std::string_view operations[] = {"PutItem", "UpdateItem", "DeleteItem"};
    Body body;
    write_members(body.writer(), one);
    return {.operation = operations[one.write->action.index()],
            .body = body.finish(),
            .repeat = Call::Repeat::harmful,
            .about = about(one.write->key)};
}

Call query(const Table& table, const store::Query& query, const std::optional<store::Key>& after) {
    Expressions expressions{table};
    std::string condition =
        expressions.name(table.schema.partition_attribute) + " = " + expressions.value(query.partition);
    if (!is_open(query.first) || !is_open(query.last))
        condition += " AND " + expressions.name(table.schema.sort_attribute);
    if (!is_open(query.first) && !is_open(query.last)) {
        condition += " BETWEEN " + expressions.value(value_of(query.first));
        condition += " AND " + expressions.value(value_of(query.last));
    } else if (!is_open(query.first)) {
        condition += " >= " + expressions.value(value_of(query.first));
    } else if (!is_open(query.last)) {
        condition += " <= " + expressions.value(value_of(query.last));
    }
    Body body;
    body.text("TableName", table.name);
    body.text("KeyConditionExpression", condition);
    expressions.write_placeholders(body.writer());
    body.flag("ConsistentRead", true);
    body.flag("ScanIndexForward", !query.descending);
    body.number("Limit", limit_of(query.limit));
    write_start(body, table, after);
    return {.operation = "Query",
            .body = body.finish(),
            .about = "partition '" + query.partition + "' of " + about(table),
            .answer_bytes_max = Call::answer_of_a_page};
}

Call scan(const Table& table, const store::Scan& scan, const std::optional<store::Key>& after) {
    Body body;
    body.text("TableName", table.name);
    body.flag("ConsistentRead", true);
    body.number("Limit", limit_of(scan.limit));
    if (scan.segments > 1) {
        body.number("Segment", scan.segment);
        body.number("TotalSegments", scan.segments);
    }
    write_start(body, table, after);
    return {
        .operation = "Scan", .body = body.finish(), .about = about(table), .answer_bytes_max = Call::answer_of_a_page};
}

Call create_table(const Table& table) {
    const store::TableSchema& schema = table.schema;
    Body body;
    Writer& writer = body.writer();
    body.text("TableName", table.name);
    body.text("BillingMode", "PAY_PER_REQUEST");
    const bool sorted = schema.sort != store::SortType::none;
    writer.Key("AttributeDefinitions");
    writer.StartArray();
    const auto define = [&writer](const std::string& name, const char* type) {
        writer.StartObject();
        write_text(writer, "AttributeName", name);
        write_text(writer, "AttributeType", type);
        writer.EndObject();
    };
    define(schema.partition_attribute, "S");
    if (sorted) define(schema.sort_attribute, schema.sort == store::SortType::integer ? "N" : "S");
    writer.EndArray();
    writer.Key("KeySchema");
    writer.StartArray();
    const auto use = [&writer](const std::string& name, const char* type) {
        writer.StartObject();
        write_text(writer, "AttributeName", name);
        write_text(writer, "KeyType", type);
        writer.EndObject();
    };
    use(schema.partition_attribute, "HASH");
    if (sorted) use(schema.sort_attribute, "RANGE");
    writer.EndArray();
    return {.operation = "CreateTable", .body = body.finish(), .about = about(table)};
}

Call describe_table(const Table& table) {
    Body body;
    body.text("TableName", table.name);
    return {.operation = "DescribeTable", .body = body.finish(), .about = about(table)};
}

Call describe_time_to_live(const Table& table) {
    Body body;
    body.text("TableName", table.name);
    return {.operation = "DescribeTimeToLive", .body = body.finish(), .about = about(table)};
}

Call update_time_to_live(const Table& table) {
    Body body;
    Writer& writer = body.writer();
    body.text("TableName", table.name);
    writer.Key("TimeToLiveSpecification");
    writer.StartObject();
    write_text(writer, "AttributeName", table.schema.expiry_attribute);
    writer.Key("Enabled");
    writer.Bool(true);
    writer.EndObject();
    return {.operation = "UpdateTimeToLive", .body = body.finish(), .about = about(table)};
}

Call list_tags(const Table& table, std::string_view arn) {
    Body body;
    body.text("ResourceArn", arn);
    return {.operation = "ListTagsOfResource", .body = body.finish(), .about = about(table)};
}

Call alternator_setting(const std::string& name) {
    const Table settings{.name = ".scylla.alternator.system.config",
                         .schema = {.name = "config", .partition_attribute = "name"}};
    Expressions expressions{settings};
    const std::string condition = expressions.name("name") + " = " + expressions.value(name);
    Body body;
    body.text("TableName", settings.name);
    body.text("KeyConditionExpression", condition);
    expressions.write_placeholders(body.writer());
    return {.operation = "Query", .body = body.finish(), .about = "Alternator's setting " + name};
}

}  // namespace varve::dynamodb
