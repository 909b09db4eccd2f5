#include "client.h"

#include "adapters/dynamodb/secrets.h"
#include "support/scripted_server.h"

#include <varve/testing/manual_clock.h>
#include <varve/testing/recorded_log.h>
#include <varve/testing/seeded_random.h>

#include <set>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using Asked = ScriptedServer::Request;
using Answer = ScriptedServer::Reply;

Answer ok(const std::string& body = "{}") {
    return {ScriptedServer::answer(200, body)};
}
Answer error(int status, const std::string& name, const std::string& message = "", const std::string& headers = "") {
    return {ScriptedServer::answer(
        status, R"({"__type":"com.amazonaws.dynamodb.v20120810#)" + name + R"(","message":")" + message + "\"}",
        headers)};
}

/// A client with a clock of its own against a server that follows a script.
struct Case {
    explicit Case(ScriptedServer::Script script) : server(std::move(script)) {}

    ScriptedServer server;
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    testing::SeededRandom random{1};
    int credentials_asked = 0;
    Client client{{.endpoint = {.url = server.url(), .host = server.address(), .region = "eu-west-1"},
                   .credentials =
                       [this] {
                           return DatedCredentials{{"AKID" + std::to_string(++credentials_asked), secret, token}};
                       },
                   .runtime = {clock, random}}};

    Reply send(const Call& call) {
        Reply reply = client.send(call);
        if (const auto* failed = std::get_if<Failed>(&reply)) {
            EXPECT_EQ(failed->failure.message.find(secret), std::string::npos) << failed->failure.message;
            EXPECT_EQ(failed->failure.message.find(token), std::string::npos) << failed->failure.message;
        }
        return reply;
    }
    std::size_t requests() const { return server.requests().size(); }
};

const Call read{.operation = "GetItem", .body = "{}", .about = "the item events/alice/7"};
const Call put{
    .operation = "PutItem", .body = "{}", .repeat = Call::Repeat::harmful, .about = "the item events/alice/7"};

const Failure& failure_of(const Reply& reply) {
    return std::get<Failed>(reply).failure;
}

TEST(ClientTest, a_request_names_its_operation_and_is_signed) {
    Case one{[](const Asked&, std::size_t) { return ok(R"({"a":"one"})"); }};
    const Reply reply = one.send(read);
    EXPECT_EQ(std::get<Done>(reply).answer["a"], "one");
    const Asked request = one.server.requests().at(0);
    EXPECT_EQ(request.header("x-amz-target"), "DynamoDB_20120810.GetItem");
    EXPECT_EQ(request.header("content-type"), "application/x-amz-json-1.0");
    EXPECT_EQ(request.header("Host"), one.server.address());
    EXPECT_EQ(request.header("x-amz-security-token"), token);
    dynamodb::Request expected{.method = "POST",
                               .headers = {{"host", one.server.address()},
                                           {"content-type", "application/x-amz-json-1.0"},
                                           {"x-amz-target", "DynamoDB_20120810.GetItem"}},
                               .body = "{}"};
    sign(expected, {"AKID1", secret, token}, {"eu-west-1", "dynamodb"}, one.clock.now());
    EXPECT_EQ(request.header("authorization"), expected.headers.back().value);
}

TEST(ClientTest, what_was_throttled_is_sent_again_and_signed_afresh) {
    Case* self = nullptr;
    Case one{[&self](const Asked&, std::size_t number) {
        self->clock.advance(std::chrono::seconds{1});
        return number < 3 ? error(400, "ProvisionedThroughputExceededException", "slow") : ok();
    }};
    self = &one;
    EXPECT_TRUE(std::holds_alternative<Done>(one.send(put)));
    std::set<std::string> dates;
    std::set<std::string> signatures;
    for (const Asked& request : one.server.requests()) {
        dates.insert(request.header("x-amz-date"));
        signatures.insert(request.header("authorization"));
    }
    EXPECT_EQ(dates.size(), 4U);
    EXPECT_EQ(signatures.size(), 4U);
    EXPECT_EQ(one.credentials_asked, 1);
}

