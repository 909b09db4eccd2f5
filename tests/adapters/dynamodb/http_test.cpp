#include "http.h"

#include "support/scripted_server.h"

#include <varve/testing/recorded_log.h>

#include <condition_variable>
#include <cstdlib>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using Scripted = ScriptedServer::Reply;

HttpRequest post(const std::string& url, std::string body = "{}") {
    return {.url = url, .request = {.method = "POST", .headers = {{"x-test", "1"}}, .body = std::move(body)}};
}

HttpAnswer perform_one(Http& http, const HttpRequest& request) {
    return http.perform({&request, 1}).at(0);
}

/// What a client makes of these bytes as the answer to its only request.
HttpAnswer answer_to(const Scripted& reply) {
    ScriptedServer server{[&](const auto&, std::size_t) { return reply; }};
    Http http{{}};
    return perform_one(http, post(server.url()));
}

TEST(Checksum, is_that_of_the_published_check_value) {
    EXPECT_EQ(crc32("123456789"), 0xcbf43926U);
    EXPECT_EQ(crc32("{}"), 2745614147U);
    EXPECT_EQ(crc32(""), 0U);
}

TEST(HttpTest, requests_in_a_row_share_a_connection) {
    ScriptedServer server{[](const auto& request, std::size_t) {
        return Scripted{ScriptedServer::answer(200, request.body, "Date: Fri, 20 Nov 2026 23:27:21 GMT\r\n")};
    }};
    Http http{{}};
    for (int i = 0; i < 20; ++i) {
        const HttpAnswer answer = perform_one(http, post(server.url(), std::to_string(i)));
        ASSERT_EQ(answer.status, 200) << answer.error;
        EXPECT_EQ(answer.body, std::to_string(i));
        EXPECT_EQ(answer.date, "Fri, 20 Nov 2026 23:27:21 GMT");
    }
    EXPECT_EQ(server.connections(), 1U);
    EXPECT_EQ(server.requests().front().header("x-test"), "1");
}

TEST(HttpTest, the_requests_of_a_batch_are_in_flight_at_once) {
    constexpr std::size_t count = 16;
    std::mutex mutex;
    std::condition_variable all_there;
    std::size_t arrived = 0;
    ScriptedServer server{[&](const auto& request, std::size_t) {
        std::unique_lock lock{mutex};
        if (++arrived == count) all_there.notify_all();
        all_there.wait(lock, [&] { return arrived == count; });
        return Scripted{ScriptedServer::answer(200, request.body)};
    }};
    Http http{{}};
    std::vector<HttpRequest> requests;
    for (std::size_t i = 0; i < count; ++i) requests.push_back(post(server.url(), std::to_string(i)));
    const auto answers = http.perform(requests);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(answers.at(i).body, std::to_string(i)) << answers[i].error;
}

TEST(HttpTest, a_wrong_checksum_is_an_error) {
    EXPECT_EQ(answer_to({ScriptedServer::answer(200, "{}", "x-amz-crc32: 2745614147\r\n")}).status, 200);
    for (const char* wrong : {"2745614148", "", "x", "-1", "2745614147x", "4294967296"}) {
        const HttpAnswer answer =
            answer_to({ScriptedServer::answer(200, "{}", std::string{"x-amz-crc32: "} + wrong + "\r\n")});
        EXPECT_FALSE(answer.arrived()) << wrong;
        EXPECT_TRUE(answer.sent);
        EXPECT_NE(answer.error.find("checksum"), std::string::npos);
        EXPECT_EQ(answer.body, "");
    }
}

TEST(HttpTest, an_answer_cut_short_is_an_error) {
    const std::string whole = ScriptedServer::answer(200, "{\"Items\":[]}");
    for (std::size_t size = 0; size < whole.size(); size += 5) {
        const HttpAnswer answer = answer_to({whole.substr(0, size), true});
        EXPECT_FALSE(answer.arrived()) << size;
        EXPECT_TRUE(answer.sent) << size;
        EXPECT_NE(answer.error, "") << size;
    }
    EXPECT_FALSE(answer_to({"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", true}).arrived());
    EXPECT_EQ(answer_to({"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"}).body, "{}");
}

TEST(HttpTest, garbage_is_an_error) {
    EXPECT_FALSE(answer_to({"\x16\x03\x01 what is this\r\n\r\n", true}).arrived());
}

TEST(HttpTest, a_redirect_is_not_followed) {
    const HttpAnswer answer = answer_to({ScriptedServer::answer(307, "", "Location: http://127.0.0.1:1/\r\n")});
    EXPECT_EQ(answer.status, 307) << answer.error;
}

TEST(HttpTest, a_server_that_is_not_there_certainly_got_nothing) {
    std::string url;
    {
        const ScriptedServer gone{[](const auto&, std::size_t) { return Scripted{}; }};
        url = gone.url();
    }
    Http http{{}};
    const HttpAnswer answer = perform_one(http, post(url));
    EXPECT_FALSE(answer.arrived());
    EXPECT_FALSE(answer.sent);
    EXPECT_NE(answer.error, "");
}

