#include <varve/core/error.h>
#include <varve/memory/memory.h>
#include <varve/store/item_store.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/manual_clock.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include <gtest/gtest.h>

namespace varve::testing {
namespace {

using namespace store;
using namespace std::chrono_literals;

/// A store, and what lies between it and the process under test.
struct SimulatedCluster {
    explicit SimulatedCluster(const FaultRates& rates = {}, const Disguise& disguise = {}, std::uint64_t seed = 1)
        : random(seed), network({clock, random}, rates), faulty(inner, network, disguise) {
        faulty.ensure_table({.name = "notes", .partition_attribute = "id"});
        faulty.ensure_table(
            {.name = "numbers", .partition_attribute = "id", .sort_attribute = "n", .sort = SortType::integer});
    }

    static Key key(const std::string& id) { return {.table = "notes", .partition = id}; }

    WriteAnswer put(const std::string& id, std::int64_t x, Condition condition = {}) {
        const Write write{.key = key(id), .action = Put{{{"x", x}}}, .condition = std::move(condition)};
        return faulty.write({&write, 1}).at(0);
    }
    /// What the store really holds.
    std::optional<Item> stored(const std::string& id) {
        const Key one = key(id);
        return inner->read({&one, 1}).at(0);
    }
    void erase_really(const std::string& id) {
        const Write write{.key = key(id), .action = Erase{}};
        (void)inner->write({&write, 1});
    }

