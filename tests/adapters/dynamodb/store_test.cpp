// What servers may answer and those of the tests do not.

#include "item_json.h"
#include "support/scripted_server.h"

#include <varve/core/error.h>
#include <varve/dynamodb/dynamodb.h>
#include <varve/store/item_store.h>
#include <varve/testing/manual_clock.h>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

struct Said {
    std::string body;
    int status = 200;
};

/// A store whose server has one table; `script` answers all that is asked of its items.
class ScriptedStore {
  public:
    using Script = std::function<Said(const std::string& operation, const rapidjson::Document& request)>;

    explicit ScriptedStore(Script script)
        : server_([script = std::move(script)](const ScriptedServer::Request& request, std::size_t) {
              const std::string target = request.header("x-amz-target");
              const std::string operation = target.substr(target.find('.') + 1);
              const std::string table =
                  R"({"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"p","KeyType":"HASH"},)"
                  R"({"AttributeName":"n","KeyType":"RANGE"}],"AttributeDefinitions":[)"
                  R"({"AttributeName":"p","AttributeType":"S"},{"AttributeName":"n","AttributeType":"N"}]}})";
              const Said answer = operation == "DescribeTable"
                                      ? Said{table}
                                      : script(operation, parse_object(request.body, "the request"));
              return ScriptedServer::Reply{ScriptedServer::answer(answer.status, answer.body)};
          }) {
        store->ensure_table(
            {.name = "items", .partition_attribute = "p", .sort_attribute = "n", .sort = store::SortType::integer});
    }

    static store::Key key(std::int64_t n) { return {.table = "items", .partition = "a", .sort = n}; }
    static std::string item(std::int64_t n) { return R"({"p":{"S":"a"},"n":{"N":")" + std::to_string(n) + R"("}})"; }

  private:
    testing::ManualClock clock_{testing::ManualClock::Mode::auto_advance};
    ScriptedServer server_;

  public:
    const std::shared_ptr<store::ItemStore> store = dynamodb::open(
        {.host = server_.address(), .prefix = "bank", .region = "eu-west-1", .runtime = {.clock = clock_}});
};

/// The sort keys that a BatchGetItem asks for.
std::vector<std::string> asked_for(const rapidjson::Document& request) {
    std::vector<std::string> keys;
    for (const auto& key : request["RequestItems"]["bank.items"]["Keys"].GetArray())
        keys.emplace_back(key["n"]["N"].GetString());
    return keys;
}

TEST(ScriptedStore, asks_again_for_what_a_server_leaves_unprocessed) {
    std::atomic<int> asked = 0;
    ScriptedStore scripted{[&asked](const std::string& operation, const rapidjson::Document& request) {
        EXPECT_EQ(operation, "BatchGetItem");
        ++asked;
        const std::vector<std::string> keys = asked_for(request);
        std::string left;
        for (std::size_t i = 1; i < keys.size(); ++i)
            left += (left.empty() ? "" : ",") + ScriptedStore::item(std::stoll(keys[i]));
        const std::string unprocessed = left.empty() ? "" : R"("bank.items":{"Keys":[)" + left + "]}";
        return Said{R"({"Responses":{"bank.items":[)" + ScriptedStore::item(std::stoll(keys[0])) +
                    R"(]},"UnprocessedKeys":{)" + unprocessed + "}}"};
    }};
    const std::vector<store::Key> keys{ScriptedStore::key(1), ScriptedStore::key(2), ScriptedStore::key(3)};
    for (const auto& item : scripted.store->read(keys)) EXPECT_EQ(item, store::Item{});
    EXPECT_EQ(asked, 3);
}

