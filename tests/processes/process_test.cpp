#include "support/one_by_one_store.h"
#include "support/reacting.h"

#include <varve/commands/parked_stream.h>
#include <varve/commands/stream_list.h>
#include <varve/events/event_store.h>

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace varve {
namespace {

/// Reacts in ways that cannot work.
struct Clumsy {
    static constexpr std::string_view name = "clumsy";
    using Event = std::variant<Started>;
    using ListensTo = EventsOf<Purchase>;

    static inline bool is_mended = false;

    void apply(const Started&) {}
    static std::optional<std::string> on(const Placed&, const EventContext& c) { return std::string{c.aggregate_id()}; }
    void react(const Placed& e, Reaction& r) const {
        if (e.product == "itself") r.execute<Clumsy>(r.input().aggregate_id(), Nothing{});
        if (e.product == "another's event") r.record(Done{});
        if (e.product == "throws" && !is_mended) throw std::runtime_error("there are no bananas");
        r.record(Started{e.product});
    }
    struct Nothing {};
    Decision<Event> decide(const Nothing&) const { return {}; }
};

TEST_F(Reacts, a_process_gives_commands_and_asks_for_effects_with_what_it_records) {
    fill("p", 5);
    place("o1", "p", 3);
    detail::Follower follower{shop, idle, consumer<Checkout>()};
    follower.turn({});

    EXPECT_EQ(events_of("checkout-o1"), (Texts{"Started"}));
    EXPECT_EQ(shop.load<Stock>("p").state.reserved, 3);
    const std::vector<Effect> effects = shop.events().effects("checkout-o1", 1);
    ASSERT_EQ(effects.size(), 1u);
    EXPECT_EQ(effects.front().effect.data, R"({"order":"o1"})");
}

TEST_F(Reacts, a_rejection_that_it_looks_at_is_a_branch_of_the_process) {
    fill("p", 2);
    place("o1", "p", 3);
    detail::Follower follower{shop, idle, consumer<Checkout>()};
    follower.turn({});
    EXPECT_EQ(events_of("checkout-o1"), (Texts{"GivenUp"}));
    EXPECT_EQ(shop.load<Purchase>("o1").state.why, "out_of_stock");
    EXPECT_EQ(shop.load<Stock>("p").state.reserved, 0);
    EXPECT_TRUE(follower.parked().empty());
}

TEST_F(Reacts, a_rejection_that_nobody_looks_at_fails_the_reaction_and_nothing_of_it_is_there) {
    fill("p", 5);
    place("o1", "p", 1);
    shop.execute<Purchase>("o1", Cancel{"changed my mind"}).value();
    shop.execute<Payment>("x", Fail{"o1"}).value();
    shop.execute<Payment>("y", Pay{"o1"}).value();
    detail::Follower follower{shop, idle, consumer<Checkout>()};
    follower.turn({});
    EXPECT_EQ(events_of("checkout-o1"), (Texts{"Started", "Done"})) << "others go on";
    ASSERT_EQ(follower.parked().size(), 1u);
    EXPECT_EQ(follower.parked().front().stream, "payment-x");
    EXPECT_NE(follower.parked().front().error.find(
                  "the process 'checkout' gave a command that was rejected, and did not look at that: Cancel on "
                  "purchase-o1 was rejected with \"not_open\""),
              std::string::npos)
        << follower.parked().front().error;
}

TEST_F(Reacts, what_cannot_work_names_the_process_and_what_is_wrong) {
    place("o1", "itself");
    place("o2", "another's event");
    place("o3", "fine");
    detail::Follower follower{shop, idle, consumer<Clumsy>()};
    follower.turn({});
    EXPECT_EQ(events_of("clumsy-o3"), (Texts{"Started"}));
    const std::vector<ParkedStream> parked = follower.parked();
    ASSERT_EQ(parked.size(), 2u);
    EXPECT_NE(parked[0].error.find("the process 'clumsy' gives a command to itself, to 'clumsy-o1'; let it record"),
              std::string::npos)
        << parked[0].error;
    EXPECT_NE(parked[1].error.find("Done, which is no event of it; add it to its Event variant"), std::string::npos)
        << parked[1].error;
}

TEST_F(Reacts, what_was_set_aside_is_reacted_to_once_it_is_mended) {
    Clumsy::is_mended = false;
    place("o1", "throws");
    place("o1", "fine");
    place("o2", "fine");
    detail::Follower follower{shop, idle, consumer<Clumsy>()};
    follower.turn({});
    EXPECT_EQ(events_of("clumsy-o1"), Texts{}) << "what comes after it in its stream waits";
    EXPECT_EQ(events_of("clumsy-o2"), (Texts{"Started"}));

    EXPECT_EQ(follower.retry_parked(), 0u);
    EXPECT_EQ(events_of("clumsy-o1"), Texts{});
    Clumsy::is_mended = true;
    EXPECT_EQ(follower.retry_parked(), 1u);
    EXPECT_EQ(events_of("clumsy-o1"), (Texts{"Started", "Started"}));
    EXPECT_EQ(follower.retry_parked(), 0u);
    follower.turn({});
    EXPECT_EQ(events_of("clumsy-o1"), (Texts{"Started", "Started"}));
}

TEST_F(Reacts, a_process_may_be_told_to_stop_at_what_it_cannot_react_to) {
    Clumsy::is_mended = false;
    how.on_poison = FollowOptions::OnPoison::stop;
    place("o1", "throws");
    place("o2", "fine");
    detail::Follower follower{shop, idle, consumer<Clumsy>()};
    EXPECT_EQ(follower.turn({}), std::nullopt);
    EXPECT_EQ(follower.status().state, FollowerStatus::State::stopped);
    EXPECT_NE(follower.status().error.find("there are no bananas"), std::string::npos) << follower.status().error;
    EXPECT_EQ(events_of("clumsy-o2"), Texts{});
}

TEST_F(Reacts, an_event_that_is_for_no_instance_is_passed_over) {
    shop.execute<Payment>("x", Pay{""}).value();
    detail::Follower follower{shop, idle, consumer<Checkout>()};
    follower.turn({});
    EXPECT_EQ(follower.status().position, follower.status().end);
    EXPECT_EQ(shop.streams("checkout-").streams.size(), 0u);
}

TEST_F(Reacts, several_events_of_one_slot_are_reacted_to_together) {
    fill("p", 9);
    shop.append<Payment>("x", {Paid{"o1"}, Failed{"o2"}, Paid{"o3"}}).value();
    detail::Follower follower{shop, idle, consumer<Checkout>()};
    follower.turn({});
    // The second of them fails, and with it the slot.
    EXPECT_EQ(events_of("checkout-o1"), Texts{});
    ASSERT_EQ(follower.parked().size(), 1u);
    place("o2", "p", 1);
    follower.turn({});
    EXPECT_EQ(events_of("checkout-o2"), (Texts{"Started"}));
    EXPECT_EQ(follower.retry_parked(), 1u) << "now the order is open";
    EXPECT_EQ(events_of("checkout-o1"), (Texts{"Done"}));
    EXPECT_EQ(events_of("checkout-o2"), (Texts{"Started", "GivenUp"}));
    EXPECT_EQ(events_of("checkout-o3"), (Texts{"Done"}));
}

TEST_F(Reacts, correlation_and_trace_flow_through_a_reaction_and_its_cause_is_the_event) {
    fill("p", 5);
    place("o1", "p", 1,
          {.correlation = "conversation 7",
           .headers = {{"traceparent", "00-ab-cd-01"}, {"tracestate", "x=1"}, {"password", "of its caller"}}});
    place("o2", "p", 1, {.command_id = "c2"});
    place("o3", "p", 1);
    detail::Follower follower{shop, idle, consumer<Checkout>()};
    follower.turn({});

    const RecordedEvent cause = shop.events().load("purchase-o1").events.front();
    const RecordedEvent own = shop.events().load("checkout-o1").events.front();
    const RecordedEvent reserved = shop.events().load("stock-p").events.at(1);
    EXPECT_EQ(*own.metadata, *reserved.metadata);
    EXPECT_EQ(own.metadata->correlation, "conversation 7");
    EXPECT_EQ(own.metadata->causation, cause.id);
    EXPECT_EQ(own.metadata->headers,
              (std::map<std::string, std::string>{{"traceparent", "00-ab-cd-01"}, {"tracestate", "x=1"}}));
    EXPECT_EQ(own.metadata->command_id, detail::reaction_id(aggregate_type<Checkout>(), cause));
    EXPECT_EQ(*shop.events().effects("checkout-o1", 1).front().metadata, *own.metadata);
    EXPECT_EQ(shop.events().load("checkout-o2").events.front().metadata->correlation, "c2");
    const RecordedEvent alone = shop.events().load("purchase-o3").events.front();
    EXPECT_EQ(shop.events().load("checkout-o3").events.front().metadata->correlation, alone.id)
        << "a conversation begins with it";
}

TEST_F(Reacts, an_event_is_reacted_to_once_for_ever_even_if_the_processes_place_is_lost) {
    fill("p", 5);
    place("o1", "p", 1);
    shop.execute<Payment>("x", Pay{"o1"}).value();
    {
        detail::Follower follower{shop, idle, consumer<Checkout>()};
        follower.turn({});
    }
    shop.transact([](Transaction& tx) { tx.rows<detail::Checkpoint>().erase("$process-checkout"); }).value();
    place("o2", "p", 1);
    detail::Follower heir{shop, idle, consumer<Checkout>()};
    heir.turn({});
    EXPECT_EQ(events_of("checkout-o1"), (Texts{"Started", "Done"}));
    EXPECT_EQ(events_of("checkout-o2"), (Texts{"Started"}));
    EXPECT_EQ(shop.load<Stock>("p").state.reserved, 2);
    EXPECT_EQ(heir.status().position, heir.status().end);
}

TEST_F(Reacts, the_id_of_an_event_with_a_long_name_is_shortened_and_still_tells) {
    const std::string id(800, 'o');
    fill("p", 5);
    place(id, "p", 1);
    place(id, "p", 1);
    detail::Follower follower{shop, idle, consumer<Checkout>()};
    follower.turn({});
    const std::vector<RecordedEvent> own = shop.events().load("checkout-" + id).events;
    ASSERT_EQ(own.size(), 2u) << log.text();
    EXPECT_LE(own[0].metadata->command_id.size(), 200u);
    EXPECT_NE(own[0].metadata->command_id, own[1].metadata->command_id);
}

TEST_F(Reacts, a_process_runs_in_the_background_and_can_be_waited_for) {
    ApplicationOptions options{.sweep = false};
    Application live{open("memory:"), options};
    run<Checkout>(live);
    EXPECT_THROW(run<Checkout>(live), ConfigError);
    live.execute<Stock>("p", Fill{5}).value();
    const Outcome placed = live.execute<Purchase>("o1", Place{"p", 1});
    ASSERT_TRUE(live.wait_for(process_name<Checkout>(), *placed, 30s));
    EXPECT_EQ(live.load<Checkout>("o1").state.started, 1);
    EXPECT_THROW(live.rebuild(process_name<Checkout>()), InvalidError);
}

TEST_F(Reacts, options_that_cannot_work_are_refused_by_name) {
    const auto refused = [&](const ProcessOptions& options) -> std::string {
        try {
            run<Checkout>(shop, options);
        } catch (const ConfigError& error) {
            return error.what();
        }
        return "nothing";
    };
    EXPECT_NE(refused({.partitions = 0}).find("ProcessOptions::partitions is 0"), std::string::npos);
    EXPECT_NE(refused({.parked_max = 0}).find("ProcessOptions::parked_max is 0"), std::string::npos);
    EXPECT_NE(refused({.poll_interval = 0s}).find("ProcessOptions::poll_interval is 0"), std::string::npos);
}

TEST_F(Reacts, several_partitions_react_each_to_its_own_streams) {
    ApplicationOptions options{.sweep = false};
    Application live{open("memory:"), options};
    run<Checkout>(live, {.partitions = 4});
    live.execute<Stock>("p", Fill{100}).value();
    Receipt last;
    for (int i = 0; i < 20; ++i) {
        last = live.execute<Purchase>("o" + std::to_string(i), Place{"p", 1}).value();
        ASSERT_TRUE(live.wait_for(process_name<Checkout>(), last, 30s));
    }
    EXPECT_EQ(live.load<Stock>("p").state.reserved, 20);
    Application other{std::shared_ptr<store::ItemStore>{&live.store(), [](store::ItemStore*) {}}, options};
    const ProcessOptions in_two{.partitions = 2};
    EXPECT_THROW(run<Checkout>(other, in_two), ConfigError);
}

TEST_F(DyingReaction, happens_once_whoever_dies_at_whatever_request) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        int at = 1;
        for (bool has_died = true; has_died && !HasFailure(); ++at) has_died = run(open("memory:"), at, applies);
        EXPECT_GT(at, 20);
    }
}

TEST_F(DyingReaction, happens_once_on_a_store_that_writes_one_item_at_a_time) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x5555555555555555}}) {
        int at = 1;
        for (bool has_died = true; has_died && !HasFailure(); ++at)
            has_died = run(std::make_shared<OneByOneStore>(open("memory:")), at, applies);
        EXPECT_GT(at, 20);
    }
}

}  // namespace
}  // namespace varve
