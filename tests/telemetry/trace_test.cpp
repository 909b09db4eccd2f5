#include "support/account.h"
#include "support/hooked_store.h"

#include <varve/telemetry/trace.h>
#include <varve/testing/manual_world.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <mutex>
#include <stdexcept>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using namespace std::chrono_literals;
using telemetry::Span;
using telemetry::TraceContext;

constexpr const char* from_a_request = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContext, is_read_and_written_as_the_header_has_it) {
    const std::optional<TraceContext> context = TraceContext::parse(from_a_request);
    ASSERT_TRUE(context);
    EXPECT_TRUE(context->sampled);
    EXPECT_EQ(telemetry::to_hex(context->trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
    EXPECT_EQ(telemetry::to_hex(context->span_id), "00f067aa0ba902b7");
    EXPECT_EQ(context->traceparent(), from_a_request);
    const auto not_sampled = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
    ASSERT_TRUE(not_sampled);
    EXPECT_FALSE(not_sampled->sampled);
    // Of other flags nothing is known; a later version may have more after what this one has.
    EXPECT_TRUE(TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff")->sampled);
    EXPECT_TRUE(TraceContext::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes"));
    EXPECT_TRUE(TraceContext::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
}

TEST(TraceContext, is_refused_where_the_standard_says_so) {
    for (const char* const text : {"", "00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                   "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                   "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                                   "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                                   "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                                   "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
                                   "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
                                   "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                   "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
                                   "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01"}) {
        EXPECT_FALSE(TraceContext::parse(text)) << text;
    }
}

/// Keeps the spans.
struct Recorder final : telemetry::Tracer {
    bool takes_all = true;

    bool samples() noexcept override { return takes_all; }
    void record(Span span) noexcept override {
        const std::lock_guard lock{mutex};
        spans.push_back(std::move(span));
    }

    std::mutex mutex;
    std::vector<Span> spans;
};

std::string text_of(const Span& span, const std::string& attribute) {
    for (const auto& [name, value] : span.attributes) {
        if (name != attribute) continue;
        const auto* const text = std::get_if<std::string>(&value);
        return text != nullptr ? *text : std::to_string(std::get<std::int64_t>(value));
    }
    return "(none)";
}

struct Tracing : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(open("memory:"));
    Application bank{store, options({.tracer = recorder})};

    std::vector<Span> commands() const { return of(Span::Kind::internal); }
    std::vector<Span> requests() const { return of(Span::Kind::client); }

  private:
    std::vector<Span> of(Span::Kind kind) const {
        std::vector<Span> found;
        std::ranges::copy_if(recorder->spans, std::back_inserter(found),
                             [&](const Span& span) { return span.kind == kind; });
        return found;
    }
};

TEST_F(Tracing, goes_on_from_a_request_to_the_command_its_store_requests_and_its_events) {
    store->after_atomic_write = [this](auto, store::AtomicAnswer&) { clock.advance(3ms); };
    const CommandOptions traced{
        .command_id = "one", .correlation = "talk", .headers = {{"traceparent", from_a_request}}};
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}, traced));
    ASSERT_EQ(commands().size(), 1U);
    const Span command = commands().front();
    EXPECT_EQ(command.name, "execute account");
    EXPECT_EQ(telemetry::to_hex(command.context.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
    EXPECT_EQ(telemetry::to_hex(command.parent), "00f067aa0ba902b7");
    EXPECT_GE(command.took, 3ms);
    EXPECT_EQ(command.error, "");
    EXPECT_EQ(text_of(command, "varve.command_id"), "one");
    EXPECT_EQ(text_of(command, "varve.correlation_id"), "talk");
    EXPECT_EQ(text_of(command, "varve.attempts"), "1");
    EXPECT_EQ(text_of(command, "varve.rung"), "at_once");
    EXPECT_NE(text_of(command, "varve.transaction"), "");

    ASSERT_FALSE(requests().empty());
    for (const Span& request : requests()) {
        EXPECT_EQ(request.context.trace_id, command.context.trace_id) << request.name;
        EXPECT_EQ(request.parent, command.context.span_id) << request.name;
        EXPECT_NE(request.context.span_id, command.context.span_id);
    }
    const std::string header = bank.history<Account>("alice").events.front().metadata->headers.at("traceparent");
    EXPECT_EQ(header, command.context.traceparent());
}

TEST_F(Tracing, follows_what_the_request_says_of_being_sampled_and_else_asks_the_tracer) {
    const std::string quiet = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}, {.headers = {{"traceparent", quiet}}}));
    EXPECT_TRUE(recorder->spans.empty());
    EXPECT_EQ(bank.history<Account>("alice").events.front().metadata->headers.at("traceparent"), quiet);
    recorder->takes_all = false;
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}));
    EXPECT_TRUE(recorder->spans.empty());
    EXPECT_FALSE(bank.history<Account>("alice").events.back().metadata->headers.contains("traceparent"));
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}, {.headers = {{"traceparent", from_a_request}}}));
    EXPECT_EQ(commands().size(), 1U);
    recorder->takes_all = true;
    // What is no such header begins a trace.
    ASSERT_TRUE(bank.execute<Account>("bob", Deposit{5}, {.headers = {{"traceparent", "nonsense"}}}));
    EXPECT_EQ(commands().size(), 2U);
    EXPECT_EQ(commands().back().parent, telemetry::SpanId{});
    EXPECT_TRUE(TraceContext::parse(bank.history<Account>("bob").events.back().metadata->headers.at("traceparent")));
}