TEST(ClientTest, a_server_that_always_throttles_is_unavailable_after_the_last_attempt) {
    Case one{[](const Asked&, std::size_t) { return error(400, "ThrottlingException", "slow"); }};
    const Reply reply = one.send(put);
    EXPECT_EQ(failure_of(reply).kind, ErrorKind::unavailable);
    EXPECT_FALSE(failure_of(reply).in_doubt);
    EXPECT_NE(failure_of(reply).message.find("events/alice/7"), std::string::npos);
    EXPECT_EQ(one.requests(), 10U);
}

TEST(ClientTest, pauses_grow_and_end_at_the_deadline) {
    Case one{[](const Asked&, std::size_t) { return error(400, "ThrottlingException"); }};
    const Time begin = one.clock.now();
    (void)one.send(read);
    EXPECT_GT(one.clock.now() - begin, std::chrono::milliseconds{100});
    EXPECT_LE(one.clock.now() - begin, std::chrono::seconds{15});
}

TEST(ClientTest, repetitions_that_help_cost_nothing) {
    for (const std::size_t every : {2U, 4U, 5U}) {
        Case one{[every](const Asked&, std::size_t number) {
            return number % every == 0 ? error(400, "ProvisionedThroughputExceededException", "slow") : ok();
        }};
        for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(std::holds_alternative<Done>(one.send(put))) << every << " " << i;
    }
}

TEST(ClientTest, a_server_that_closes_after_each_answer_is_read_for_ever) {
    Case one{[](const Asked&, std::size_t) { return Answer{ScriptedServer::answer(200, "{}"), true}; }};
    for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(std::holds_alternative<Done>(one.send(read))) << i;
}

TEST(ClientTest, what_many_send_at_once_survives_an_outage_of_half_a_second) {
    Case* self = nullptr;
    const Time end = testing::ManualClock::default_start + std::chrono::milliseconds{500};
    Case one{
        [&](const Asked&, std::size_t) { return self->clock.now() < end ? error(500, "InternalServerError") : ok(); }};
    self = &one;
    const std::vector<Call> calls(128, read);
    for (const Reply& reply : one.client.send(calls)) EXPECT_TRUE(std::holds_alternative<Done>(reply));
    EXPECT_LE(one.requests(), 128U + 20U + 128U);
}

TEST(ClientTest, calls_that_fail_in_the_end_use_the_budget_up) {
    Case one{[](const Asked& request, std::size_t) {
        return request.body == "bad" ? error(500, "InternalServerError") : ok();
    }};
    Call bad = read;
    bad.body = "bad";
    std::size_t last = 0;
    for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(std::holds_alternative<Done>(one.send(read)));
        const std::size_t before = one.requests();
        EXPECT_EQ(failure_of(one.send(bad)).kind, ErrorKind::unavailable);
        last = one.requests() - before;
    }
    const std::size_t repetitions = one.requests() - 100;
    EXPECT_GE(repetitions, 100U);
    EXPECT_LE(repetitions, 110U) << "fifty calls that needed no repetition bring ten back";
    EXPECT_LE(last, 2U);
}

TEST(ClientTest, a_server_that_fails_for_everybody_gets_a_probe_now_and_then) {
    Case one{[](const Asked&, std::size_t) { return error(500, "InternalServerError"); }};
    const Time begin = one.clock.now();
    while (one.clock.now() - begin < std::chrono::seconds{100})
        EXPECT_EQ(failure_of(one.send(read)).kind, ErrorKind::unavailable);
    EXPECT_LE(one.requests(), 10U + 110U) << "about one in one to two seconds";
    EXPECT_GE(one.requests(), 50U);
}