    ManualClock clock{ManualClock::Mode::auto_advance};
    SeededRandom random;
    std::shared_ptr<ItemStore> inner = memory::open();
    Network network;
    FaultyStore faulty;
};

bool applied(const WriteAnswer& answer) {
    return std::holds_alternative<Applied>(answer);
}
bool in_doubt(const WriteAnswer& answer) {
    const auto* failure = std::get_if<Failure>(&answer);
    return failure != nullptr && failure->in_doubt;
}

TEST(FaultyStore, a_lost_request_is_in_doubt_and_never_arrives) {
    SimulatedCluster world{{.request_lost = 1, .delivered_again = 1, .any_past_request = 1}};
    const Time before = world.clock.now();
    EXPECT_TRUE(in_doubt(world.put("a", 1)));
    EXPECT_EQ(world.clock.now() - before, FaultTimes{}.timeout);
    EXPECT_EQ(world.network.deliver_everything(), 0u);
    EXPECT_FALSE(world.stored("a"));
    EXPECT_EQ(world.network.counts().request_lost, 1u);
}

TEST(FaultyStore, a_lost_answer_leaves_the_write_done_and_its_caller_in_doubt) {
    SimulatedCluster world{{.answer_lost = 1}};
    const Time before = world.clock.now();
    EXPECT_TRUE(in_doubt(world.put("a", 1)));
    EXPECT_EQ(world.clock.now() - before, FaultTimes{}.timeout);
    EXPECT_TRUE(world.stored("a"));
}

TEST(FaultyStore, answers_lost_in_one_batch_are_waited_for_together) {
    SimulatedCluster world{{.answer_lost = 1}};
    const Time before = world.clock.now();
    const std::vector<Write> writes{{.key = SimulatedCluster::key("a"), .action = Put{}},
                                    {.key = SimulatedCluster::key("b"), .action = Put{}}};
    for (const WriteAnswer& answer : world.faulty.write(writes)) EXPECT_TRUE(in_doubt(answer));
    EXPECT_EQ(world.clock.now() - before, FaultTimes{}.timeout);
}

TEST(FaultyStore, a_late_request_arrives_when_its_time_has_come) {
    SimulatedCluster world{{.request_late = 1}};
    EXPECT_TRUE(in_doubt(world.put("a", 1)));
    EXPECT_FALSE(world.stored("a"));
    world.network.set_rates({});
    world.clock.advance(FaultTimes{}.delay_max);
    FaultyStore other{world.inner, world.network};
    const Key unrelated = SimulatedCluster::key("b");
    (void)other.read({&unrelated, 1});
    EXPECT_TRUE(world.stored("a"));
}

TEST(FaultyStore, a_request_may_arrive_again_long_after_it_was_answered) {
    SimulatedCluster world{{.delivered_again = 1}};
    EXPECT_TRUE(applied(world.put("a", 1)));
    world.erase_really("a");
    EXPECT_GE(world.network.deliver_everything(), 1u);
    EXPECT_TRUE(world.stored("a"));
}

TEST(FaultyStore, a_refused_request_that_arrives_again_may_be_applied) {
    SimulatedCluster world{{.delivered_again = 1}};
    EXPECT_TRUE(std::holds_alternative<Refused>(world.put("a", 1, item_exists())));
    const Write create{.key = SimulatedCluster::key("a"), .action = Put{}};
    (void)world.inner->write({&create, 1});
    world.network.deliver_everything();
    EXPECT_EQ(world.stored("a"), (Item{{"x", 1}}));
}

TEST(FaultyStore, only_what_is_due_is_delivered) {
    SimulatedCluster world{{.request_late = 1}};
    for (int i = 0; i < 40; ++i) (void)world.put(std::to_string(i), i);
    const std::size_t arrived = world.network.counts().deliveries;
    world.network.set_rates({});
    const std::size_t due = world.network.deliver_all_due();
    world.clock.advance(FaultTimes{}.delay_max);
    const std::size_t later = world.network.deliver_all_due();
    EXPECT_GT(arrived, 0u);
    EXPECT_GT(later, 0u);
    EXPECT_EQ(arrived + due + later, 40u);
    EXPECT_EQ(world.network.deliver_everything(), 0u);
}

TEST(FaultyStore, any_request_of_the_past_may_come_back) {
    SimulatedCluster world{{.any_past_request = 1}};
    EXPECT_TRUE(applied(world.put("a", 1)));
    world.erase_really("a");
    world.clock.advance(24h);
    const Key unrelated = SimulatedCluster::key("b");
    (void)world.faulty.read({&unrelated, 1});
    EXPECT_TRUE(world.stored("a"));
    EXPECT_EQ(world.network.counts().any_past_request, 1u);
}

TEST(FaultyStore, an_error_is_in_doubt_with_or_without_effect) {
    SimulatedCluster without{{.error_without_effect = 1}};
    EXPECT_TRUE(in_doubt(without.put("a", 1)));
    EXPECT_FALSE(without.stored("a"));
    SimulatedCluster with{{.error_with_effect = 1}};
    EXPECT_TRUE(in_doubt(with.put("a", 1)));
    EXPECT_TRUE(with.stored("a"));
}

TEST(FaultyStore, an_answer_may_be_that_of_the_second_delivery) {
    SimulatedCluster world{{.answered_again = 1}};
    EXPECT_FALSE(applied(world.put("a", 1, !item_exists()))) << "the first one is there already";
    EXPECT_TRUE(world.stored("a"));
    EXPECT_EQ(world.network.counts().answered_again, 1u);
}

TEST(FaultyStore, a_throttled_request_certainly_has_no_effect_and_the_burst_ends) {
    SimulatedCluster world{{.delivered_again = 1, .throttled = 1}};
    const WriteAnswer answer = world.put("a", 1);
    const auto* failure = std::get_if<Failure>(&answer);
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->kind, ErrorKind::unavailable);
    EXPECT_FALSE(failure->in_doubt);
    EXPECT_EQ(world.network.deliver_everything(), 0u);
    EXPECT_FALSE(world.stored("a"));
    EXPECT_THROW((void)world.faulty.scan({.table = "notes"}), UnavailableError);
    world.network.set_rates({});
    world.clock.advance(FaultTimes{}.throttle_max + 1us);
    EXPECT_TRUE(applied(world.put("a", 1)));
}

TEST(FaultyStore, reads_of_every_kind_can_fail) {
    SimulatedCluster world{{.read_failed = 1}};
    const Key key = SimulatedCluster::key("a");
    EXPECT_THROW((void)world.faulty.read({&key, 1}), UnavailableError);
    EXPECT_THROW((void)world.faulty.query({.table = "numbers", .partition = "a"}), UnavailableError);
    EXPECT_THROW((void)world.faulty.scan({.table = "notes"}), UnavailableError);
    EXPECT_THROW((void)world.faulty.changes("notes", 0, 1), UnavailableError);
    EXPECT_EQ(world.network.counts().read_failed, 4u);
}

TEST(FaultyStore, slowness_only_takes_time) {
    SimulatedCluster world{{.slow_request = 1, .slow_answer = 1}};
    const Time before = world.clock.now();
    EXPECT_TRUE(applied(world.put("a", 1)));
    EXPECT_GT(world.clock.now(), before);
    EXPECT_LE(world.clock.now() - before, 2 * FaultTimes{}.latency_max);
}

TEST(FaultyStore, small_pages_hold_0_to_3_records_and_empty_ones_go_on) {
    SimulatedCluster world{{.small_page = 1}};
    for (int i = 0; i < 100; ++i) {
        const Write write{.key = {.table = "numbers", .partition = "p", .sort = i}, .action = Put{}};
        (void)world.inner->write({&write, 1});
    }
    std::array<int, 4> sizes{};
    Query query{.table = "numbers", .partition = "p"};
    for (;;) {
        const Page page = world.faulty.query(query);
        ASSERT_LE(page.records.size(), 3u);
        ++sizes[page.records.size()];
        EXPECT_TRUE(page.next || !page.records.empty());
        if (!page.next) break;
        query.next = page.next;
    }
    for (const int pages : sizes) EXPECT_GT(pages, 0);
    EXPECT_EQ(sizes[1] + 2 * sizes[2] + 3 * sizes[3], 100);
}

TEST(FaultyStore, a_disguise_hides_what_the_store_can_do) {
    SimulatedCluster world{{}, {.item_bytes_max = 100, .atomic_writes_max = 0, .no_changes = true}};
    EXPECT_EQ(world.faulty.capabilities().item_bytes_max, 100u);
    EXPECT_EQ(world.faulty.capabilities().atomic_writes_max, 0u);
    EXPECT_FALSE(world.faulty.capabilities().ordered_changes);
    const Write write{.key = SimulatedCluster::key("a"), .action = Put{{{"x", std::string(200, 'x')}}}};
    EXPECT_THROW((void)world.faulty.write({&write, 1}), InvalidError);
}

TEST(FaultyStore, an_atomic_batch_has_one_fate) {
    SimulatedCluster world{{.request_lost = 0.3, .answer_lost = 0.3}};
    std::array<int, 2> seen{};
    for (int i = 0; i < 50; ++i) {
        const std::string a = "a" + std::to_string(i);
        const std::string b = "b" + std::to_string(i);
        const std::vector<Write> writes{{.key = SimulatedCluster::key(a), .action = Put{}},
                                        {.key = SimulatedCluster::key(b), .action = Put{}}};
        (void)world.faulty.write_atomically(writes);
        EXPECT_EQ(world.stored(a).has_value(), world.stored(b).has_value());
        ++seen[world.stored(a).has_value()];
    }
    EXPECT_GT(seen[0], 0);
    EXPECT_GT(seen[1], 0);
}

TEST(FaultyStore, the_writes_of_a_batch_are_requests_of_their_own_in_any_order) {
    std::array<int, 2> first{};
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        SimulatedCluster world{{}, {}, seed};
        std::vector<std::string> order;
        world.faulty.on_request([&](const RequestInfo& info) {
            if (info.moment == RequestInfo::Moment::after) order.push_back(info.writes.front().key.partition);
            return Next::proceed;
        });
        const std::vector<Write> writes{{.key = SimulatedCluster::key("a"), .action = Put{}},
                                        {.key = SimulatedCluster::key("b"), .action = Put{}}};
        (void)world.faulty.write(writes);
        ASSERT_EQ(order.size(), 2u);
        ++first[order.front() == "b"];
    }
    EXPECT_GT(first[0], 0);
    EXPECT_GT(first[1], 0);
}

