#include "answers.h"
#include "expression.h"
#include "item_json.h"
#include "requests.h"
#include "support/json_cases.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>

#include <limits>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using store::Bytes;
using store::Item;

const Table events{"bank.events",
                   {.name = "events",
                    .partition_attribute = "aggregateId",
                    .sort_attribute = "version",
                    .sort = store::SortType::integer}};
const Table plain{"bank.plain", {.name = "plain", .partition_attribute = "id", .expiry_attribute = "expires"}};

store::Key slot(std::string aggregate, std::int64_t version) {
    return {.table = "events", .partition = std::move(aggregate), .sort = version};
}

std::string expression(const store::Condition& condition) {
    return Expressions{plain}.condition(condition);
}

std::string body_of(const store::Write& write) {
    return write_item({&events, &write}).body;
}

Item read_item(const std::string& json) {
    return parse_item(parse_object(json, "the item"), events);
}

TEST(Items, are_written_with_their_key_as_dynamodb_types) {
    const Item item{{"n", std::numeric_limits<std::int64_t>::min()},
                    {"text", std::string{"a \"q\" \\ \xc3\xa9\x01"}},
                    {"bytes", Bytes{std::byte{0}, std::byte{0xff}, std::byte{0x10}, std::byte{0x7f}}},
                    {"empty", Bytes{}}};
    rapidjson::StringBuffer buffer;
    Writer writer{buffer};
    write_item(writer, events, slot("alice", 7), item);
    EXPECT_STREQ(buffer.GetString(),
                 R"({"aggregateId":{"S":"alice"},"version":{"N":"7"},"bytes":{"B":"AP8Qfw=="},"empty":{"B":""},)"
                 "\"n\":{\"N\":\"-9223372036854775808\"},\"text\":{\"S\":\"a \\\"q\\\" \\\\ \xc3\xa9\\u0001\"}}");
    EXPECT_EQ(read_item(buffer.GetString()), item);
    EXPECT_EQ(parse_key(parse_object(buffer.GetString(), "the key"), events), slot("alice", 7));
}

TEST(Items, attributes_of_other_types_are_passed_over) {
    EXPECT_EQ(
        read_item(R"({"aggregateId":{"S":"a"},"version":{"N":"1"},"mine":{"S":"x"},"set":{"SS":["a"]},)"
                  R"("map":{"M":{"a":{"S":"b"}}},"list":{"L":[{"N":"1"}]},"yes":{"BOOL":true},"no":{"NULL":true},)"
                  R"("half":{"N":"0.5"},"large":{"N":"99999999999999999999999999999999999999"}})"),
        (Item{{"mine", std::string{"x"}}}));
}

TEST(Items, what_is_no_item_is_corruption) {
    for (const char* json : {"", "[]", "{", "nonsense", "{\"a\":1}", "{\"a\":{\"S\":1}}", "{\"a\":{}}",
                             "{\"a\":{\"S\":\"x\",\"N\":\"1\"}}", "{\"a\":{\"B\":\"A\"}}", "{\"a\":{\"B\":\"?===\"}}",
                             "{\"a\":{\"S\":\"\xff\"}}", "{}{}"}) {
        EXPECT_THROW(read_item(json), CorruptionError) << json;
    }
    EXPECT_THROW(parse_key(parse_object(R"({"aggregateId":{"S":"a"}})", ""), events), CorruptionError);
    EXPECT_THROW(parse_key(parse_object(R"({"aggregateId":{"S":"a"},"version":{"N":"1.5"}})", ""), events),
                 CorruptionError);
    EXPECT_THROW(parse_key(parse_object(R"({"aggregateId":{"N":"1"},"version":{"N":"1"}})", ""), events),
                 CorruptionError);
}

