#include "console.h"
#include "serve/api.h"
#include "serve/guard.h"
#include "serve/page.h"
#include "serve/secrets.h"
#include "serve/server.h"
#include "serve/target.h"
#include "support/account.h"
#include "support/loopback.h"
#include "support/temporary_folder.h"

#include <varve/core/json.h>
#include <varve/events/event_store.h>
#include <varve/locks/locks.h>
#include <varve/spdlog/log.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/quiet_log.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace varve::console::serve {
namespace {

using namespace account;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

const std::string own_token = "0123456789abcdef0123456789abcdef";
const std::string own_session = "session-session-session-session";

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

struct Answer {
    int status = 0;  // 0: none came
    std::map<std::string, std::string> headers = {};
    std::string body = {};

    template <class T>
    T as() const {
        auto value = json::decode<T>(body);
        if (!value) throw std::runtime_error(value.error().message + " in " + body);
        return *std::move(value);
    }
};

/// Reads one answer; `socket` stays open.
Answer read_answer(const LoopbackSocket& socket, bool has_body = true) {
    std::string got;
    std::size_t header = std::string::npos;
    while ((header = got.find("\r\n\r\n")) == std::string::npos) {
        if (!socket.receive(got)) return {};
    }
    Answer answer{.status = std::stoi(got.substr(9, 3))};
    for (std::size_t at = got.find("\r\n") + 2; at < header;) {
        const std::size_t end = got.find("\r\n", at);
        const std::size_t colon = got.find(": ", at);
        answer.headers[lower(got.substr(at, colon - at))] = got.substr(colon + 2, end - colon - 2);
        at = end + 2;
    }
    answer.body = got.substr(header + 4);
    const std::size_t bytes =
        answer.headers.contains("content-length") ? std::stoul(answer.headers["content-length"]) : 0;
    while (has_body && answer.body.size() < bytes) {
        if (!socket.receive(answer.body)) break;
    }
    return answer;
}

/// A server of a store in a file of its own, with alice and bob, and whoever asks it.
struct Serving : ::testing::Test {
    const TemporaryFolder folder{"serve-test"};
    const std::string url = "sqlite:" + (folder.path() / "bank.db").string();
    testing::QuietLog log;
    Program program;
    Limits limits;
    Access access;
    bool allow_writes = false;

    std::unique_ptr<Console> console;
    std::unique_ptr<Server> server;
    std::unique_ptr<Api> api;
    std::function<Response(const Request&)> instead;  // of the API
    std::thread thread;

    ApplicationOptions options() {
        ApplicationOptions options;
        options.sweep = false;
        options.runtime.log = log;
        return options;
    }
    void SetUp() override {
        Application bank{open(url), options()};
        bank.execute<Account>("alice", Open{"Alice"}).value();
        bank.execute<Account>("alice", Deposit{100}, {.correlation = "talk"}).value();
        bank.execute<Account>("bob", Deposit{5}, {.correlation = "talk"}).value();
    }
    void TearDown() override { stop(); }

    void serve() {
        console = std::make_unique<Console>(program);
        console->url = url;
        console->allow_writes = allow_writes;
        console->log = spdlog::make_log("varve", LogLevel::error, spdlog::Format::text);
        console->application();
        server = std::make_unique<Server>("127.0.0.1", 0, limits);
        api = std::make_unique<Api>(*console, Guard{access, server->port(), own_session});
        Server::Handlers handlers{.answer = [&](const Request& request) { return api->answer(request); },
                                  .end = [&] { return api->end(); }};
        if (instead) handlers.answer = instead;
        thread = std::thread{[this, handlers] { server->run(handlers); }};
    }
    void stop() {
        if (!thread.joinable()) return;
        server->stop();
        thread.join();
    }

