#include "endpoint.h"
#include "support/scripted_server.h"

#include <varve/core/error.h>
#include <varve/store/open.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/recorded_log.h>

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

namespace varve::dynamodb {
namespace {

std::string url_of(Options options) {
    if (options.prefix.empty()) options.prefix = "bank";
    if (options.region.empty()) options.region = "eu-west-1";
    return client_parts(options).endpoint.url;
}

TEST(Opening, aws_is_addressed_by_its_region) {
    EXPECT_EQ(url_of({.prefix = "bank"}), "https://dynamodb.eu-west-1.amazonaws.com/");
    EXPECT_EQ(url_of({.prefix = "bank", .region = "cn-north-1"}), "https://dynamodb.cn-north-1.amazonaws.com.cn/");
}

TEST(Opening, plain_http_is_for_this_machine_or_by_express_wish) {
    for (const char* host : {"127.0.0.1:8000", "localhost:8000", "[::1]:8000", "127.1.2.3"}) {
        EXPECT_EQ(url_of({.host = host, .prefix = "bank"}), "http://" + std::string{host} + "/");
        EXPECT_EQ(url_of({.host = host, .prefix = "bank", .ca_file = "ca.pem"}), "https://" + std::string{host} + "/");
    }
    for (const char* host : {"example.com", "127.0.0.1.example.com:80", "localhost.example.com", "10.0.0.1:8000",
                             "127.0.0.1.1", "127.0.0.256", "127.0.0", "[::2]"}) {
        EXPECT_EQ(url_of({.host = host, .prefix = "bank"}), "https://" + std::string{host} + "/");
        EXPECT_EQ(url_of({.host = host, .prefix = "bank", .insecure = true}), "http://" + std::string{host} + "/");
    }
}

TEST(Opening, what_would_get_into_a_host_or_a_table_is_checked) {
    for (const char* url : {"dynamodb:bank",
                            "dynamodb://127.0.0.1:8000",
                            "dynamodb://127.0.0.1:8000/",
                            "dynamodb://127.0.0.1:8000/a.b",
                            "dynamodb://127.0.0.1:8000/a/b",
                            "dynamodb://user:password@host/bank",
                            "dynamodb://ho st/bank",
                            "dynamodb://host:port/bank",
                            "dynamodb://host:/bank",
                            "dynamodb://:80/bank",
                            "dynamodb://host:65536/bank",
                            "dynamodb://[::1/bank",
                            "dynamodb:///bank?region=EU",
                            "dynamodb:///bank?region=evil.example.com%2F",
                            "dynamodb:///bank?region=a%23",
                            "dynamodb:///bank?region=x&transactions=on",
                            "dynamodb:///bank?region=x&tables=drop",
                            "dynamodb:///bank?region=x&insecure=1",
                            "dynamodb:///bank?region=x&timeout_ms=0",
                            "dynamodb:///bank?region=x&retry_budget=0",
                            "dynamodb:///bank?region=x&zone=1"}) {
        EXPECT_THROW((void)varve::open(url), ConfigError) << url;
    }
}

TEST(Opening, what_should_be_a_file_with_credentials_and_is_none_is_named) {
    const auto folder = std::filesystem::temp_directory_path() / ("varve-credentials-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    setenv("AWS_SHARED_CREDENTIALS_FILE", folder.c_str(), 1);
    try {
        (void)client_parts({.prefix = "bank", .region = "eu-west-1", .profile = "work"}).credentials();
        ADD_FAILURE() << "no error";
    } catch (const ConfigError& error) {
        EXPECT_NE(std::string{error.what()}.find(folder.string() + "'"), std::string::npos) << error.what();
        EXPECT_NE(std::string{error.what()}.find("directory"), std::string::npos) << error.what();
    }
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    std::filesystem::remove(folder);
}

TEST(Opening, sends_nothing_and_offers_no_atomic_writes) {
    // Without credentials or a network. What TransactWriteItems applies shows item by item, which the port forbids.
    EXPECT_EQ(dynamodb::open({.prefix = "bank", .region = "eu-west-1"})->capabilities().atomic_writes_max, 0U);
}

TEST(Opening, tables_that_may_not_be_created_must_be_there) {
    const ScriptedServer server{[](const auto&, std::size_t) {
        return ScriptedServer::Reply{ScriptedServer::answer(
            400, R"({"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no"})")};
    }};
    const auto store = varve::open("dynamodb://" + server.address() + "/bank?region=eu-west-1&tables=expect");
    try {
        store->ensure_table({.name = "events", .partition_attribute = "id"});
        FAIL() << "no error";
    } catch (const ConfigError& error) {
        EXPECT_NE(std::string{error.what()}.find("bank.events"), std::string::npos) << error.what();
    }
    EXPECT_EQ(server.requests().size(), 1U);
}

TEST(Opening, a_table_that_was_just_made_may_not_be_known_everywhere_yet) {
    const auto described = [](const std::string& status) {
        return ScriptedServer::Reply{ScriptedServer::answer(
            200, R"({"Table":{"TableStatus":")" + status +
                     R"(","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],)" +
                     R"("AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}})")};
    };
    const ScriptedServer::Reply unknown{ScriptedServer::answer(
        400, R"({"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no"})")};
    const std::vector<ScriptedServer::Reply> replies{unknown, described("CREATING"), unknown, described("CREATING"),
                                                     described("ACTIVE")};
    const ScriptedServer server{[&](const auto&, std::size_t number) { return replies.at(number); }};
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    dynamodb::open({.host = server.address(), .prefix = "bank", .region = "eu-west-1", .runtime = {.clock = clock}})
        ->ensure_table({.name = "events", .partition_attribute = "id"});
    std::string asked;
    for (const auto& request : server.requests()) {
        const std::string target = request.header("x-amz-target");
        asked += target.substr(target.find('.')) + "\n";
    }
    EXPECT_EQ(asked, ".DescribeTable\n.CreateTable\n.DescribeTable\n.DescribeTable\n.DescribeTable\n");
}

/// As far as opening a store goes.
class Alternator {
  public:
    /// What the table's tag and the node's setting say; nullopt: nothing.
    Alternator(std::optional<std::string> tag, std::optional<std::string> setting)
        : server_([tag = std::move(tag), setting = std::move(setting)](const ScriptedServer::Request& request,
                                                                       std::size_t) {
              const std::string target = request.header("x-amz-target");
              const auto asks = [&target](const char* operation) { return target.ends_with(operation); };
              const auto ok = [](const std::string& body) {
                  return ScriptedServer::Reply{ScriptedServer::answer(200, body)};
              };
              if (asks(".DescribeTable")) {
                  return ok(R"({"Table":{"TableStatus":"ACTIVE","TableArn":)"
                            R"("arn:scylla:alternator:alternator_bank.events:scylla:table/bank.events",)"
                            R"("KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],)"
                            R"("AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}})");
              }
              if (asks(".ListTagsOfResource")) {
                  EXPECT_NE(request.body.find("table/bank.events"), std::string::npos);
                  return ok(tag ? R"({"Tags":[{"Key":"team","Value":"u"},{"Key":"system:write_isolation","Value":")" +
                                      *tag + R"("}]})"
                                : R"({"Tags":[]})");
              }
              if (asks(".Query") && setting) {
                  EXPECT_NE(request.body.find(".scylla.alternator.system.config"), std::string::npos);
                  return ok(R"({"Items":[{"name":{"S":"alternator_write_isolation"},"value":{"S":"\")" + *setting +
                            R"(\""}}]})");
              }
              if (asks(".DescribeTimeToLive"))
                  return ok(R"({"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}})");
              const std::string name = asks(".UpdateTimeToLive") ? "ValidationException" : "ResourceNotFoundException";
              return ScriptedServer::Reply{ScriptedServer::answer(
                  400, R"({"__type":"com.amazonaws.dynamodb.v20120810#)" + name + R"(","message":"no"})")};
          }) {}

    void open(const std::string& expiry_attribute = "") {
        dynamodb::open({.host = server_.address(), .prefix = "bank", .region = "eu-west-1", .runtime = {.log = log}})
            ->ensure_table({.name = "events", .partition_attribute = "id", .expiry_attribute = expiry_attribute});
    }

    testing::RecordedLog log;

  private:
    ScriptedServer server_;
};

