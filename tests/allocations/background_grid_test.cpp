// Deliveries, reactions and timers, of which each allocation fails once.

#include "failing_new.h"
#include "support/delivering.h"
#include "support/sanitized.h"
#include "support/timing.h"

#include <exception>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace varve {
namespace {

/// Who goes on after a failure, as the loop does in the background.
template <class Dying>
void work_through(Dying& dying, detail::Follower& follower) {
    for (int i = 0; i < 3; ++i) {
        try {
            dying.work(follower);
            return;
        } catch (const std::exception&) {
        }
    }
}

template <class Dying, class MakeConsumer>
void let_each_allocation_fail(Dying& dying, MakeConsumer make_consumer) {
    constexpr long apart = is_sanitized ? 5 : 1;
    for (const FailingNew::Which which : {FailingNew::Which::one, FailingNew::Which::all_after}) {
        long n = 1;
        for (bool has_failed = true; has_failed && !::testing::Test::HasFailure(); n += apart) {
            SCOPED_TRACE("allocation " + std::to_string(n));
            const std::shared_ptr<store::ItemStore> on = open("memory:");
            dying.begin(on);
            {
                Application first{on, dying.options()};
                detail::Follower follower{first, dying.idle, make_consumer()};
                FailingNew failing{n, which};
                work_through(dying, follower);
                failing.stop();
                has_failed = failing.has_failed();
                work_through(dying, follower);
            }
            dying.expect_all_of_it(on);
        }
        EXPECT_GT(n, 100) << "hardly anything was allocated";
    }
}

TEST_F(DyingDelivery, arrives_in_order_whichever_allocation_fails) {
    let_each_allocation_fail(*this, [this] { return consumer(); });
}

TEST_F(DyingReaction, happens_once_whichever_allocation_fails) {
    let_each_allocation_fail(*this, [this] { return consumer<Checkout>(); });
}

TEST_F(DyingTimers, each_fires_once_whichever_allocation_fails) {
    let_each_allocation_fail(*this, [this] { return consumer<Reminder>(); });
}

}  // namespace
}  // namespace varve