    std::string host() const { return "127.0.0.1:" + std::to_string(server->port()); }
    LoopbackSocket connect() const { return LoopbackSocket::connected(static_cast<int>(server->port())); }
    Answer ask_raw(const std::string& text, bool has_body = true) const {
        const LoopbackSocket socket = connect();
        EXPECT_TRUE(socket.send(text));
        return read_answer(socket, has_body);
    }
    Answer get(const std::string& target, const std::string& more = "") const {
        return ask_raw("GET " + target + " HTTP/1.1\r\nHost: " + host() + "\r\n" + more + "\r\n");
    }
    std::string origin() const { return "Origin: http://" + host() + "\r\n"; }
    Answer post_with(const std::string& target, const std::string& headers, const std::string& body) const {
        return ask_raw("POST " + target + " HTTP/1.1\r\nHost: " + host() + "\r\n" + headers +
                       "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    }
    Answer post(const std::string& target, const std::string& body, const std::string& more = "") const {
        return post_with(target, origin() + "Content-Type: application/json\r\n" + more, body);
    }
};

struct Listed {
    std::string stream;
};
struct ListedStreams {
    std::vector<Listed> streams;
    bool more;
    bool complete;
};
struct OneEvent {
    std::string stream;
    Version version;
    std::string type;
};
struct Events {
    std::vector<OneEvent> events;
    std::uint64_t position;
};

TEST(Target, a_path_is_taken_apart_before_its_escapes_are_undone) {
    const auto target = parse_target("/api/streams/a%2Fb%20c?prefix=x%26y&limit=3&empty");
    ASSERT_TRUE(target);
    EXPECT_EQ(target->path, (std::vector<std::string>{"api", "streams", "a/b c"}));
    EXPECT_EQ(target->query, (std::map<std::string, std::string>{{"prefix", "x&y"}, {"limit", "3"}, {"empty", ""}}));
    EXPECT_TRUE(parse_target("/")->path.empty());
    EXPECT_EQ(parse_target("/api/")->path, (std::vector<std::string>{"api", ""}));
    EXPECT_EQ(parse_target("//api")->path, (std::vector<std::string>{"", "api"}));
    for (const char* wrong : {"", "api", "http://evil/", "*", "/%", "/%4", "/%zz", "/a%00b", "/a%0d%0aSet-Cookie:x",
                              "/%ff", "/%c0%ae", "/?a=1&a=2", "/?a=%00"})
        EXPECT_FALSE(parse_target(wrong)) << wrong;
    EXPECT_FALSE(parse_target("/" + std::string(5000, 'a')));
    EXPECT_FALSE(parse_target(std::string_view{"/a\0b", 4}));
}

TEST(Guard, secrets_are_compared_whole) {
    EXPECT_TRUE(equal_in_constant_time("", ""));
    EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
    for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{{"abc", "abd"},
                                                                               {"abc", "xbc"},
                                                                               {"abc", "ab"},
                                                                               {"ab", "abc"},
                                                                               {"abc", "abcabc"},
                                                                               {"abcabc", "abc"},
                                                                               {"", "a"},
                                                                               {"a", ""},
                                                                               {std::string("a\0", 2), "a"}})
        EXPECT_FALSE(equal_in_constant_time(a, b)) << a << " " << b;
}

TEST(Guard, a_token_that_others_could_read_is_none) {
    const TemporaryFolder folder{"token-test"};
    const std::string file = (folder.path() / "token").string();
    const auto write = [&](const std::string& token, mode_t mode) {
        std::ofstream{file} << token;
        chmod(file.c_str(), mode);
        return file;
    };
    EXPECT_EQ(read_token(write(own_token + "\n", 0600)), own_token);
    EXPECT_EQ(read_token(write(own_token, 0400)), own_token);
    for (const mode_t open : {0644, 0640, 0604, 0620})
        EXPECT_THROW((void)read_token(write(own_token, open)), ConfigError) << open;
    EXPECT_THROW((void)read_token(write("short", 0600)), ConfigError);
    EXPECT_THROW((void)read_token(write("", 0600)), ConfigError);
    EXPECT_THROW((void)read_token(write(own_token + "\nand more", 0600)), ConfigError);
    EXPECT_THROW((void)read_token(write(std::string(5000, 'a'), 0600)), ConfigError);
    EXPECT_THROW((void)read_token(folder.path().string()), ConfigError);
    EXPECT_THROW((void)read_token(file + "-nowhere"), ConfigError);
    try {
        (void)read_token(write(own_token, 0644));
    } catch (const ConfigError& error) {
        EXPECT_EQ(std::string{error.what()}.find(own_token), std::string::npos);
    }
}

TEST(Guard, other_machines_need_a_token) {
    for (const char* address : {"0.0.0.0", "::", "192.168.1.5", "10.0.0.1"}) {
        EXPECT_THROW((Guard{{.address = address}, 80, own_session}), ConfigError) << address;
        EXPECT_NO_THROW((Guard{{.address = address, .token = own_token}, 80, own_session})) << address;
    }
    for (const char* address : {"127.0.0.1", "::1", "localhost"})
        EXPECT_NO_THROW((Guard{{.address = address}, 80, own_session})) << address;
    EXPECT_THROW((Guard{{}, 80, ""}), ConfigError) << "a session that can be guessed";
}

TEST(Secrets, a_password_is_left_out_as_it_is_written_and_as_it_is_meant) {
    const Secrets secrets{"postgres://ops:p%40ss%2Fword@db/shop?sslpassword=other-one&connections=3"};
    EXPECT_EQ(secrets.without("cannot log in as ops with p@ss/word, given as p%40ss%2Fword, or other-one; 3"),
              "cannot log in as ops with ***, given as ***, or ***; 3");
    EXPECT_EQ(Secrets{"postgres://ops@db/shop"}.without("ops@db"), "ops@db");
    EXPECT_EQ(Secrets{"postgres://ops:a/b@c@db/shop"}.without("a/b@c"), "***");
    EXPECT_EQ(Secrets{"sqlite:bank.db"}.without("bank.db"), "bank.db");
}

TEST_F(Serving, each_path_answers_with_json) {
    serve();
    for (const char* path :
         {"/api/about", "/api/doctor", "/api/streams", "/api/streams/account-alice", "/api/transactions", "/api/locks",
          "/api/followers", "/api/parked", "/api/timers", "/api/tail", "/api/correlation/talk"}) {
        const Answer answer = get(path);
        EXPECT_EQ(answer.status, 200) << path << answer.body;
        EXPECT_EQ(answer.headers.at("content-type"), "application/json") << path;
        EXPECT_TRUE(json::decode<json::Raw>(answer.body)) << path << answer.body;
    }
    EXPECT_NE(get("/api/about").body.find(R"("store":"sqlite")"), std::string::npos);
    const Answer metrics = get("/metrics");
#if VARVE_PROMETHEUS
    EXPECT_EQ(metrics.status, 200);
    EXPECT_NE(metrics.body.find("varve_commands_total"), std::string::npos);
#else
    EXPECT_EQ(metrics.status, 501);
#endif
    EXPECT_EQ(get("/").status, 200);
}

TEST_F(Serving, streams_are_paged_by_name) {
    serve();
    auto page = get("/api/streams?limit=1").as<ListedStreams>();
    ASSERT_EQ(page.streams.size(), 1u);
    EXPECT_EQ(page.streams[0].stream, "account-alice");
    EXPECT_TRUE(page.more);
    EXPECT_TRUE(page.complete);
    page = get("/api/streams?limit=1&after=account-alice").as<ListedStreams>();
    ASSERT_EQ(page.streams.size(), 1u);
    EXPECT_EQ(page.streams[0].stream, "account-bob");
    EXPECT_FALSE(page.more);
    EXPECT_TRUE(get("/api/streams?prefix=nobody").as<ListedStreams>().streams.empty());
    {
        Application bank{open(url), options()};
        bank.execute<Account>("carol", Deposit{1}).value();
    }
    EXPECT_EQ(get("/api/streams").as<ListedStreams>().streams.size(), 3u) << "what is new is not there";
    for (const char* wrong : {"limit=0", "limit=1001", "limit=-1", "limit=x", "limit=", "limt=3"})
        EXPECT_EQ(get(std::string{"/api/streams?"} + wrong).status, 400) << wrong;
}

TEST_F(Serving, a_streams_events_are_paged_in_both_orders) {
    serve();
    struct Page {
        std::vector<OneEvent> events;
        Version head;
        std::optional<Version> next;
    };
    auto page = get("/api/streams/account-alice?limit=1").as<Page>();
    ASSERT_EQ(page.events.size(), 1u);
    EXPECT_EQ(page.events[0].type, "Opened");
    EXPECT_EQ(page.head, 2);
    EXPECT_EQ(page.next, 2);
    page = get("/api/streams/account-alice?order=newest&limit=1").as<Page>();
    ASSERT_EQ(page.events.size(), 1u);
    EXPECT_EQ(page.events[0].version, 2);
    EXPECT_EQ(page.next, 1);
    page = get("/api/streams/account-alice?order=newest").as<Page>();
    ASSERT_EQ(page.events.size(), 2u);
    EXPECT_EQ(page.events[1].version, 1);
    EXPECT_FALSE(page.next);
    EXPECT_TRUE(get("/api/streams/account-alice?from=3").as<Page>().events.empty());
    EXPECT_EQ(get("/api/streams/account-nobody").status, 404);
    EXPECT_EQ(get("/api/streams/account-alice?order=random").status, 400);
    EXPECT_EQ(get("/api/streams/account-alice?from=0").status, 400);
}

TEST_F(Serving, a_conversation_is_found_in_all_streams) {
    serve();
    const auto talk = get("/api/correlation/talk").as<Events>();
    ASSERT_EQ(talk.events.size(), 2u);
    EXPECT_EQ(talk.events[0].stream, "account-alice");
    EXPECT_EQ(talk.events[1].stream, "account-bob");
    EXPECT_TRUE(get("/api/correlation/tal").as<Events>().events.empty());
}

TEST_F(Serving, the_tail_waits_for_what_is_committed) {
    limits.look_interval = 5ms;
    serve();
    const auto now = get("/api/tail").as<Events>();
    EXPECT_TRUE(now.events.empty());
    EXPECT_EQ(get("/api/tail?last=2").as<Events>().events.size(), 2u);
    std::future<Answer> waiting =
        std::async(std::launch::async, [&] { return get("/api/tail?after=" + std::to_string(now.position)); });
    EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
    {
        Application bank{open(url), options()};
        bank.execute<Account>("carol", Deposit{1}).value();
    }
    const auto more = waiting.get().as<Events>();
    ASSERT_EQ(more.events.size(), 1u);
    EXPECT_EQ(more.events[0].stream, "account-carol");
    EXPECT_GT(more.position, now.position);
}

TEST_F(Serving, a_tail_that_nothing_comes_to_is_answered_all_the_same) {
    limits.look_interval = 5ms;
    limits.wait_time = 20ms;
    serve();
    const auto now = get("/api/tail").as<Events>();
    const Answer answer = get("/api/tail?after=" + std::to_string(now.position));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.as<Events>().position, now.position);
}

TEST_F(Serving, a_page_that_came_by_another_name_is_not_answered) {
    access.allowed_hosts = {"ops.example", "with-port.example:99"};
    EXPECT_THROW(serve(), ConfigError) << "whoever reaches the proxy could do all that it does";
    access.token = "0123456789abcdef0123456789abcdef";
    serve();
    const std::string port = std::to_string(server->port());
    const auto of = [&](const std::string& headers) {
        return ask_raw("GET /api/about HTTP/1.1\r\nAuthorization: Bearer " + access.token + "\r\n" + headers + "\r\n")
            .status;
    };
    for (const std::string& known :
         {"localhost:" + port, "LocalHost:" + port, "127.0.0.1:" + port, "[::1]:" + port, std::string{"ops.example"},
          "ops.example:" + port, std::string{"with-port.example:99"}})
        EXPECT_EQ(of("Host: " + known + "\r\n"), 200) << known;
    for (const std::string& rebound : {"evil.example:" + port, std::string{"127.0.0.1"}, std::string{"127.0.0.1:1"},
                                       "localhost.evil.example:" + port, std::string{"localhost"},
                                       "evil.example#localhost:" + port, "127.0.0.1:" + port + ".evil.example",
                                       std::string{"with-port.example"}, "with-port.example:" + port, std::string{}})
        EXPECT_EQ(of("Host: " + rebound + "\r\n"), 421) << rebound;
    EXPECT_EQ(of(""), 400) << "no Host";
    EXPECT_EQ(of("Host: evil.example\r\nHost: localhost:" + port + "\r\n"), 400);
    EXPECT_EQ(of("Host: localhost:" + port + "\r\nHost: evil.example\r\n"), 400);
    EXPECT_EQ(ask_raw("GET http://localhost:" + port + "/api/about HTTP/1.1\r\nHost: evil.example\r\n\r\n").status,
              421);
    EXPECT_EQ(ask_raw("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 421) << "the page, too";
}

TEST_F(Serving, another_sites_page_cannot_act) {
    allow_writes = true;
    serve();
    const std::string act = R"({"confirm":"settle","transaction":""})";
    const std::string type = "Content-Type: application/json\r\n";
    EXPECT_EQ(post("/api/transactions/settle", act).status, 200);
    const auto status = [&](const std::string& headers) {
        return post_with("/api/transactions/settle", headers, act).status;
    };
    EXPECT_EQ(status(type), 403) << "without an origin";
    const std::string port = std::to_string(server->port());
    for (const std::string& other :
         {std::string{"null"}, std::string{"http://evil.example"}, "https://" + host(), "http://localhost:" + port,
          "http://" + host() + ".evil.example", std::string{"http://127.0.0.1"}})
        EXPECT_EQ(status("Origin: " + other + "\r\n" + type), 403) << other;
    for (const char* form : {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "",
                             "text/plain; application/json", "application/jsonp"})
        EXPECT_EQ(status(origin() + "Content-Type: " + form + "\r\n"), 415) << form;
    EXPECT_EQ(status(origin()), 415);
    EXPECT_EQ(status(origin() + type + "Sec-Fetch-Site: cross-site\r\n"), 403);
    EXPECT_EQ(status(origin() + type + "Sec-Fetch-Site: same-origin\r\n"), 200);
    EXPECT_EQ(get("/api/about", "Origin: http://evil.example\r\n").status, 403);
    EXPECT_EQ(get("/api/about", "Sec-Fetch-Site: cross-site\r\n").status, 403);
    EXPECT_EQ(ask_raw("OPTIONS /api/transactions/settle HTTP/1.1\r\nHost: " + host() +
                      "\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n")
                  .status,
              403);
    EXPECT_EQ(get("/api/about").headers.count("access-control-allow-origin"), 0u);
}

TEST_F(Serving, nothing_is_written_unless_it_is_allowed) {
    const auto store = open(url);
    Locks locks{store, {.time_to_live = 1h}};
    const Lock lock = locks.acquire("month-end");
    const std::string evict =
        R"({"confirm":"evict","lock":"month-end","ticket":)" + std::to_string(lock.ticket()) + "}";
    serve();
    for (const char* act : {"transactions/settle", "locks/evict", "followers/rebuild", "followers/pause",
                            "followers/resume", "followers/retry", "timers/drop", "timers/retry"})
        EXPECT_EQ(post(std::string{"/api/"} + act, evict).status, 403) << act;
    EXPECT_NE(get("/api/locks").body.find("month-end"), std::string::npos);
    stop();

    allow_writes = true;
    serve();
    EXPECT_EQ(get("/api/locks/evict").status, 404) << "who reads, acts";
    EXPECT_EQ(post("/api/locks/evict", R"({"lock":"month-end","ticket":1})").status, 400) << "not confirmed";
    EXPECT_EQ(post("/api/locks/evict", R"({"confirm":"settle","lock":"month-end","ticket":1})").status, 400);
    EXPECT_EQ(post("/api/locks/evict", "").status, 400);
    EXPECT_EQ(post("/api/locks/evict", "[[[[").status, 400);
    EXPECT_EQ(post("/api/locks/burn", evict).status, 404);
    EXPECT_EQ(post("/api/locks/evict?confirm=evict", "{}").status, 404);
    EXPECT_NE(get("/api/locks").body.find("month-end"), std::string::npos);
    const Answer evicted = post("/api/locks/evict", evict);
    EXPECT_EQ(evicted.status, 200);
    EXPECT_NE(evicted.body.find(R"("done":true)"), std::string::npos) << evicted.body;
    EXPECT_EQ(get("/api/locks").body.find("month-end"), std::string::npos);
    EXPECT_EQ(post("/api/followers/retry", R"({"confirm":"retry","follower":"nobody"})").status, 400);
    EXPECT_EQ(post("/api/timers/drop", R"({"confirm":"drop","name":"no-timer"})").status, 400);
}

TEST_F(Serving, who_has_no_token_sees_the_page_and_nothing_else) {
    access.token = own_token;
    allow_writes = true;
    serve();
    EXPECT_EQ(get("/").status, 200);
    const std::string act = R"({"confirm":"settle","transaction":""})";
    for (const char* path : {"/api/about", "/api/streams", "/metrics", "/api/nothing"}) {
        EXPECT_EQ(get(path).status, 401) << path;
        EXPECT_EQ(get(std::string{path} + "?token=" + own_token).status, 401) << "the token was taken from the URL";
        EXPECT_EQ(get(path, "Authorization: Bearer " + own_token.substr(1) + "\r\n").status, 401);
        EXPECT_EQ(get(path, "Authorization: Bearer \r\n").status, 401);
        EXPECT_EQ(get(path, "Authorization: Basic " + own_token + "\r\n").status, 401);
        EXPECT_EQ(get(path, "Cookie: varve-" + std::to_string(server->port()) + "=" + own_token + "\r\n").status, 401);
        EXPECT_EQ(get(path, "Cookie: varve-" + std::to_string(server->port()) + "=\r\n").status, 401);
        EXPECT_EQ(get(path, "Cookie: other=" + own_session + "\r\n").status, 401);
    }
    EXPECT_EQ(post("/api/transactions/settle", act).status, 401);
    const std::string bearer = "Authorization: Bearer " + own_token + "\r\n";
    EXPECT_EQ(get("/api/about", bearer).status, 200);
    EXPECT_EQ(post("/api/transactions/settle", act, bearer).status, 200);
    EXPECT_EQ(get("/api/about", bearer + "Origin: http://evil.example\r\n").status, 403) << "a token is no origin";

    EXPECT_EQ(post("/login", R"({"token":"0123456789abcdef"})").status, 401);
    EXPECT_EQ(post("/login", "{}").status, 400);
    EXPECT_EQ(post_with("/login", "Content-Type: application/json\r\nOrigin: http://evil.example\r\n",
                        R"({"token":")" + own_token + "\"}")
                  .status,
              403);
    EXPECT_EQ(get("/login").status, 401);
    const Answer in = post("/login", R"({"token":")" + own_token + "\"}");
    EXPECT_EQ(in.status, 204);
    const std::string set = in.headers.at("set-cookie");
    EXPECT_NE(set.find("; HttpOnly"), std::string::npos) << set;
    EXPECT_NE(set.find("; SameSite=Strict"), std::string::npos) << set;
    EXPECT_EQ(set.find(own_token), std::string::npos) << "a cookie outlives the token's file in a browser";
    const std::string cookie = "Cookie: a=b; " + set.substr(0, set.find(';')) + "\r\n";
    EXPECT_EQ(get("/api/about", cookie).status, 200);
    EXPECT_EQ(post("/api/transactions/settle", act, cookie).status, 200);
}

TEST_F(Serving, every_answer_keeps_browsers_from_more_than_showing_it) {
    serve();
    for (const Answer& answer : {get("/"), get("/page.js"), get("/api/about"), get("/api/nothing"), get("/metrics"),
                                 ask_raw("nonsense\r\n\r\n"), post("/api/locks/evict", "{}")}) {
        ASSERT_NE(answer.status, 0);
        const std::string policy = answer.headers.at("content-security-policy");
        for (const char* part : {"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self';",
                                 "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"})
            EXPECT_NE(policy.find(part), std::string::npos) << part;
        EXPECT_EQ(policy.find("unsafe"), std::string::npos);
        EXPECT_EQ(answer.headers.at("x-content-type-options"), "nosniff");
        EXPECT_EQ(answer.headers.at("referrer-policy"), "no-referrer");
        EXPECT_EQ(answer.headers.at("cache-control"), "no-store");
    }
    for (const PageFile& file : page_files()) {
        EXPECT_EQ(file.bytes.find("<script>"), std::string_view::npos) << file.path;
        EXPECT_EQ(file.bytes.find("<style"), std::string_view::npos) << file.path;
    }
}

TEST_F(Serving, no_path_leads_to_a_file) {
    serve();
    for (const std::string& path :
         {std::string{"/../../etc/passwd"}, std::string{"/..%2f..%2fetc/passwd"},
          std::string{"/%2e%2e/%2e%2e/etc/passwd"}, std::string{"/api/../../etc/passwd"}, std::string{"/api/%2e%2e"},
          std::string{"/api//streams"}, std::string{"/api"}, std::string{"/api/"}, std::string{"/./api/about"},
          std::string{"/api/about/"}, std::string{"/API/about"}, std::string{"/api/streams/a/b"},
          std::string{"/page.css/"}, std::string{"/page"}, std::string{"/api/streams/..%2f..%2fetc%2fpasswd"},
          std::string{"/.git/config"}})
        EXPECT_EQ(get(path).status, 404) << path;
    for (const std::string& path :
         {std::string{"/api/%00"}, std::string{"/api/streams/a%00b"}, std::string{"/api/%"}, std::string{"/api/%ff"},
          "/api/streams/" + std::string(5000, 'a'), std::string{"/api/streams/a%0d%0aX-Evil:1"}})
        EXPECT_EQ(get(path).status, 400) << path;
    EXPECT_EQ(ask_raw(std::string{"GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n", 30}).status, 400);
    const Answer head = ask_raw("HEAD /api/about HTTP/1.1\r\nHost: " + host() + "\r\n\r\n", false);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.body, "");
    for (const char* method : {"PUT", "DELETE", "TRACE", "PATCH"})
        EXPECT_EQ(ask_raw(std::string{method} + " /api/about HTTP/1.1\r\nHost: " + host() + "\r\n\r\n").status, 405);
}

