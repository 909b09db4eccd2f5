#include "addresses.h"
#include "support/scripted_server.h"
#include "support/tls_server.h"

#include <varve/commands/application.h>
#include <varve/core/error.h>
#include <varve/http/http_post.h>
#include <varve/store/open.h>

#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace std::chrono_literals;

struct Ask {
    std::string order;
};

RecordedEvent effect(const std::string& data = R"({"order":"o-1"})") {
    return {.stream = "order-o 1",
            .version = 3,
            .index = 0,
            .id = "tx-1:0",
            .time = Time{} + std::chrono::days{20'000},
            .event = {.type = "Ask", .data = data},
            .metadata = std::make_shared<const Metadata>(
                Metadata{.command_id = {},
                         .correlation = "talk \"1\"",
                         .causation = "cause",
                         .headers = {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}})};
}

HttpPostOptions here() {
    return {.private_hosts = {"127.0.0.1", "localhost"}};
}

void send(const HttpPost& post, const RecordedEvent& what = effect()) {
    post(json::decode<Ask>(what.event.data).value(), Delivery{.effect = what});
}

/// How the handler says that it was not taken; "" if it was.
std::string outcome(const HttpPost& post, const RecordedEvent& what = effect()) {
    try {
        send(post, what);
    } catch (const DeliverLater& error) {
        return "later " + to_string(error.after()) + ": " + error.what();
    } catch (const Undeliverable& error) {
        return std::string{"never: "} + error.what();
    } catch (const std::runtime_error& error) {
        return std::string{"failed: "} + error.what();
    }
    return "";
}

ScriptedServer::Script always(int status, const std::string& headers = "") {
    return [=](const ScriptedServer::Request&, std::size_t) {
        return ScriptedServer::Reply{ScriptedServer::answer(status, "", headers)};
    };
}

TEST(HttpPost, sends_an_effect_as_a_cloud_event_in_binary_mode) {
    ScriptedServer server{always(202)};
    HttpPostOptions options = here();
    options.headers = {{"Authorization", "Bearer secret"}, {"X-Empty", ""}};
    options.source = "/shop";
    options.type_prefix = "com.example.";
    send(http_post(server.url() + "ask?from=shop", options));
    const std::vector<ScriptedServer::Request> requests = server.requests();
    ASSERT_EQ(requests.size(), 1u);
    const ScriptedServer::Request& request = requests.front();
    EXPECT_TRUE(request.head.starts_with("POST /ask?from=shop HTTP/1.1\r\n")) << request.head;
    EXPECT_EQ(request.body, R"({"order":"o-1"})");
    EXPECT_EQ(request.header("Content-Type"), "application/json");
    EXPECT_EQ(request.header("Authorization"), "Bearer secret");
    EXPECT_EQ(request.header("Idempotency-Key"), "tx-1:0");
    EXPECT_EQ(request.header("ce-specversion"), "1.0");
    EXPECT_EQ(request.header("ce-id"), "tx-1:0");
    EXPECT_EQ(request.header("ce-source"), "/shop");
    EXPECT_EQ(request.header("ce-type"), "com.example.Ask");
    EXPECT_EQ(request.header("ce-subject"), "order-o%201");
    EXPECT_EQ(request.header("ce-time"), "2024-10-04T00:00:00.000000Z");
    EXPECT_EQ(request.header("ce-correlationid"), "talk%20%221%22");
    EXPECT_EQ(request.header("ce-causationid"), "cause");
    EXPECT_EQ(request.header("traceparent"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    EXPECT_NE(request.head.find("\r\nX-Empty:"), std::string::npos) << request.head;
    EXPECT_EQ(request.head.find("Expect"), std::string::npos);
}

TEST(HttpPost, uses_one_connection_for_one_after_the_other) {
    ScriptedServer server{always(200)};
    const HttpPost post = http_post(server.url(), here());
    for (int i = 0; i < 10; ++i) send(post);
    EXPECT_EQ(server.requests().size(), 10u);
    EXPECT_EQ(server.connections(), 1u);
}

TEST(HttpPost, tells_what_was_taken_what_never_will_be_and_what_may_be_later) {
    const auto answered = [](int status, const std::string& headers = "") {
        ScriptedServer server{always(status, headers)};
        const std::string said = outcome(http_post(server.url(), here()));
        const std::size_t where = said.find(server.url().substr(0, server.url().size() - 1));
        return where == std::string::npos ? said
                                          : said.substr(0, where) + "it" + said.substr(where + server.url().size() - 1);
    };
    for (const int status : {200, 201, 202, 204, 299}) EXPECT_EQ(answered(status), "");
    for (const int status : {400, 413, 415, 422})
        EXPECT_EQ(answered(status), "never: it answers " + std::to_string(status));
    for (const int status : {401, 403, 404, 408, 409, 410, 425, 500, 502, 504})
        EXPECT_EQ(answered(status), "failed: it answers " + std::to_string(status));
    for (const int status : {301, 302, 303, 307, 308}) {
        EXPECT_EQ(answered(status, "Location: http://127.0.0.1:1/\r\n"),
                  "failed: it answers " + std::to_string(status) + ", a redirect, which is not followed");
    }
    EXPECT_EQ(answered(429), "later 0 s: it answers 429");
    EXPECT_EQ(answered(503, "Retry-After: 120\r\n"), "later 120 s: it answers 503");
    EXPECT_EQ(answered(429, "retry-after:7\r\n"), "later 7 s: it answers 429");
    EXPECT_EQ(answered(429, "Retry-After: 99999999999\r\n"), "later 86400 s: it answers 429");
    EXPECT_EQ(answered(429, "Retry-After: -5\r\n"), "later 0 s: it answers 429");
    EXPECT_EQ(answered(429, "Retry-After: soon\r\n"), "later 0 s: it answers 429");
    EXPECT_EQ(answered(429, "Retry-After: Fri, 21 Oct 999999999 07:28:00 GMT\r\n"), "later 86400 s: it answers 429");
    EXPECT_EQ(answered(429, "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n"), "later 0 s: it answers 429");
    EXPECT_EQ(answered(429, "Retry-After: Fri, 21 Oct 2125 07:28:00 GMT\r\n"), "later 86400 s: it answers 429");
}

TEST(HttpPost, fails_without_a_whole_answer_and_is_right_again_with_the_next_one) {
    const auto bytes = [](const std::string& text) {
        return [text](const ScriptedServer::Request&, std::size_t number) {
            if (number == 0) return ScriptedServer::Reply{.bytes = text, .close = true};
            return ScriptedServer::Reply{ScriptedServer::answer(200, "{}")};
        };
    };
    for (const char* text :
         {"", "HTTP/1.1 200", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"}) {
        ScriptedServer server{bytes(text)};
        const HttpPost post = http_post(server.url(), here());
        EXPECT_TRUE(outcome(post).starts_with("failed: " + server.url().substr(0, server.url().size() - 1) +
                                              " does not answer: "))
            << text;
        EXPECT_EQ(outcome(post), "");
        ASSERT_EQ(server.requests().size(), 2u);
        EXPECT_EQ(server.requests()[0].header("Idempotency-Key"), server.requests()[1].header("Idempotency-Key"));
    }
}

TEST(HttpPost, waits_for_an_answer_as_long_as_it_is_told) {
    std::promise<void> over;
    const std::shared_future<void> is_over = over.get_future().share();
    ScriptedServer server{[&](const ScriptedServer::Request&, std::size_t) {
        is_over.wait();
        return ScriptedServer::Reply{ScriptedServer::answer(200, "")};
    }};
    HttpPostOptions options = here();
    options.timeout = 50ms;
    EXPECT_NE(outcome(http_post(server.url(), options)).find("does not answer"), std::string::npos);
    over.set_value();
}

TEST(HttpPost, a_long_answer_is_not_read_to_its_end) {
    ScriptedServer server{[](const ScriptedServer::Request&, std::size_t) {
        return ScriptedServer::Reply{ScriptedServer::answer(200, std::string(1 << 20, 'x'))};
    }};
    EXPECT_EQ(outcome(http_post(server.url(), here())), "");
}

TEST(HttpPost, what_is_too_large_is_never_sent) {
    ScriptedServer server{always(200)};
    HttpPostOptions options = here();
    options.request_bytes_max = 10;
    EXPECT_EQ(outcome(http_post(server.url(), options)),
              "never: it has 15 bytes, and HttpPostOptions::request_bytes_max allows 10");
    EXPECT_TRUE(server.requests().empty());
}

class HttpPostByTls : public ::testing::Test {
  protected:
    static void SetUpTestSuite() { std::signal(SIGPIPE, SIG_IGN); }
    std::string ask(const TlsServer& server, const std::string& host = "127.0.0.1") {
        HttpPostOptions options = here();
        options.ca_file = authority_.file();
        return outcome(http_post("https://" + host + ":" + std::to_string(server.port()) + "/", options));
    }
    const Authority authority_;
};

TEST_F(HttpPostByTls, asks_a_server_that_proves_its_name_and_no_other) {
    const TlsServer right{authority_.issue({}), {}};
    EXPECT_EQ(ask(right), "");
    EXPECT_EQ(right.requests(), 1u);
    const TlsServer other{authority_.issue({.subject = "DNS:example.com"}), {}};
    EXPECT_TRUE(ask(other).starts_with("failed: ")) << ask(other);
    const TlsServer alone{Authority::self_signed("IP:127.0.0.1"), {}};
    EXPECT_TRUE(ask(alone).starts_with("failed: ")) << ask(alone);
    const TlsServer over{authority_.issue({.days_from = -3, .days_until = -1}), {}};
    EXPECT_TRUE(ask(over).starts_with("failed: ")) << ask(over);
    EXPECT_EQ(other.requests() + alone.requests() + over.requests(), 0u);
}

TEST_F(HttpPostByTls, asks_no_host_at_an_address_that_is_not_public_unless_it_is_named) {
    const TlsServer server{authority_.issue({}), {}};
    for (const std::string host : {"127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"}) {
        HttpPostOptions options;
        options.ca_file = authority_.file();
        const std::string said =
            outcome(http_post("https://" + host + ":" + std::to_string(server.port()) + "/", options));
        EXPECT_NE(said.find("which is not public; name the host in HttpPostOptions::private_hosts"), std::string::npos)
            << said;
    }
    EXPECT_EQ(server.requests(), 0u);
}

TEST(Addresses, are_public_or_set_aside) {
    const auto is_public = [](const char* text) {
        sockaddr_storage storage{};
        auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
        auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
        if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
            storage.ss_family = AF_INET;
        } else {
            EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
            storage.ss_family = AF_INET6;
        }
        EXPECT_EQ(http::to_string(reinterpret_cast<const sockaddr&>(storage)).empty(), false);
        return http::is_public(reinterpret_cast<const sockaddr&>(storage));
    };
    for (const char* one : {"8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
                            "172.15.255.255", "172.32.0.0", "192.167.255.255", "223.255.255.255", "2606:4700::1111",
                            "2a00:1450:4001::200e", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"})
        EXPECT_TRUE(is_public(one)) << one;
    for (const char* one : {"0.0.0.0",
                            "10.0.0.1",
                            "100.64.0.1",
                            "127.0.0.1",
                            "127.255.255.255",
                            "169.254.169.254",
                            "172.16.0.1",
                            "172.31.255.255",
                            "192.0.0.1",
                            "192.0.2.1",
                            "192.168.1.1",
                            "198.18.0.1",
                            "198.19.255.255",
                            "198.51.100.1",
                            "203.0.113.1",
                            "224.0.0.1",
                            "240.0.0.1",
                            "255.255.255.255",
                            "::",
                            "::1",
                            "fe80::1",
                            "fc00::1",
                            "fd12::1",
                            "ff02::1",
                            "2001:db8::1",
                            "2001::1",
                            "::ffff:127.0.0.1",
                            "::ffff:10.0.0.1",
                            "64:ff9b::10.0.0.1",
                            "2002:7f00:1::1",
                            "100::1",
                            "3fff::1"})
        EXPECT_FALSE(is_public(one)) << one;
}

TEST(HttpPost, refuses_what_cannot_work_and_shows_no_secret) {
    const auto refusal = [](const std::string& url, const HttpPostOptions& options = {}) {
        try {
            static_cast<void>(http_post(url, options));
        } catch (const ConfigError& error) {
            return std::string{error.what()};
        }
        return std::string{"none"};
    };
    EXPECT_EQ(refusal("https://pay.example/ask"), "none");
    EXPECT_NE(refusal("pay example").find("cannot be read"), std::string::npos);
    EXPECT_NE(refusal("").find("cannot be read"), std::string::npos);
    EXPECT_NE(refusal("ftp://pay.example/").find("begins with ftp"), std::string::npos);
    EXPECT_NE(refusal("http://pay.example/").find("could be read on the way"), std::string::npos);
    const std::string with_password = refusal("https://me:hunter2@pay.example/");
    EXPECT_NE(with_password.find("user's name or password"), std::string::npos);
    EXPECT_EQ(with_password.find("hunter2"), std::string::npos);
    EXPECT_NE(refusal("https://pay.example/#a").find("fragment"), std::string::npos);
    const std::string two_lines = refusal("https://pay.example/", {.headers = {{"X-Key", "hunter2\r\nHost: evil"}}});
    EXPECT_NE(two_lines.find("'X-Key'"), std::string::npos);
    EXPECT_EQ(two_lines.find("hunter2"), std::string::npos);
    EXPECT_NE(refusal("https://pay.example/", {.headers = {{"X Key", "1"}}}).find("headers"), std::string::npos);
    EXPECT_NE(refusal("https://pay.example/", {.headers = {{"CE-Id", "1"}}}).find("'CE-Id'"), std::string::npos);
    EXPECT_NE(refusal("https://pay.example/", {.headers = {{"Host", "1"}}}).find("'Host'"), std::string::npos);
    EXPECT_NE(refusal("https://pay.example/", {.source = ""}).find("source"), std::string::npos);
    EXPECT_NE(refusal("https://pay.example/", {.source = "a b"}).find("source"), std::string::npos);
    EXPECT_NE(refusal("https://pay.example/", {.timeout = 0s}).find("HttpPostOptions::timeout is 0"),
              std::string::npos);
    EXPECT_NE(refusal("https://pay.example/", {.connect_timeout = 2h}).find("connect_timeout"), std::string::npos);
    EXPECT_NE(refusal("https://pay.example/", {.request_bytes_max = 0}).find("request_bytes_max"), std::string::npos);
    EXPECT_NE(refusal("https://pay.example/", {.ca_file = "/no/such.pem"}).find("'/no/such.pem'"), std::string::npos);

    ScriptedServer server{always(500)};
    HttpPostOptions options = here();
    options.headers = {{"Authorization", "Bearer hunter2"}};
    const std::string failed = outcome(http_post(server.url() + "?token=hunter2", options));
    EXPECT_NE(failed, "");
    EXPECT_EQ(failed.find("hunter2"), std::string::npos) << failed;
}

TEST(HttpPost, delivers_what_a_command_asks_for_also_where_the_server_failed_with_the_effect) {
    ScriptedServer server{[](const ScriptedServer::Request&, std::size_t number) {
        return ScriptedServer::Reply{ScriptedServer::answer(number == 0 ? 500 : 200, "")};
    }};
    Application shop{open("memory:")};
    deliver<Ask>(shop, http_post(server.url(), here()), {.retry_first = 1ms});
    const Receipt receipt = shop.transact([](Transaction& tx) { tx.effect(Ask{"o-1"}); }).value();
    ASSERT_TRUE(shop.wait_for(delivery_name<Ask>(), receipt, 100s));
    const std::vector<ScriptedServer::Request> requests = server.requests();
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_EQ(requests[0].header("ce-id"), receipt.transaction + ":0");
    EXPECT_EQ(requests[0].header("Idempotency-Key"), requests[1].header("Idempotency-Key"));
    EXPECT_EQ(requests[0].body, R"({"order":"o-1"})");
}

}  // namespace
}  // namespace varve
