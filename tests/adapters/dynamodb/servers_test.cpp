#include "answers.h"
#include "client.h"
#include "each_server.h"
#include "item_json.h"
#include "support/temporary_folder.h"

#include <varve/core/error.h>
#include <varve/dynamodb/dynamodb.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/manual_clock.h>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using store::Item;

const store::TableSchema events_schema{.name = "events",
                                       .partition_attribute = "aggregateId",
                                       .sort_attribute = "version",
                                       .sort = store::SortType::integer};

store::Key slot_of(std::string aggregate, std::int64_t version) {
    return {.table = "events", .partition = std::move(aggregate), .sort = version};
}

store::WriteAnswer write_one(store::ItemStore& store, store::Write write) {
    return store.write({&write, 1}).at(0);
}

std::optional<Item> read_one(store::ItemStore& store, const store::Key& key) {
    return store.read({&key, 1}).at(0);
}

/// A program that knows nothing of varve.
class ForeignClient {
  public:
    explicit ForeignClient(const LocalServer& server)
        : client_(
              {.endpoint = {.url = "http://" + server.address() + "/", .host = server.address(), .region = "eu-west-1"},
               .credentials = [] {
                   return DatedCredentials{{"foreign", "foreign"}};
               }}) {}

    rapidjson::Document call(std::string_view operation, std::string body) {
        const Call call{.operation = operation, .body = std::move(body), .about = "a foreign request"};
        Reply reply = client_.send(call);
        if (const auto* failed = std::get_if<Failed>(&reply)) ADD_FAILURE() << failed->failure.message;
        auto* done = std::get_if<Done>(&reply);
        return done != nullptr ? std::move(done->answer) : parse_object("{}", "nothing");
    }

  private:
    Client client_;
};

class Servers : public EachServer {
  protected:
    void SetUp() override {
        EachServer::SetUp();
        if (!server_) return;
        // Pauses before repetitions pass at once.
        store_ = dynamodb::open({.host = server_->address(), .prefix = "bank", .runtime = {.clock = clock_}});
        store_->ensure_table(events_schema);
    }

    testing::ManualClock clock_{testing::ManualClock::Mode::auto_advance};
    std::shared_ptr<store::ItemStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Each, Servers, each_kind(), name_of_kind);

TEST_P(Servers, a_foreign_program_reads_what_varve_writes) {
    (void)write_one(*store_, {slot_of("alice", 7), store::Put{{{"owner", std::string{"me"}}, {"cents", 5}}}});
    const auto answer = ForeignClient{*server_}.call(
        "GetItem", R"({"TableName":"bank.events","Key":{"aggregateId":{"S":"alice"},"version":{"N":"7"}}})");
    EXPECT_STREQ(answer["Item"]["owner"]["S"].GetString(), "me");
    EXPECT_STREQ(answer["Item"]["cents"]["N"].GetString(), "5");
    EXPECT_EQ(answer["Item"].MemberCount(), 4U);
}

TEST_P(Servers, what_a_foreign_program_adds_is_passed_over_and_survives_an_update) {
    ForeignClient foreign{*server_};
    foreign.call(
        "PutItem",
        R"({"TableName":"bank.events","Item":{"aggregateId":{"S":"alice"},"version":{"N":"1"},)"
        R"("owner":{"S":"me"},"tags":{"SS":["a","b"]},"rate":{"N":"0.1234567890123456789012345678901234567"}}})");
    EXPECT_EQ(read_one(*store_, slot_of("alice", 1)), (Item{{"owner", std::string{"me"}}}));
    const auto answer = write_one(*store_, {.key = slot_of("alice", 1),
                                            .action = store::Update{{{"owner", std::string{"you"}}}, {}},
                                            .condition = store::equals("owner", std::string{"me"})});
    EXPECT_TRUE(std::holds_alternative<store::Applied>(answer));
    const auto item = foreign.call(
        "GetItem", R"({"TableName":"bank.events","Key":{"aggregateId":{"S":"alice"},"version":{"N":"1"}}})");
    EXPECT_STREQ(item["Item"]["owner"]["S"].GetString(), "you");
    EXPECT_STREQ(item["Item"]["rate"]["N"].GetString(), "0.1234567890123456789012345678901234567");
    EXPECT_EQ(item["Item"]["tags"]["SS"].Size(), 2U);
}

TEST_P(Servers, a_refusal_by_an_attribute_that_varve_does_not_know_ends) {
    ForeignClient{*server_}.call("PutItem", R"({"TableName":"bank.events","Item":{"aggregateId":{"S":"alice"},)"
                                            R"("version":{"N":"1"},"tags":{"SS":["a"]}}})");
    const auto answer =
        write_one(*store_, {.key = slot_of("alice", 1), .action = store::Put{}, .condition = !store::exists("tags")});
    EXPECT_FALSE(std::holds_alternative<store::Applied>(answer));
}