TEST(Items, only_what_is_json_is_read) {
    for (const JsonCase& one : json_cases()) {
        const std::string text = "{\"x\":" + one.text + "}";
        if (one.valid) {
            EXPECT_NO_THROW((void)parse_object(text, "it")) << text;
        } else {
            EXPECT_THROW((void)parse_object(text, "it"), CorruptionError) << text;
        }
    }
    using namespace std::string_view_literals;
    for (const std::string_view text :
         {"{}\0garbage"sv, "{}\0"sv, "\xef\xbb\xbf{}"sv, "{} x"sv, "{}{}"sv, ""sv, "5"sv}) {
        EXPECT_THROW((void)parse_object(text, "it"), CorruptionError) << text;
    }
    EXPECT_THROW((void)parse_get_item(parse_object(R"({"Item":5})", "it"), events), CorruptionError);
}

TEST(Items, a_deeply_nested_answer_does_not_exhaust_the_stack) {
    const std::string open(200'000, '[');
    EXPECT_THROW(read_item("{\"a\":" + open), CorruptionError);
}

TEST(Numbers, integers_are_exact_in_every_notation) {
    EXPECT_EQ(exact_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(exact_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(exact_integer("9007199254740993"), 9007199254740993);
    EXPECT_EQ(exact_integer("1.2E1"), 12);
    EXPECT_EQ(exact_integer("1e+3"), 1000);
    EXPECT_EQ(exact_integer("120E-1"), 12);
    EXPECT_EQ(exact_integer("-0"), 0);
    EXPECT_EQ(exact_integer("007"), 7);
    EXPECT_EQ(exact_integer("5.000"), 5);
}

TEST(Numbers, what_is_no_64_bit_integer_is_none) {
    for (const char* number :
         {"", "-", "1.5", "9223372036854775808", "-9223372036854775809", "1E20", "1e99999999999", "12E-1", "NaN", "0x1",
          "1 ", "1e", ".", "0.1e-2147483648", "0.1e-2147483647", "1e2147483647", "0e-2147483648"}) {
        EXPECT_EQ(exact_integer(number), std::nullopt) << number;
    }
}

TEST(Conditions, become_expressions_of_placeholders) {
    using namespace store;
    EXPECT_EQ(expression({}), "");
    EXPECT_EQ(expression(!item_exists()), "NOT attribute_exists(#0)");
    EXPECT_EQ(expression(exists("a") && equals("a", 1)), "attribute_exists(#0) AND #0 = :0");
    EXPECT_EQ(expression(!item_exists() || (equals("state", "void") && less("epoch", 3))),
              "(NOT attribute_exists(#0)) OR (#1 = :0 AND #2 < :1)");
    EXPECT_EQ(expression(!!exists("a")), "NOT (NOT attribute_exists(#0))");
}

TEST(Conditions, that_are_empty_inside_others_stay_true_or_false) {
    using namespace store;
    const Condition never{.op = Condition::Operator::any_of};
    EXPECT_EQ(expression(never), "attribute_exists(#0) AND attribute_not_exists(#0)");
    EXPECT_EQ(expression(!Condition{}), "NOT (attribute_exists(#0) OR attribute_not_exists(#0))");
}

TEST(Conditions, of_one_part_get_no_second_parentheses) {
    using namespace store;
    Condition inner{.op = Condition::Operator::any_of};
    inner.operands.push_back(exists("a") && exists("b"));
    Condition outer{.op = Condition::Operator::all_of};
    outer.operands.push_back(inner);
    EXPECT_EQ(expression(!outer), "NOT (attribute_exists(#0) AND attribute_exists(#1))");
    EXPECT_EQ(expression(outer), "attribute_exists(#0) AND attribute_exists(#1)");
}

TEST(Requests, a_put_names_the_whole_item) {
    EXPECT_EQ(body_of({.key = slot("alice", 1),
                       .action = store::Put{{{"state", std::string{"done"}}}},
                       .condition = !store::item_exists()}),
              R"({"TableName":"bank.events","Item":{"aggregateId":{"S":"alice"},"version":{"N":"1"},)"
              R"j("state":{"S":"done"}},"ConditionExpression":"NOT attribute_exists(#0)",)j"
              R"("ReturnValuesOnConditionCheckFailure":"ALL_OLD","ExpressionAttributeNames":{"#0":"aggregateId"}})");
}

TEST(Requests, an_update_sets_and_removes) {
    EXPECT_EQ(body_of({.key = slot("alice", 1), .action = store::Update{{{"size", 5}}, {"b", "a", "b"}}}),
              R"({"TableName":"bank.events","Key":{"aggregateId":{"S":"alice"},"version":{"N":"1"}},)"
              R"("UpdateExpression":"SET #0 = :0 REMOVE #1, #2",)"
              R"("ExpressionAttributeNames":{"#0":"size","#1":"a","#2":"b"},)"
              R"("ExpressionAttributeValues":{":0":{"N":"5"}}})");
    EXPECT_EQ(body_of({.key = slot("alice", 1), .action = store::Update{}}),
              R"({"TableName":"bank.events","Key":{"aggregateId":{"S":"alice"},"version":{"N":"1"}}})");
    EXPECT_EQ(body_of({.key = slot("alice", 1), .action = store::Update{{}, {"a"}}}),
              R"({"TableName":"bank.events","Key":{"aggregateId":{"S":"alice"},"version":{"N":"1"}},)"
              R"("UpdateExpression":"REMOVE #0","ExpressionAttributeNames":{"#0":"a"}})");
}

TEST(Requests, each_kind_of_write_is_its_operation_and_must_not_be_repeated) {
    const std::pair<decltype(store::Write::action), std::string_view> expected[] = {
        {store::Put{}, "PutItem"}, {store::Update{}, "UpdateItem"}, {store::Erase{}, "DeleteItem"}};
    for (const auto& [action, operation] : expected) {
        const store::Write write{.key = slot("a", 1), .action = action};
        const Call call = write_item({&events, &write});
        EXPECT_EQ(call.operation, operation);
        EXPECT_EQ(call.repeat, Call::Repeat::harmful);
    }
}

TEST(Requests, reads_are_consistent) {
    const store::Key key = slot("a", 1);
    const store::Key other{.table = "plain", .partition = "b"};
    EXPECT_EQ(
        get_item({&events, &key}).body,
        R"({"TableName":"bank.events","Key":{"aggregateId":{"S":"a"},"version":{"N":"1"}},"ConsistentRead":true})");
    const std::vector<TableKey> keys{{&plain, &other}};
    EXPECT_EQ(batch_get_item(keys).body,
              R"({"RequestItems":{"bank.plain":{"ConsistentRead":true,"Keys":[{"id":{"S":"b"}}]}}})");
    EXPECT_EQ(
        query(events, {.table = "events", .partition = "a", .first = 2, .last = 5, .descending = true, .limit = 9},
              slot("a", 4))
            .body,
        R"({"TableName":"bank.events","KeyConditionExpression":"#0 = :0 AND #1 BETWEEN :1 AND :2",)"
        R"("ExpressionAttributeNames":{"#0":"aggregateId","#1":"version"},)"
        R"("ExpressionAttributeValues":{":0":{"S":"a"},":1":{"N":"2"},":2":{"N":"5"}},)"
        R"("ConsistentRead":true,"ScanIndexForward":false,"Limit":9,)"
        R"("ExclusiveStartKey":{"aggregateId":{"S":"a"},"version":{"N":"4"}}})");
    EXPECT_EQ(scan(plain, {.table = "plain", .segment = 1, .segments = 4, .limit = 10}, std::nullopt).body,
              R"({"TableName":"bank.plain","ConsistentRead":true,"Limit":10,"Segment":1,"TotalSegments":4})");
}

TEST(Requests, a_table_is_paid_by_request_and_its_key_is_typed) {
    EXPECT_EQ(create_table(events).body,
              R"({"TableName":"bank.events","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[)"
              R"({"AttributeName":"aggregateId","AttributeType":"S"},{"AttributeName":"version","AttributeType":"N"}],)"
              R"("KeySchema":[{"AttributeName":"aggregateId","KeyType":"HASH"},)"
              R"({"AttributeName":"version","KeyType":"RANGE"}]})");
    EXPECT_EQ(update_time_to_live(plain).body,
              R"({"TableName":"bank.plain","TimeToLiveSpecification":{"AttributeName":"expires","Enabled":true}})");
}

TEST(Answers, an_empty_page_can_go_on) {
    const PageOfItems page = parse_page(
        parse_object(R"({"Items":[],"Count":0,"LastEvaluatedKey":{"aggregateId":{"S":"a"},"version":{"N":"4"}}})",
                     "the answer"),
        events);
    EXPECT_TRUE(page.records.empty());
    EXPECT_EQ(page.last, slot("a", 4));
    EXPECT_EQ(parse_page(parse_object(R"({"Items":[]})", "the answer"), events).last, std::nullopt);
}

TEST(Answers, a_batch_tells_what_was_not_processed) {
    const auto find = [](std::string_view name) { return name == events.name ? &events : nullptr; };
    const BatchOfItems batch = parse_batch_get_item(
        parse_object(
            R"({"Responses":{"bank.events":[{"version":{"N":"1"},"aggregateId":{"S":"a"},"x":{"N":"2"}}]},)"
            R"("UnprocessedKeys":{"bank.events":{"ConsistentRead":true,"Keys":[{"aggregateId":{"S":"b"},"version":{"N":"2"}}]}}})",
            "the answer"),
        find);
    EXPECT_EQ(batch.records, (std::vector<store::Record>{{slot("a", 1), {{"x", 2}}}}));
    EXPECT_EQ(batch.unprocessed, std::vector<store::Key>{slot("b", 2)});
    EXPECT_THROW(parse_batch_get_item(parse_object(R"({"Responses":{"other":[]}})", "the answer"), find),
                 CorruptionError);
    EXPECT_THROW(parse_batch_get_item(parse_object("{}", "the answer"), find), CorruptionError);
}

TEST(Answers, an_error_is_known_by_its_name_without_namespace) {
    const NamedError error = parse_error(
        parse_object(R"({"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no"})",
                     "the answer"));
    EXPECT_EQ(error.name, "ConditionalCheckFailedException");
    EXPECT_EQ(error.message, "no");
    EXPECT_EQ(parse_error(parse_object(R"({"__type":"x","Message":"capital"})", "the answer")).message, "capital");
    EXPECT_EQ(parse_error(parse_object(R"({"__type":"ThrottlingException:http://internal.amazon.com/coral/x#y/"})",
                                       "the answer"))
                  .name,
              "ThrottlingException");
    EXPECT_EQ(parse_error(
                  parse_object(R"({"__type":"com.amazon.coral.service#ThrottlingException:http://x/"})", "the answer"))
                  .name,
              "ThrottlingException");
    EXPECT_EQ(parse_error(parse_object(R"({"__type":5})", "the answer")).name, "");
}

TEST(Answers, a_refused_write_brings_the_item_that_stood_there) {
    EXPECT_EQ(parse_refusing_item(
                  parse_object(R"({"__type":"x","Item":{"aggregateId":{"S":"a"},"version":{"N":"1"},"by":{"S":"me"}}})",
                               "the answer"),
                  events),
              (Item{{"by", std::string{"me"}}}));
    EXPECT_EQ(parse_refusing_item(parse_object(R"({"__type":"x"})", "the answer"), events), std::nullopt);
}

TEST(Answers, a_described_table_tells_its_key) {
    const DescribedTable table = parse_described_table(
        parse_object(R"({"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"n","KeyType":"RANGE"},)"
                     R"({"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[)"
                     R"({"AttributeName":"id","AttributeType":"S"},{"AttributeName":"n","AttributeType":"N"}]}})",
                     "the answer"));
    EXPECT_TRUE(table.active);
    EXPECT_EQ(table.partition_attribute + table.partition_type + table.sort_attribute + table.sort_type, "idSnN");
    EXPECT_EQ(parse_time_to_live(parse_object(
                  R"({"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"x"}})", "the answer")),
              "x");
    EXPECT_EQ(
        parse_time_to_live(parse_object(R"({"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}})", "the answer")),
        "");
}

}  // namespace
}  // namespace varve::dynamodb