TEST_F(Tracing, says_how_each_command_ended) {
    ASSERT_FALSE(bank.execute<Account>("alice", Withdraw{5}));
    EXPECT_THROW((void)bank.transact([](Transaction&) { throw std::runtime_error{"out of paper"}; }),
                 std::runtime_error);
    std::future<Outcome> one = bank.submit<Account>("alice", Deposit{5});
    std::future<Outcome> two = bank.submit<Account>("alice", Withdraw{50});
    later.drain();
    ASSERT_TRUE(one.get());
    ASSERT_FALSE(two.get());
    const std::vector<Span> all = commands();
    ASSERT_EQ(all.size(), 4U);
    EXPECT_EQ(text_of(all[0], "varve.rejection"), "insufficient_funds");
    EXPECT_EQ(all[0].error, "") << "a rejection is a result";
    EXPECT_EQ(all[1].name, "transact");
    EXPECT_EQ(all[1].error, "out of paper");
    EXPECT_EQ(all[2].name, "submit account");
    EXPECT_EQ(text_of(all[2], "varve.path"), "single");
    EXPECT_EQ(text_of(all[3], "varve.rejection"), "insufficient_funds");
    for (std::size_t i = 1; i < all.size(); ++i) EXPECT_NE(all[i].context.trace_id, all[0].context.trace_id);
}

TEST_F(Tracing, has_no_spans_of_what_followers_do) {
    const auto of_all = std::make_shared<Recorder>();
    {
        Application follower{store, {.sweep_interval = 10ms, .tracer = of_all}};
        follower.follow<Account>(ProjectBalance{});
        const Receipt receipt = follower.execute<Account>("alice", Deposit{5}).value();
        ASSERT_TRUE(follower.wait_for<ProjectBalance>(receipt, 1h));
    }
    EXPECT_EQ(std::ranges::count(of_all->spans, Span::Kind::internal, &Span::kind), 1) << "the deposit";
    for (const Span& span : of_all->spans) EXPECT_EQ(span.context.trace_id, of_all->spans.front().context.trace_id);
}

TEST_F(Tracing, names_the_request_that_failed) {
    store->before_read = [] { throw UnavailableError{"cable cut"}; };
    store->after_query = [](const store::Page&) { throw UnavailableError{"cable cut"}; };
    EXPECT_THROW((void)bank.transact([](Transaction& tx) { tx.execute<Account>("new", Deposit{1}); }),
                 UnavailableError);
    const std::vector<Span> all = requests();
    EXPECT_TRUE(
        std::ranges::any_of(all, [](const Span& span) { return span.error.find("cable cut") != std::string::npos; }));
    EXPECT_NE(commands().back().error.find("cable cut"), std::string::npos);
}

}  // namespace
}  // namespace varve