TEST_F(Serving, what_an_error_says_has_no_password) {
    serve();
    {
        const auto store = open(url);
        ASSERT_TRUE(store->has_table({.name = "events",
                                      .partition_attribute = "aggregateId",
                                      .sort_attribute = "version",
                                      .sort = store::SortType::integer}));
        const store::Write broken{.key = {"events", "account-hunter22", std::int64_t{1}},
                                  .action = store::Put{{{"state", "of a form that nobody knows"}}},
                                  .condition = {}};
        ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&broken, 1}).front()));
    }
    EXPECT_NE(get("/api/streams/account-hunter22").body.find("account-hunter22"), std::string::npos);
    // As if the store's own message had a part of its URL in it.
    console->url = "postgres://ops:hunter22@db/shop";
    Api of_postgres{*console, Guard{access, server->port(), own_session}};
    const auto ask = [&](const std::string& target) {
        Request request;
        request.method = "GET";
        request.target = target;
        request.hosts = {host()};
        return of_postgres.answer(request);
    };
    const Response failed = ask("/api/streams/account-hunter22");
    EXPECT_EQ(failed.status, 500);
    EXPECT_EQ(failed.body.find("hunter22"), std::string::npos) << failed.body;
    EXPECT_NE(failed.body.find("***"), std::string::npos) << failed.body;
    EXPECT_EQ(ask("/api/streams?hunter22=1").body.find("***"), std::string::npos) << "who guesses it, is told so";
    EXPECT_EQ(ask("/api/about").body.find("hunter22"), std::string::npos);
}

