#ifdef VARVE_OTLP

#include "support/account.h"
#include "support/scripted_server.h"

#include <varve/core/json.h>
#include <varve/otlp/otlp.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/recorded_log.h>

#include <algorithm>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using namespace std::chrono_literals;
using telemetry::Span;

// What a collector reads: the protocol's JSON form.
struct Value {
    std::optional<std::string> stringValue, intValue;
};
struct KeyValue {
    std::string key;
    Value value;
};
struct Status {
    int code = 0;
    std::string message;
};
struct ReadSpan {
    std::string traceId, spanId;
    std::optional<std::string> parentSpanId;
    std::string name;
    int kind = 0;
    std::string startTimeUnixNano, endTimeUnixNano;
    std::vector<KeyValue> attributes;
    std::optional<Status> status;
};
struct Scope {
    std::string name;
};
struct ScopeSpans {
    Scope scope;
    std::vector<ReadSpan> spans;
};
struct Resource {
    std::vector<KeyValue> attributes;
};
struct ResourceSpans {
    Resource resource;
    std::vector<ScopeSpans> scopeSpans;
};
struct Export {
    std::vector<ResourceSpans> resourceSpans;
};

/// Takes spans, as long as it is told to.
struct Collector {
    std::atomic<int> status = 200;
    ScriptedServer server{[this](const ScriptedServer::Request&, std::size_t) {
        return ScriptedServer::Reply{ScriptedServer::answer(status, "{}")};
    }};

    std::vector<ReadSpan> spans() const {
        std::vector<ReadSpan> all;
        for (const ScriptedServer::Request& request : server.requests()) {
            const Export read = json::decode<Export>(request.body).value();
            for (const ResourceSpans& resource : read.resourceSpans) {
                EXPECT_EQ(resource.resource.attributes.front().key, "service.name");
                EXPECT_EQ(resource.resource.attributes.front().value.stringValue, "bank \"1\"");
                for (const ScopeSpans& scope : resource.scopeSpans)
                    all.insert(all.end(), scope.spans.begin(), scope.spans.end());
            }
        }
        return all;
    }
};

struct Otlp : ::testing::Test {
    Collector collector;
    testing::ManualClock clock;  // its thread sleeps until somebody moves it
    testing::RecordedLog log;

