// Who follows events in PostgreSQL, delivers effects and reacts may die at any of his requests.

#include "../server.h"
#include "adapters/on_servers/added_read_model.h"
#include "support/delivering.h"
#include "support/timing.h"

#include <varve/store/open.h>

#include <cstdint>

#include <gtest/gtest.h>

namespace varve {
namespace {

/// In a schema of its own each time, without a thread that tells others.
template <class Suite>
void run_at_each_request(Suite& suite) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        int at = 1;
        for (bool has_died = true; has_died && !::testing::Test::HasFailure(); ++at)
            has_died = suite.run(open(postgres::fresh_url(postgres::shared_server(), "&notify=off")), at, applies);
        EXPECT_GT(at, 20);
    }
}

TEST_F(DyingDelivery, arrives_in_order_from_PostgreSQL_whoever_dies_at_whatever_request) {
    run_at_each_request(*this);
}

TEST_F(DyingReaction, happens_once_in_PostgreSQL_whoever_dies_at_whatever_request) {
    run_at_each_request(*this);
}

TEST_F(DyingTimers, each_fires_once_in_PostgreSQL_whoever_dies_at_whatever_request) {
    run_at_each_request(*this);
}

TEST(AddedReadModel, comes_up_right_in_PostgreSQL_beside_many_transfers_and_those_who_go_on_with_them) {
    const std::string url = postgres::fresh_url(postgres::shared_server());
    on_servers::add_read_model([&] { return open(url); }, 20'000);
}

}  // namespace
}  // namespace varve