TEST(ScriptedStore, says_in_doubt_of_a_refused_write_whose_item_cannot_be_read_and_answers_the_others) {
    ScriptedStore scripted{[](const std::string& operation, const rapidjson::Document& request) {
        if (operation == "GetItem") return Said{R"({"__type":"x#InternalServerError"})", 500};
        const bool first = request["Key"]["n"]["N"] == "1";
        return first ? Said{R"({"__type":"x#ConditionalCheckFailedException"})", 400} : Said{"{}"};
    }};
    const auto write = [](std::int64_t n) {
        return store::Write{ScriptedStore::key(n), store::Erase{}, store::item_exists()};
    };
    const std::vector<store::Write> writes{write(1), write(2)};
    const std::vector<store::WriteAnswer> answers = scripted.store->write(writes);
    const auto& failure = std::get<Failure>(answers.at(0));
    EXPECT_TRUE(failure.in_doubt);
    EXPECT_NE(failure.message.find("why cannot be read"), std::string::npos) << failure.message;
    EXPECT_TRUE(std::holds_alternative<store::Applied>(answers.at(1)));
}

TEST(ScriptedStore, a_malformed_item_spoils_the_answer_of_the_write_that_it_refuses_and_of_no_other) {
    // The server tells the item that refused a write at once, or when it is asked for it.
    for (const bool tells : {true, false}) {
        ScriptedStore scripted{[tells](const std::string& operation, const rapidjson::Document& request) {
            const auto damaged = [](const std::string& n) {
                return R"({"p":{"S":"a"},"n":{"N":")" + n + R"("},"x":{"B":"?"}})";
            };
            if (operation == "BatchGetItem") {
                return Said{R"({"Responses":{"bank.items":[)" + damaged("1") + "," + ScriptedStore::item(2) + "]}}"};
            }
            const std::string n = request["Key"]["n"]["N"].GetString();
            const std::string item = n == "1" ? damaged(n) : ScriptedStore::item(2);
            if (operation == "GetItem") return Said{R"({"Item":)" + item + "}"};
            if (n == "3") return Said{"{}"};
            return Said{R"({"__type":"x#ConditionalCheckFailedException")" + (tells ? R"(,"Item":)" + item : "") + "}",
                        400};
        }};
        std::vector<store::Write> writes;
        for (const std::int64_t n : {1, 2, 3})
            writes.push_back({ScriptedStore::key(n), store::Erase{}, !store::item_exists()});
        const std::vector<store::WriteAnswer> answers = scripted.store->write(writes);
        const auto& failure = std::get<Failure>(answers.at(0));
        EXPECT_EQ(failure.kind, ErrorKind::corruption);
        EXPECT_FALSE(failure.in_doubt);
        EXPECT_NE(failure.message.find("items/a/1"), std::string::npos) << failure.message;
        EXPECT_TRUE(std::holds_alternative<store::Refused>(answers.at(1)));
        EXPECT_TRUE(std::holds_alternative<store::Applied>(answers.at(2)));
    }
}

TEST(ScriptedStore, what_a_server_says_reaches_messages_without_control_characters_and_bounded) {
    ScriptedStore scripted{[](const std::string&, const rapidjson::Document&) {
        return Said{R"({"Item":{"p":{"S":"a"},"n":{"N":"1"},"\u001b[31m)" + std::string(5'000, 'x') + R"(":5}})"};
    }};
    const store::Key key = ScriptedStore::key(1);
    try {
        (void)scripted.store->read({&key, 1});
        FAIL() << "no error";
    } catch (const CorruptionError& error) {
        const std::string message = error.what();
        EXPECT_EQ(message.find('\x1b'), std::string::npos) << message;
        EXPECT_LT(message.size(), 600U);
    }
}

TEST(ScriptedStore, says_of_an_invalid_update_what_the_server_says_unless_it_is_the_items_size) {
    std::string said = "Item size to update has exceeded the maximum allowed size";
    const ScriptedStore scripted{[&said](const std::string&, const rapidjson::Document&) {
        return Said{R"({"__type":"com.amazon.coral.validate#ValidationException","message":")" + said + R"("})", 400};
    }};
    const auto message = [&scripted] {
        const store::Write write{ScriptedStore::key(7), store::Update{{{"more", 1}}, {}}};
        const auto answer = scripted.store->write({&write, 1}).at(0);
        const auto* failure = std::get_if<Failure>(&answer);
        if (failure == nullptr) throw std::logic_error("no failure");
        EXPECT_EQ(failure->kind, ErrorKind::invalid);
        EXPECT_FALSE(failure->in_doubt);
        return failure->message;
    };
    EXPECT_EQ(message(),
              "the update would let the item items/a/7 grow beyond the limit of 409600 bytes, names and what other "
              "programs have added included; keep less in one item");
    said = "Invalid UpdateExpression: Expression size has exceeded the maximum allowed size";
    EXPECT_NE(message().find(said), std::string::npos) << message();
}

TEST(ScriptedStore, gives_up_on_a_server_that_processes_nothing) {
    ScriptedStore scripted{[](const std::string&, const rapidjson::Document& request) {
        std::string left;
        for (const std::string& n : asked_for(request))
            left += (left.empty() ? "" : ",") + ScriptedStore::item(std::stoll(n));
        return Said{R"({"Responses":{},"UnprocessedKeys":{"bank.items":{"Keys":[)" + left + "]}}}"};
    }};
    const std::vector<store::Key> keys{ScriptedStore::key(1), ScriptedStore::key(2)};
    try {
        (void)scripted.store->read(keys);
        FAIL() << "no error";
    } catch (const UnavailableError& error) {
        EXPECT_NE(std::string{error.what()}.find("2 of 2 reads"), std::string::npos) << error.what();
    }
}

TEST(ScriptedStore, goes_on_after_a_page_without_items) {
    ScriptedStore scripted{[](const std::string& operation, const rapidjson::Document& request) {
        EXPECT_EQ(operation, "Query");
        if (!request.HasMember("ExclusiveStartKey"))
            return Said{R"({"Items":[],"Count":0,"LastEvaluatedKey":)" + ScriptedStore::item(7) + "}"};
        EXPECT_STREQ(request["ExclusiveStartKey"]["n"]["N"].GetString(), "7");
        return Said{R"({"Items":[)" + ScriptedStore::item(8) + "]}"};
    }};
    store::Query query{.table = "items", .partition = "a"};
    const store::Page empty = scripted.store->query(query);
    EXPECT_TRUE(empty.records.empty());
    ASSERT_TRUE(empty.next);
    query.next = empty.next;
    const store::Page last = scripted.store->query(query);
    EXPECT_EQ(last.records, (std::vector<store::Record>{{ScriptedStore::key(8), {}}}));
    EXPECT_EQ(last.next, std::nullopt);
}

}  // namespace
}  // namespace varve::dynamodb