TEST(HttpTest, a_request_on_a_connection_that_dies_is_not_sent_again) {
    ScriptedServer server{[](const auto&, std::size_t number) {
        return number == 0 ? Scripted{ScriptedServer::answer(200, "{}")} : Scripted{"", true};
    }};
    Http http{{}};
    EXPECT_EQ(perform_one(http, post(server.url())).status, 200);
    const HttpAnswer answer = perform_one(http, post(server.url()));
    EXPECT_FALSE(answer.arrived());
    EXPECT_TRUE(answer.sent);
    EXPECT_EQ(server.requests().size(), 2U);
}

TEST(HttpTest, a_request_that_was_sent_may_have_arrived_although_the_server_is_gone_when_it_would_be_sent_again) {
    std::optional<LoopbackSocket> listener = LoopbackSocket::bound();
    ASSERT_EQ(listen(listener->descriptor(), 1), 0);
    const std::string url = "http://127.0.0.1:" + std::to_string(listener->port()) + "/";
    std::jthread server{[&listener] {
        const LoopbackSocket connection{accept(listener->descriptor(), nullptr, nullptr)};
        listener.reset();
        std::string first;
        while (!first.ends_with("{}") && connection.receive(first)) {
        }
        connection.send(ScriptedServer::answer(200, "{}"));
        std::string second;
        while (!second.ends_with("{}") && connection.receive(second)) {
        }
    }};
    Http http{{}};
    EXPECT_EQ(perform_one(http, post(url)).status, 200);
    const HttpAnswer answer = perform_one(http, post(url));
    EXPECT_FALSE(answer.arrived());
    EXPECT_TRUE(answer.sent);
}

TEST(HttpTest, a_connection_that_was_closed_while_it_was_idle_costs_nothing) {
    ScriptedServer server{[](const auto&, std::size_t) { return Scripted{ScriptedServer::answer(200, "{}"), true}; }};
    Http http{{}};
    for (std::size_t i = 1; i <= 20; ++i) {
        const HttpAnswer answer = perform_one(http, post(server.url()));
        EXPECT_EQ(answer.status, 200) << answer.error;
        while (server.open_connections() > 0) std::this_thread::yield();
    }
    EXPECT_EQ(server.requests().size(), 20U);
}

TEST(HttpTest, a_large_body_arrives_whole) {
    ScriptedServer server{[](const auto& request, std::size_t) {
        return Scripted{ScriptedServer::answer(200, std::to_string(request.body.size()))};
    }};
    Http http{{}};
    for (const std::size_t size : {std::size_t{0}, std::size_t{65'536}, std::size_t{65'537}, std::size_t{4} << 20}) {
        const HttpAnswer answer = perform_one(http, post(server.url(), std::string(size, 'x')));
        EXPECT_EQ(answer.body, std::to_string(size)) << answer.error;
    }
}

TEST(HttpTest, a_server_that_does_not_answer_in_time_leaves_the_outcome_open) {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    ScriptedServer server{[&](const auto&, std::size_t) {
        std::unique_lock lock{mutex};
        changed.wait(lock, [&] { return over; });
        return Scripted{"", true};
    }};
    Http http{{}};
    HttpRequest request = post(server.url());
    request.timeout = std::chrono::seconds{3};  // enough to connect on a busy machine
    const HttpAnswer answer = perform_one(http, request);
    EXPECT_FALSE(answer.arrived());
    EXPECT_TRUE(answer.sent);
    const std::lock_guard lock{mutex};
    over = true;
    changed.notify_all();
}

TEST(HttpTest, plain_http_where_tls_is_spoken_to_is_an_error) {
    ScriptedServer plain{[](const auto&, std::size_t) { return Scripted{ScriptedServer::answer(200, "{}"), true}; }};
    Http http{{}};
    HttpRequest request = post("https://" + plain.address() + "/");
    request.timeout = std::chrono::milliseconds{500};
    const HttpAnswer answer = perform_one(http, request);
    EXPECT_FALSE(answer.arrived());
    EXPECT_FALSE(answer.sent);
    EXPECT_TRUE(plain.requests().empty());
}

TEST(HttpTest, the_password_of_a_proxy_is_nowhere_to_be_seen) {
    const std::string secret = "s3cr3t-never-to-be-seen";
    for (const std::string& proxy : {"http://user:" + secret + "@127.0.0.1:1", "http://user:" + secret + "@ho st:1",
                                     "user:" + secret + "@127.0.0.1:1", "nonsense://user:" + secret + "@127.0.0.1:1",
                                     "http://user:" + secret + std::string(400, 'x') + "@ho st:1"}) {
        setenv("https_proxy", proxy.c_str(), 1);
        testing::RecordedLog lines;
        Http http{{.trace = &lines}};
        const HttpRequest request{.url = "https://dynamodb.invalid/", .request = {.method = "GET", .headers = {}}};
        const std::string error = http.perform({&request, 1}).front().error;
        EXPECT_NE(error, "") << proxy;
        EXPECT_EQ(error.find(secret), std::string::npos) << error;
        EXPECT_EQ(lines.text().find(secret), std::string::npos) << lines.text();
        EXPECT_NE(lines.text().find("proxy"), std::string::npos) << lines.text();
    }
    unsetenv("https_proxy");
}

}  // namespace
}  // namespace varve::dynamodb