TEST_P(Servers, a_server_that_is_gone_is_unavailable_and_nothing_is_in_doubt) {
    server_->kill_now();
    try {
        (void)read_one(*store_, slot_of("alice", 1));
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::unavailable) << error.what();
        EXPECT_FALSE(error.in_doubt());
        EXPECT_NE(std::string{error.what()}.find(server_->address()), std::string::npos) << error.what();
    }
    const auto answer = write_one(*store_, {slot_of("alice", 1), store::Put{}});
    const auto* failure = std::get_if<Failure>(&answer);
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->kind, ErrorKind::unavailable);
    EXPECT_FALSE(failure->in_doubt);
}

TEST_P(Servers, a_deleted_table_is_a_config_error_with_advice) {
    ForeignClient{*server_}.call("DeleteTable", R"({"TableName":"bank.events"})");
    try {
        (void)read_one(*store_, slot_of("alice", 1));
        FAIL() << "no error";
    } catch (const ConfigError& error) {
        EXPECT_NE(std::string{error.what()}.find("deleted"), std::string::npos) << error.what();
    }
}

TEST_P(Servers, stores_of_different_prefixes_share_nothing) {
    const auto other = varve::open(server_->url("shop"));
    other->ensure_table(events_schema);
    (void)write_one(*store_, {slot_of("alice", 1), store::Put{}});
    EXPECT_EQ(read_one(*other, slot_of("alice", 1)), std::nullopt);
}

TEST_P(Servers, an_item_that_would_grow_too_large_is_named_with_its_limit_and_stays_as_it_is) {
    const Item large{{"x", std::string(300'000, 'x')}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(write_one(*store_, {slot_of("alice", 1), store::Put{large}})));
    const store::Write update{slot_of("alice", 1), store::Update{{{"y", std::string(200'000, 'y')}}, {}}};
    const auto answer = write_one(*store_, update);
    const auto* failure = std::get_if<Failure>(&answer);
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->kind, ErrorKind::invalid);
    EXPECT_FALSE(failure->in_doubt);
    EXPECT_EQ(failure->message,
              "the update would let the item events/alice/1 grow beyond the limit of 409600 bytes, names and what "
              "other programs have added included; keep less in one item");
    EXPECT_EQ(read_one(*store_, slot_of("alice", 1)), large);
}

TEST_P(Servers, pages_of_a_megabyte_make_up_a_large_partition) {
    constexpr int count = 8;
    const std::string large(300'000, 'x');
    for (int i = 0; i < count; ++i) (void)write_one(*store_, {slot_of("alice", i), store::Put{{{"x", large}}}});
    store::Query query{.table = "events", .partition = "alice"};
    int seen = 0;
    int pages = 0;
    for (;; ++pages) {
        const store::Page page = store_->query(query);
        for (const store::Record& record : page.records) EXPECT_EQ(std::get<std::int64_t>(record.key.sort), seen++);
        if (!page.next) break;
        query.next = page.next;
    }
    EXPECT_EQ(seen, count);
    EXPECT_GT(pages, 0);
}

TEST(Dynoxide, keeps_acknowledged_writes_when_it_is_killed) {
    const TemporaryFolder folder{"dynoxide"};
    const auto server = server_or_skip(LocalServer::Kind::dynoxide, (folder.path() / "store.db").string());
    if (!server) return;
    const auto store = varve::open(server->url("bank"));
    store->ensure_table(events_schema);
    for (int round = 0; round < 5; ++round) {
        const auto answer = write_one(*store, {.key = slot_of("alice", round),
                                               .action = store::Put{{{"round", round}}},
                                               .condition = !store::item_exists()});
        EXPECT_TRUE(std::holds_alternative<store::Applied>(answer)) << round;
        server->kill_now();
        server->start_again();
        EXPECT_EQ(read_one(*store, slot_of("alice", round)), (Item{{"round", round}}));
    }
}

TEST(Dynoxide, is_told_by_which_attribute_items_expire) {
    const auto server = server_or_skip(LocalServer::Kind::dynoxide);
    if (!server) return;
    const auto store = varve::open(server->url("bank"));
    store::TableSchema leases{.name = "leases", .partition_attribute = "id", .expiry_attribute = "expires"};
    store->ensure_table(leases);
    EXPECT_EQ(parse_time_to_live(ForeignClient{*server}.call("DescribeTimeToLive", R"({"TableName":"bank.leases"})")),
              "expires");
    leases.expiry_attribute = "until";
    EXPECT_THROW(varve::open(server->url("bank"))->ensure_table(leases), ConfigError);
}

}  // namespace
}  // namespace varve::dynamodb