TEST(Opening, a_table_of_alternators_whose_conditional_writes_are_not_atomic_is_refused) {
    const std::optional<std::string> none;
    for (const auto& [tag, setting] :
         std::vector<std::pair<std::optional<std::string>, std::optional<std::string>>>{{"u", none},
                                                                                        {"unsafe", "always_use_lwt"},
                                                                                        {"unsafe_rmw", none},
                                                                                        {"forbid_rmw", "always"},
                                                                                        {none, "unsafe_rmw"},
                                                                                        {none, "forbid"}}) {
        Alternator server{tag, setting};
        try {
            server.open();
            ADD_FAILURE() << tag.value_or("none") << " " << setting.value_or("none");
        } catch (const ConfigError& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find("bank.events"), std::string::npos) << message;
            EXPECT_NE(message.find("'" + (tag ? *tag : *setting) + "'"), std::string::npos) << message;
            EXPECT_NE(message.find("system:write_isolation=always_use_lwt"), std::string::npos) << message;
        }
    }
    for (const auto& [tag, setting] : std::vector<std::pair<std::optional<std::string>, std::optional<std::string>>>{
             {"a", "unsafe_rmw"}, {"only_rmw_uses_lwt", none}, {none, "always_use_lwt"}, {none, "o"}}) {
        Alternator server{tag, setting};
        server.open();
        EXPECT_EQ(server.log.text(), "");
    }
}

TEST(Opening, an_alternator_that_lets_nothing_expire_keeps_it) {
    Alternator server{"always", std::nullopt};
    server.open("expires");
    EXPECT_NE(server.log.text().find("items of table 'bank.events' that have expired are kept"), std::string::npos);
}

TEST(Opening, an_alternator_that_does_not_tell_its_write_isolation_is_warned_of) {
    Alternator server{std::nullopt, std::nullopt};
    server.open();
    EXPECT_NE(server.log.text().find("does not tell the write isolation of table 'bank.events'"), std::string::npos);
}

}  // namespace
}  // namespace varve::dynamodb