TEST(FaultyStore, a_process_can_be_stopped_at_every_request_before_and_after_it) {
    static_assert(!std::is_base_of_v<std::exception, ProcessStopped>);
    const std::vector<Write> writes{{.key = SimulatedCluster::key("a"), .action = Put{}},
                                    {.key = SimulatedCluster::key("b"), .action = Put{}},
                                    {.key = SimulatedCluster::key("c"), .action = Put{}}};
    for (std::uint64_t at = 1; at <= writes.size(); ++at) {
        for (const auto moment : {RequestInfo::Moment::before, RequestInfo::Moment::after}) {
            SimulatedCluster world;
            world.faulty.on_request([&](const RequestInfo& info) {
                return info.number == at && info.moment == moment ? Next::stop : Next::proceed;
            });
            try {
                (void)world.faulty.write(writes);
                ADD_FAILURE() << "the process was not stopped";
            } catch (const ProcessStopped& stopped) {
                EXPECT_EQ(stopped.request, at);
            }
            const std::size_t done = world.inner->scan({.table = "notes"}).records.size();
            EXPECT_EQ(done, moment == RequestInfo::Moment::before ? at - 1 : at);
        }
    }
}

/// What a caller sees and what the clock shows, over a few hundred calls under all faults.
std::vector<std::string> trace(std::uint64_t seed, FaultCounts* counts = nullptr) {
    SimulatedCluster world{{.request_lost = 0.05,
                            .answer_lost = 0.05,
                            .request_late = 0.05,
                            .delivered_again = 0.1,
                            .any_past_request = 0.05,
                            .error_without_effect = 0.05,
                            .error_with_effect = 0.05,
                            .answered_again = 0.05,
                            .slow_request = 0.2,
                            .slow_answer = 0.2,
                            .throttled = 0.02,
                            .read_failed = 0.05,
                            .small_page = 0.5},
                           {},
                           seed};
    std::vector<std::string> lines;
    for (int i = 0; i < 400; ++i) {
        std::string line;
        try {
            const WriteAnswer answer = world.put(std::to_string(i % 10), i);
            line = std::to_string(answer.index()) + (in_doubt(answer) ? "?" : "");
            line += " " + std::to_string(world.faulty.scan({.table = "notes"}).records.size());
        } catch (const UnavailableError& error) {
            line += error.what();
        }
        lines.push_back(line + " " + to_string(world.clock.now()));
    }
    if (counts != nullptr) *counts = world.network.counts();
    return lines;
}

TEST(FaultyStore, one_seed_gives_one_run) {
    EXPECT_EQ(trace(7), trace(7));
    EXPECT_NE(trace(7), trace(8));
}

TEST(FaultyStore, every_fault_comes_to_pass_and_is_counted) {
    FaultCounts counts;
    (void)trace(42, &counts);
    EXPECT_GT(counts.requests, 700u);
    for (const std::uint64_t count :
         {counts.request_lost, counts.answer_lost, counts.request_late, counts.delivered_again, counts.any_past_request,
          counts.error_without_effect, counts.error_with_effect, counts.answered_again, counts.slow_request,
          counts.slow_answer, counts.throttled, counts.read_failed, counts.small_page, counts.empty_page,
          counts.deliveries}) {
        EXPECT_GT(count, 0u);
    }
}

}  // namespace
}  // namespace varve::testing