TEST(ClientTest, writes_that_all_fail_wait_while_reads_go_on) {
    bool healed = false;
    Case one{[&healed](const Asked& request, std::size_t) {
        const bool writes = request.header("x-amz-target").ends_with("PutItem");
        return writes && !healed ? error(500, "InternalServerError") : ok();
    }};
    for (unsigned i = 0; i < Breaker::failures_min; ++i) EXPECT_TRUE(failure_of(one.send(put)).in_doubt);
    std::size_t in_doubt = 0;
    for (int i = 0; i < 20; ++i) {
        const Reply reply = one.send(put);
        if (failure_of(reply).in_doubt) {
            ++in_doubt;
        } else {
            EXPECT_NE(failure_of(reply).message.find("was not sent"), std::string::npos) << failure_of(reply).message;
            EXPECT_NE(failure_of(reply).message.find("InternalServerError"), std::string::npos);
        }
        EXPECT_TRUE(std::holds_alternative<Done>(one.send(read)));
    }
    EXPECT_EQ(one.requests(), Breaker::failures_min + in_doubt + 20U);
    healed = true;
    EXPECT_TRUE(std::holds_alternative<Done>(one.send(put)));
    const std::vector<Call> calls(50, put);
    const Time begin = one.clock.now();
    for (const Reply& reply : one.client.send(calls)) EXPECT_TRUE(std::holds_alternative<Done>(reply));
    EXPECT_EQ(one.clock.now(), begin) << "the first answer lets all go on";
}

TEST(ClientTest, others_at_the_same_item_are_no_failure_of_the_server) {
    Case one{[](const Asked&, std::size_t number) {
        return number < 200 && number % 10 != 9 ? error(400, "TransactionConflictException") : ok();
    }};
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(std::holds_alternative<Done>(one.send(put))) << i;
    EXPECT_EQ(one.requests(), 200U);
}

TEST(ClientTest, a_write_that_failed_within_the_server_is_in_doubt_and_sent_once) {
    Case one{[](const Asked&, std::size_t) { return error(500, "InternalServerError", "oops"); }};
    const Reply reply = one.send(put);
    EXPECT_TRUE(failure_of(reply).in_doubt);
    EXPECT_EQ(failure_of(reply).kind, ErrorKind::in_doubt);
    EXPECT_EQ(one.requests(), 1U);
}

TEST(ClientTest, a_write_whose_answer_is_lost_is_in_doubt_and_sent_once) {
    for (const Answer& lost : {Answer{"", true}, Answer{"HTTP/1.1 200 x\r\nContent-Length: 5\r\n\r\n{", true},
                               Answer{ScriptedServer::answer(200, "nonsense")},
                               Answer{ScriptedServer::answer(200, "{}", "x-amz-crc32: 1\r\n")}}) {
        Case one{[&](const Asked&, std::size_t) { return lost; }};
        EXPECT_TRUE(failure_of(one.send(put)).in_doubt) << lost.bytes;
        EXPECT_EQ(one.requests(), 1U) << lost.bytes;
    }
}

TEST(ClientTest, a_read_whose_answer_is_lost_is_sent_again) {
    Case one{[](const Asked&, std::size_t number) {
        return number == 0   ? Answer{"", true}
               : number == 1 ? Answer{ScriptedServer::answer(200, "{\"Ite")}
               : number == 2 ? error(503, "ServiceUnavailable")
                             : ok();
    }};
    EXPECT_TRUE(std::holds_alternative<Done>(one.send(read)));
    EXPECT_EQ(one.requests(), 4U);
}

TEST(ClientTest, a_read_that_keeps_failing_is_never_in_doubt) {
    Case one{[](const Asked&, std::size_t) { return Answer{"", true}; }};
    const Reply reply = one.send(read);
    EXPECT_FALSE(failure_of(reply).in_doubt);
    EXPECT_EQ(failure_of(reply).kind, ErrorKind::unavailable);
}

TEST(ClientTest, a_refused_condition_is_no_failure) {
    Case one{[](const Asked&, std::size_t) { return error(400, "ConditionalCheckFailedException"); }};
    EXPECT_EQ(std::get<Declined>(one.send(put)).name, "ConditionalCheckFailedException");
    EXPECT_EQ(one.requests(), 1U);
}

TEST(ClientTest, a_skewed_clock_is_corrected_by_the_servers_date) {
    Case one{[](const Asked& request, std::size_t) {
        return request.header("x-amz-date").starts_with("20261120T2327")
                   ? ok()
                   : error(400, "InvalidSignatureException", "Signature expired",
                           "Date: Fri, 20 Nov 2026 23:27:21 GMT\r\n");
    }};
    EXPECT_TRUE(std::holds_alternative<Done>(one.send(put)));
    EXPECT_EQ(one.requests(), 2U);
    EXPECT_TRUE(std::holds_alternative<Done>(one.send(put)));
    EXPECT_EQ(one.requests(), 3U) << "the correction stays";
}