TEST_F(Serving, what_is_too_large_is_refused) {
    serve();
    const Answer header = get("/api/about", "X-Long: " + std::string(9000, 'a') + "\r\n");
    EXPECT_EQ(header.status, 431);
    EXPECT_EQ(post("/api/locks/evict", std::string(70'000, ' ')).status, 413);
    EXPECT_EQ(
        ask_raw("POST /api/locks/evict HTTP/1.1\r\nHost: " + host() + "\r\nContent-Length: 99999999999\r\n\r\n").status,
        413);
    std::string chunked = "POST /login HTTP/1.1\r\nHost: " + host() + "\r\n" + origin() +
                          "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < 70; ++i) chunked += "400\r\n" + std::string(0x400, ' ') + "\r\n";
    EXPECT_EQ(ask_raw(chunked + "0\r\n\r\n").status, 413);
    EXPECT_EQ(ask_raw("\x16\x03\x01\x02\r\n\r\n").status, 400) << "somebody speaks TLS";
    EXPECT_EQ(get("/api/about").status, 200);
}

TEST_F(Serving, a_request_smuggled_behind_another_is_one_of_its_own) {
    serve();
    const LoopbackSocket socket = connect();
    const std::string one = "GET /api/about HTTP/1.1\r\nHost: " + host() + "\r\n\r\n";
    ASSERT_TRUE(socket.send("POST /login HTTP/1.1\r\nHost: " + host() + "\r\n" + origin() +
                            "Content-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "0\r\n\r\n" +
                            one));
    const Answer answer = read_answer(socket);
    EXPECT_TRUE(answer.status == 400) << answer.status;
}

/// Until the other end closes; false if it has not after a minute.
bool is_closed(const LoopbackSocket& socket) {
    std::string ignored;
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < until) {
        if (!socket.receive(ignored)) return true;
    }
    return false;
}

TEST_F(Serving, who_is_slow_is_dropped) {
    limits.header_time = limits.request_time = limits.idle_time = limits.answer_time = 50ms;
    serve();
    const LoopbackSocket silent = connect();
    EXPECT_TRUE(is_closed(silent));
    const LoopbackSocket slow_header = connect();
    ASSERT_TRUE(slow_header.send("GET /api/about HTTP/1.1\r\nHost: "));
    EXPECT_TRUE(is_closed(slow_header));
    const LoopbackSocket slow_body = connect();
    ASSERT_TRUE(slow_body.send("POST /login HTTP/1.1\r\nHost: " + host() + "\r\nContent-Length: 100\r\n\r\n{"));
    EXPECT_TRUE(is_closed(slow_body));
    const LoopbackSocket idle = connect();
    ASSERT_TRUE(idle.send("GET /api/about HTTP/1.1\r\nHost: " + host() + "\r\n\r\n"));
    EXPECT_EQ(read_answer(idle).status, 200);
    EXPECT_TRUE(is_closed(idle));
}

TEST_F(Serving, a_byte_now_and_then_does_not_keep_a_request_alive) {
    limits.header_time = 100ms;
    serve();
    const LoopbackSocket drip = connect();
    ASSERT_TRUE(drip.send("GET / HTTP/1.1\r\nX: "));
    std::promise<void> closed;
    std::thread reader{[&] {
        EXPECT_TRUE(is_closed(drip));
        closed.set_value();
    }};
    const std::future<void> is_over = closed.get_future();
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (is_over.wait_for(10ms) != std::future_status::ready && std::chrono::steady_clock::now() < until)
        (void)drip.send("a");
    EXPECT_EQ(is_over.wait_for(0s), std::future_status::ready);
    reader.join();
}

TEST_F(Serving, a_reader_that_takes_nothing_is_dropped) {
    constexpr std::size_t bytes = std::size_t{64} << 20;
    limits.answer_time = 50ms;
    limits.connections = 1;
    instead = [](const Request& request) {
        return Response{.status = 200,
                        .content_type = "text/plain",
                        .body = request.target == "/large" ? std::string(bytes, 'x') : std::string{}};
    };
    serve();
    const LoopbackSocket socket = connect();
    ASSERT_TRUE(socket.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n"));
    const auto until = std::chrono::steady_clock::now() + 60s;
    int status = 0;
    while (status != 200 && std::chrono::steady_clock::now() < until) status = get("/small").status;
    EXPECT_EQ(status, 200) << "who takes nothing keeps the only connection";
    std::string got;
    while (socket.receive(got)) {
    }
    EXPECT_LT(got.size(), bytes);
}

TEST_F(Serving, one_connection_too_many_is_told_so) {
    limits.connections = 3;
    serve();
    std::vector<LoopbackSocket> open;
    for (int i = 0; i < 3; ++i) {
        open.push_back(connect());
        ASSERT_TRUE(open.back().send("GET /api/about HTTP/1.1\r\nHost: " + host() + "\r\n\r\n"));
        EXPECT_EQ(read_answer(open.back()).status, 200);
    }
    const LoopbackSocket more = connect();
    EXPECT_EQ(read_answer(more).status, 503);
    EXPECT_TRUE(is_closed(more));
    ASSERT_TRUE(open[0].send("GET /api/about HTTP/1.1\r\nHost: " + host() + "\r\n\r\n"));
    EXPECT_EQ(read_answer(open[0]).status, 200) << "who was there before, stays";
    open.pop_back();
    const auto until = std::chrono::steady_clock::now() + 60s;
    int status = 0;
    while (status != 200 && std::chrono::steady_clock::now() < until) status = get("/api/about").status;
    EXPECT_EQ(status, 200) << "there is room again";
}

TEST_F(Serving, more_requests_than_can_wait_are_refused) {
    limits.workers = 1;
    limits.queue = 2;
    std::promise<void> go_on;
    const std::shared_future<void> may_go_on = go_on.get_future().share();
    instead = [&](const Request&) {
        may_go_on.wait();
        return Response{.status = 200, .content_type = "text/plain", .body = "done"};
    };
    serve();
    std::atomic<int> refused = 0;
    std::vector<std::future<int>> asking;
    for (int i = 0; i < 5; ++i) {
        asking.push_back(std::async(std::launch::async, [&] {
            const int status = get("/").status;
            if (status == 503) ++refused;
            return status;
        }));
    }
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (refused < 3 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(refused, 3) << "one is with the worker, one waits for it";
    go_on.set_value();
    int done = 0;
    for (std::future<int>& one : asking) done += one.get() == 200 ? 1 : 0;
    EXPECT_EQ(done, 2);
}

TEST_F(Serving, a_connection_serves_many_requests_one_after_the_other) {
    serve();
    const LoopbackSocket socket = connect();
    const std::string one = "GET /api/about HTTP/1.1\r\nHost: " + host() + "\r\n\r\n";
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(socket.send(one));
        EXPECT_EQ(read_answer(socket).status, 200);
    }
    EXPECT_TRUE(socket.send("GET /api/about HTTP/1.1\r\nConnection: close\r\nHost: " + host() + "\r\n\r\n"));
    EXPECT_EQ(read_answer(socket).status, 200);
    EXPECT_TRUE(is_closed(socket));
}

TEST_F(Serving, it_ends_when_it_is_told_to_though_somebody_waits) {
    serve();
    const LoopbackSocket idle = connect();
    const auto now = get("/api/tail").as<Events>();
    std::future<Answer> waiting =
        std::async(std::launch::async, [&] { return get("/api/tail?after=" + std::to_string(now.position)); });
    EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
    const auto begun = std::chrono::steady_clock::now();
    std::raise(SIGTERM);
    thread.join();
    EXPECT_EQ(waiting.get().status, 200) << "who waited is told that there is nothing";
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
    EXPECT_TRUE(is_closed(idle));
    const int port = static_cast<int>(server->port());
    EXPECT_THROW((void)LoopbackSocket::connected(port == 0 ? 1 : port), std::system_error);
}

TEST_F(Serving, a_port_that_is_taken_is_said_to_be) {
    serve();
    try {
        const Server second{"127.0.0.1", server->port(), {}};
        ADD_FAILURE() << "two listen at one port";
    } catch (const ConfigError& error) {
        EXPECT_NE(std::string{error.what()}.find("--port"), std::string::npos);
    }
    EXPECT_THROW((Server{"nowhere.invalid", 0, {}}), ConfigError);
}

int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "varve");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    return console::run(static_cast<int>(arguments.size()), argv.data());
}

TEST_F(Serving, the_command_refuses_to_serve_others_without_a_token) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run({"serve", "--store", url, "--address", "0.0.0.0", "--port", "0"}), 2);
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("--token-file"), std::string::npos);
    const std::string file = (folder.path() / "token").string();
    std::ofstream{file} << own_token;
    chmod(file.c_str(), 0644);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run({"serve", "--store", url, "--token-file", file, "--port", "0"}), 2);
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("chmod 600"), std::string::npos);
}

}  // namespace
}  // namespace varve::console::serve
