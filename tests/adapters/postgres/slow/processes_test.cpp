// Processes share a PostgreSQL server, and they, their sessions or the server are killed while they work.

#include "../server.h"
#include "adapters/on_servers/bank_books.h"
#include "adapters/on_servers/list_append_run.h"

namespace varve::postgres {
namespace {

using on_servers::demo_plan;
using on_servers::expect_sound;

constexpr std::size_t transfers = 600;

/// Calls `act` that many times while the plan's transfers go on.
class Spread {
  public:
    Spread(bank::DemoPlan& plan, std::size_t times, std::function<void()> act)
        : times_(times), act_(std::move(act)), total_(plan.load.transfers) {
        plan.watch = [this](std::size_t ended) {
            if (done_ == times_ || ended < (done_ + 1) * total_ / (times_ + 1)) return;
            ++done_;
            act_();
        };
    }
    ~Spread() { EXPECT_EQ(done_, times_); }
    Spread(const Spread&) = delete;
    Spread& operator=(const Spread&) = delete;

  private:
    const std::size_t times_;
    const std::function<void()> act_;
    const std::size_t total_;
    std::size_t done_ = 0;
};

TEST(Kill, twelve_killed_processes_lose_nothing) {
    for (const std::string strategy : {"automatic", "protocol"}) {
        const std::string url = fresh_url(shared_server(), "&connections=4");
        bank::DemoPlan plan = demo_plan(url, transfers, 12);
        plan.strategy = strategy;
        const bank::DemoResult result = run_demo(plan);
        EXPECT_EQ(result.natively, strategy == "automatic");
        EXPECT_EQ(result.kills, 12u);
        EXPECT_GT(result.cut_off.total(), 0u);
        expect_sound(result, url);
    }
}

TEST(Kill, sessions_that_are_ended_lose_nothing) {
    Server server;  // nobody else's sessions are to be ended
    bank::DemoPlan plan = demo_plan(server.url() + "?connections=4", transfers, 0);
    const Spread spread{plan, 20, [&] {
                            server.client().run(
                                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                                "'varve' ORDER BY random() LIMIT 5");
                        }};
    expect_sound(run_demo(plan), plan.store);
}

TEST(Kill, a_session_that_is_killed_takes_all_others_with_it_and_nothing_is_lost) {
    Server server;
    bank::DemoPlan plan = demo_plan(server.url() + "?connections=4", transfers, 0);
    const Spread spread{plan, 3, [&] {
                            const auto sessions = server.client().run(
                                "SELECT pid FROM pg_stat_activity WHERE application_name = 'varve' LIMIT 1");
                            EXPECT_FALSE(sessions.empty());
                            // The server's other processes end themselves, and it recovers.
                            for (const std::string& session : sessions) kill(std::stoi(session), SIGKILL);
                        }};
    expect_sound(run_demo(plan), plan.store);
}

TEST(Kill, a_server_that_is_killed_and_started_again_has_every_acknowledged_transfer) {
    Server server;
    bank::DemoPlan plan = demo_plan(server.url() + "?connections=4", transfers, 0);
    const Spread spread{plan, 3, [&] {
                            server.stop(SIGKILL);
                            server.start_again();
                        }};
    expect_sound(run_demo(plan), plan.store);
}

TEST(Processes, sixteen_of_them_share_a_server) {
    Server server{{"max_connections=150"}};
    bank::DemoPlan plan = demo_plan(server.url() + "?connections=2", transfers, 4);
    plan.processes = 16;
    plan.load.workers = 2;
    const bank::DemoResult result = run_demo(plan);
    EXPECT_EQ(result.kills, 4u);
    expect_sound(result, plan.store);
}

TEST(ListAppend, by_four_processes_of_which_some_are_killed_is_strictly_serializable) {
    on_servers::run_list_append(fresh_url(shared_server(), "&connections=4"));
}

}  // namespace
}  // namespace varve::postgres