TEST(ClientTest, a_wrong_key_is_a_config_error_after_one_repetition) {
    Case one{[](const Asked& request, std::size_t) {
        return error(
            403, "InvalidSignatureException",
            "The Canonical String should have been x-amz-security-token:" + request.header("x-amz-security-token"));
    }};
    EXPECT_EQ(failure_of(one.send(put)).kind, ErrorKind::config);
    EXPECT_EQ(one.requests(), 2U);
}

TEST(ClientTest, credentials_that_are_over_are_renewed_once) {
    Case* self = nullptr;
    Case one{[&self](const Asked& request, std::size_t) {
        self->clock.advance(std::chrono::seconds{2});
        return request.header("authorization").find("AKID2/") != std::string::npos
                   ? ok()
                   : error(400, "ExpiredTokenException");
    }};
    self = &one;
    EXPECT_TRUE(std::holds_alternative<Done>(one.send(put)));
    EXPECT_EQ(one.credentials_asked, 2);
}

TEST(ClientTest, while_no_other_credentials_are_to_be_had_each_call_is_refused_once) {
    Case one{[](const Asked&, std::size_t) { return error(400, "ExpiredTokenException"); }};
    for (int i = 0; i < 20; ++i) {
        const Reply reply = one.send(read);
        EXPECT_EQ(failure_of(reply).kind, ErrorKind::config);
        EXPECT_NE(failure_of(reply).message.find("renew them"), std::string::npos) << failure_of(reply).message;
    }
    EXPECT_EQ(one.credentials_asked, 1) << "no time has passed";
    EXPECT_EQ(one.requests(), 20U);
}

TEST(ClientTest, a_server_that_misses_a_header_is_not_told_as_a_wrong_key) {
    Case one{[](const Asked&, std::size_t) {
        return error(400, "IncompleteSignatureException",
                     "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.");
    }};
    const std::string message = failure_of(one.send(put)).message;
    EXPECT_EQ(message.find("access key"), std::string::npos) << message;
    EXPECT_NE(message.find("headers did not arrive"), std::string::npos) << message;
}

TEST(ClientTest, where_the_server_tells_no_time_the_clock_is_named_beside_the_key) {
    Case one{[](const Asked&, std::size_t) { return error(400, "InvalidSignatureException", "Signature expired"); }};
    const std::string message = failure_of(one.send(put)).message;
    EXPECT_NE(message.find("this machine's clock"), std::string::npos) << message;
}

