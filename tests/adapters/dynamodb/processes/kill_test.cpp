// The bank's processes are killed while they pay, and so is the server; then the books are checked.

#include "../each_server.h"
#include "adapters/on_servers/bank_books.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

class Kill : public EachServer {
  protected:
    void SetUp() override { server_ = server_or_skip(GetParam(), (folder_.path() / "store").string()); }
    void TearDown() override { server_.reset(); }

    bank::DemoPlan plan(std::size_t kills) const {
        return on_servers::demo_plan(server_->url("bank"), transfers(), kills);
    }
    void expect_sound(const bank::DemoResult& result) const { on_servers::expect_sound(result, server_->url("bank")); }
    /// dynalite on files is slow.
    static std::size_t transfers() { return GetParam() == LocalServer::Kind::dynoxide ? 500 : 300; }

    const TemporaryFolder folder_{"kill"};
};

INSTANTIATE_TEST_SUITE_P(Each, Kill, each_kind(), name_of_kind);

TEST_P(Kill, twelve_killed_processes_lose_nothing) {
    const bank::DemoResult result = run_demo(plan(12));
    EXPECT_EQ(result.kills, 12u);
    EXPECT_GT(result.cut_off.total(), 0u);
    expect_sound(result);
}

TEST_P(Kill, a_server_that_is_killed_and_started_again_on_its_files_has_every_acknowledged_transfer) {
    bank::DemoPlan plan = this->plan(0);
    std::size_t killed = 0;
    constexpr std::size_t kills = 3;
    plan.watch = [&](std::size_t ended) {
        if (killed == kills || ended < (killed + 1) * transfers() / (kills + 1)) return;
        ++killed;
        server_->kill_now();
        server_->start_again();
    };
    const bank::DemoResult result = run_demo(plan);
    EXPECT_EQ(killed, kills);
    expect_sound(result);
}

}  // namespace
}  // namespace varve::dynamodb