    otlp::Options options() {
        otlp::Options options{.url = collector.server.url() + "v1/traces", .service_name = "bank \"1\""};
        options.runtime.clock = clock;
        options.runtime.log = log;
        return options;
    }
    static Span span(const std::string& name) {
        return {.context = *telemetry::TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
                .name = name,
                .began = Time{1'700'000'000'123'456us},
                .took = 1500us};
    }
};

TEST_F(Otlp, sends_what_a_collector_reads) {
    otlp::Options with = options();
    with.headers = {{"Authorization", "Bearer s3cr3t"}};
    otlp::Exporter exporter{with};
    Span failed = span("two\nlines");
    failed.parent = {0xab};
    failed.kind = Span::Kind::client;
    failed.error = "cable \"cut\"";
    failed.attributes = {{"text", std::string{"a\\b"}}, {"number", std::int64_t{-9007199254740993}}};
    exporter.record(span("begins"));
    exporter.record(failed);
    ASSERT_TRUE(exporter.flush());
    const std::vector<ReadSpan> read = collector.spans();
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(read[0].traceId, "4bf92f3577b34da6a3ce929d0e0e4736");
    EXPECT_EQ(read[0].spanId, "00f067aa0ba902b7");
    EXPECT_EQ(read[0].parentSpanId, std::nullopt);
    EXPECT_EQ(read[0].kind, 1);
    EXPECT_EQ(read[0].startTimeUnixNano, "1700000000123456000");
    EXPECT_EQ(read[0].endTimeUnixNano, "1700000000124956000");
    EXPECT_FALSE(read[0].status);
    EXPECT_EQ(read[1].name, "two\nlines");
    EXPECT_EQ(read[1].parentSpanId, "ab00000000000000");
    EXPECT_EQ(read[1].kind, 3);
    EXPECT_EQ(read[1].status->code, 2);
    EXPECT_EQ(read[1].status->message, "cable \"cut\"");
    EXPECT_EQ(read[1].attributes[0].value.stringValue, "a\\b");
    EXPECT_EQ(read[1].attributes[1].value.intValue, "-9007199254740993");
    const ScriptedServer::Request request = collector.server.requests().front();
    EXPECT_EQ(request.head.substr(0, 20), "POST /v1/traces HTTP");
    EXPECT_EQ(request.header("Content-Type"), "application/json");
    EXPECT_EQ(request.header("Authorization"), "Bearer s3cr3t");
    EXPECT_EQ(exporter.sent(), 2U);
    EXPECT_EQ(log.text(), "");
}

TEST_F(Otlp, sends_what_is_no_utf8_all_the_same) {
    otlp::Exporter exporter{options()};
    Span odd = span("caf\xe9");
    odd.error = "\xff broke";
    odd.attributes = {{"varve.command_id", std::string{"\xc3("}}};
    exporter.record(span("before"));
    exporter.record(odd);
    ASSERT_TRUE(exporter.flush());
    const std::vector<ReadSpan> read = collector.spans();
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(read[1].name, "caf?");
    EXPECT_EQ(read[1].status->message, "? broke");
    EXPECT_EQ(read[1].attributes[0].value.stringValue, "?(");
}

TEST_F(Otlp, sends_by_itself_each_interval_in_batches_and_at_its_end) {
    otlp::Options with = options();
    with.batch_max = 2;
    {
        otlp::Exporter exporter{with};
        for (int i = 0; i < 5; ++i) exporter.record(span(std::to_string(i)));
        clock.wait_for_sleepers(1);
        clock.advance(1s);
        while (exporter.sent() + exporter.dropped() < 5) std::this_thread::yield();
        EXPECT_EQ(exporter.sent(), 5U);
        EXPECT_EQ(collector.server.requests().size(), 3U);
        exporter.record(span("last"));
    }
    ASSERT_EQ(collector.spans().size(), 6U);
    EXPECT_EQ(collector.spans().back().name, "last");
}

TEST_F(Otlp, drops_what_nobody_takes_and_says_so_once) {
    otlp::Options with = options();
    with.queue_max = 3;
    with.batch_max = 1;
    with.headers = {{"Authorization", "Bearer s3cr3t"}};
    otlp::Exporter exporter{with};
    collector.status = 503;
    for (int i = 0; i < 5; ++i) exporter.record(span("a"));
    EXPECT_EQ(exporter.dropped(), 2U);
    EXPECT_FALSE(exporter.flush());
    EXPECT_EQ(exporter.dropped(), 5U);
    EXPECT_EQ(collector.server.requests().size(), 1U) << "while it is away it is asked once";
    exporter.record(span("b"));
    EXPECT_FALSE(exporter.flush());
    collector.status = 200;
    exporter.record(span("c"));
    EXPECT_TRUE(exporter.flush());
    EXPECT_EQ(exporter.sent(), 1U);
    const std::string said = log.text();
    EXPECT_NE(said.find("503"), std::string::npos) << said;
    EXPECT_EQ(said.find("503"), said.rfind("503")) << said;
    EXPECT_NE(said.find("again"), std::string::npos) << said;
    EXPECT_EQ(said.find("s3cr3t"), std::string::npos) << said;
}

TEST_F(Otlp, takes_a_part_of_the_traces) {
    otlp::Options with = options();
    with.sampled = 0.25;
    otlp::Exporter exporter{with};
    const int all = 20'000;
    int taken = 0;
    for (int i = 0; i < all; ++i) taken += exporter.samples() ? 1 : 0;
    EXPECT_NEAR(taken, all / 4, 400);  // more than six standard deviations
    with.sampled = 0;
    EXPECT_FALSE(otlp::Exporter{with}.samples());
}

TEST_F(Otlp, refuses_what_cannot_work_and_shows_no_secret) {
    const auto refused = [&](auto change) {
        otlp::Options with = options();
        change(with);
        try {
            otlp::Exporter{with};
        } catch (const ConfigError& error) {
            EXPECT_EQ(std::string{error.what()}.find("s3cr3t"), std::string::npos) << error.what();
            return std::string{error.what()};
        }
        return std::string{"it was taken"};
    };
    using Options = otlp::Options;
    EXPECT_NE(refused([](Options& o) { o.url = "127.0.0.1:4318"; }).find("URL"), std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.url = "ftp://127.0.0.1/"; }).find("http"), std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.url = "http://ann:s3cr3t@127.0.0.1/"; }).find("password"), std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.sampled = 1.5; }).find("sampled"), std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.sampled = std::numeric_limits<double>::quiet_NaN(); }).find("sampled"),
              std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.queue_max = 0; }).find("queue_max"), std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.batch_max = 0; }).find("batch_max"), std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.interval = 0s; }).find("interval"), std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.timeout = 1h; }).find("timeout"), std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.service_name = ""; }).find("service_name"), std::string::npos);
    EXPECT_NE(refused([](Options& o) { o.headers = {{"A", "s3cr3t\r\nB: c"}}; }).find("headers"), std::string::npos);
}

TEST_F(Otlp, has_the_whole_trace_of_an_application) {
    const auto exporter = std::make_shared<otlp::Exporter>(options());
    {
        Application bank{open("memory:"), {.sweep = false, .tracer = exporter}};
        ASSERT_TRUE(bank.transact([](Transaction& tx) {
            tx.execute<Account>("alice", Deposit{5});
            tx.execute<Account>("bob", Deposit{5});
        }));
    }
    ASSERT_TRUE(exporter->flush());
    const std::vector<ReadSpan> read = collector.spans();
    const auto root = std::ranges::find(read, "transact", &ReadSpan::name);
    ASSERT_NE(root, read.end());
    EXPECT_EQ(root->parentSpanId, std::nullopt);
    EXPECT_GE(read.size(), 2U);
    for (const ReadSpan& one : read) {
        EXPECT_EQ(one.traceId, root->traceId);
        if (one.name == "transact") continue;
        EXPECT_EQ(one.parentSpanId, root->spanId) << one.name;
    }
}

}  // namespace
}  // namespace varve

#endif