TEST(ClientTest, an_answer_that_is_larger_than_what_was_asked_for_is_no_answer) {
    Case one{[](const Asked&, std::size_t) { return ok("{\"x\":\"" + std::string(2'000, 'x') + "\"}"); }};
    Call call = read;
    call.answer_bytes_max = 1'000;
    const std::string message = failure_of(one.send(call)).message;
    EXPECT_NE(message.find("more than 1000 bytes"), std::string::npos) << message;
}

TEST(ClientTest, no_message_quotes_a_secret_that_a_server_quotes) {
    Case named{[&](const Asked&, std::size_t) { return error(400, secret + token, "\\u0007\\u001b[31m"); }};
    const std::string message = failure_of(named.send(put)).message;
    EXPECT_EQ(message.find_first_of("\a\x1b"), std::string::npos) << message;
    for (const char* name :
         {"ValidationException", "AccessDeniedException", "Surprise", "UnrecognizedClientException"}) {
        Case one{[&](const Asked&, std::size_t) {
            return error(400, name, "you sent " + secret + " and " + token + " and again " + secret);
        }};
        ::testing::internal::CaptureStderr();
        ::testing::internal::CaptureStdout();
        const Reply reply = one.send(put);
        const std::string said = ::testing::internal::GetCapturedStderr() + ::testing::internal::GetCapturedStdout();
        EXPECT_EQ(said, "");
        EXPECT_TRUE(std::holds_alternative<Failed>(reply)) << name;
    }
}

TEST(ClientTest, what_libcurl_says_about_its_connections_tells_no_secret_and_no_data) {
    ScriptedServer server{[](const Asked& request, std::size_t number) {
        const std::string quoted = request.head + secret + token;
        return number == 0   ? error(400, "ValidationException", secret + token)
               : number == 1 ? Answer{ScriptedServer::answer(407, quoted, "Proxy-Authenticate: Basic realm=x\r\n")}
               : number == 2
                   ? Answer{ScriptedServer::answer(307, quoted, "Location: http://127.0.0.1:1/" + token + "\r\n")}
               : number == 3 ? Answer{ScriptedServer::answer(200, "{}", "x-amz-crc32: 1\r\nx-echo: " + token + "\r\n")}
               : number == 4 ? Answer{"HTTP/1.1 200 x\r\nx-echo: " + token + "\r\nContent-Length: 9\r\n\r\n{", true}
                             : Answer{token + secret + "\r\n\r\n", true};
    }};
    testing::RecordedLog lines;
    {
        Client client{{.endpoint = {.url = server.url(), .host = server.address(), .region = "eu-west-1"},
                       .credentials =
                           [] {
                               return DatedCredentials{{"AKID", secret, token}};
                           },
                       .retry = RetryPolicy::once(),
                       .http = {.trace = &lines}}};
        for (int i = 0; i < 6; ++i) {
            const Reply reply =
                client.send({.operation = "PutItem", .body = "{\"b\":\"private\"}", .about = "an item"});
            EXPECT_EQ(failure_of(reply).message.find(secret), std::string::npos) << failure_of(reply).message;
            EXPECT_EQ(failure_of(reply).message.find(token), std::string::npos) << failure_of(reply).message;
        }
    }
    const std::string authorization = server.requests().at(5).header("authorization");
    EXPECT_EQ(server.requests().at(5).header("x-amz-security-token"), token);
    EXPECT_NE(lines.text().find("libcurl: Connected to"), std::string::npos) << lines.text();
    for (const std::string& hidden : {secret, token, authorization.substr(authorization.rfind('=') + 1),
                                      std::string{"private"}, std::string{"x-echo"}}) {
        EXPECT_EQ(lines.text().find(hidden), std::string::npos) << hidden << " in\n" << lines.text();
    }
}

TEST(ClientTest, access_denied_says_what_to_do) {
    Case one{[](const Asked&, std::size_t) {
        return error(400, "AccessDeniedException", "User: arn:aws:iam::1:user/me is not authorized");
    }};
    const Reply reply = one.send(put);
    EXPECT_EQ(failure_of(reply).kind, ErrorKind::config);
    EXPECT_NE(failure_of(reply).message.find("not authorized"), std::string::npos);
    EXPECT_NE(failure_of(reply).message.find("policy"), std::string::npos);
}

TEST(ClientTest, a_batch_repeats_only_what_must_be_repeated) {
    Case one{[](const Asked& request, std::size_t number) {
        return request.body == "1" && number < 4 ? error(400, "ThrottlingException")
                                                 : ok(R"({"was":")" + request.body + "\"}");
    }};
    std::vector<Call> calls;
    for (int i = 0; i < 4; ++i) {
        calls.push_back(put);
        calls.back().body = std::to_string(i);
    }
    const std::vector<Reply> replies = one.client.send(calls);
    for (std::size_t i = 0; i < calls.size(); ++i) {
        EXPECT_EQ(std::get<Done>(replies.at(i)).answer["was"], std::to_string(i).c_str());
    }
    EXPECT_EQ(one.requests(), 5U);
}

TEST(HttpDates, are_read_to_the_second) {
    EXPECT_EQ(parse_http_date("Fri, 20 Nov 2026 23:27:21 GMT"), parse_time("2026-11-20T23:27:21Z"));
    for (const char* bad : {"", "Fri, 20 Nov 2026 23:27:21", "Fri, 31 Feb 2026 23:27:21 GMT",
                            "Fri, 2x Nov 2026 23:27:21 GMT", "Fri, 20 Nix 2026 23:27:21 GMT"}) {
        EXPECT_EQ(parse_http_date(bad), std::nullopt) << bad;
    }
}

}  // namespace
}  // namespace varve::dynamodb
