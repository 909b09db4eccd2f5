#include "failing_new.h"
#include "support/delivering.h"

#include <exception>

#include <gtest/gtest.h>

namespace varve {
namespace {

/// Who goes on after a failure, as the loop does in the background.
void work_through(DyingDelivery& delivery, detail::Follower& follower) {
    for (int i = 0; i < 3; ++i) {
        try {
            delivery.work(follower);
            return;
        } catch (const std::exception&) {
        }
    }
}

TEST_F(DyingDelivery, arrives_in_order_whichever_allocation_fails) {
    for (const FailingNew::Which which : {FailingNew::Which::one, FailingNew::Which::all_after}) {
        long n = 1;
        for (bool has_failed = true; has_failed && !HasFailure(); ++n) {
            SCOPED_TRACE("allocation " + std::to_string(n));
            const std::shared_ptr<store::ItemStore> on = open("memory:");
            begin(on);
            {
                Application first{on, options()};
                detail::Follower follower{first, idle, consumer()};
                FailingNew failing{n, which};
                work_through(*this, follower);
                failing.stop();
                has_failed = failing.has_failed();
                work_through(*this, follower);
            }
            expect_all_of_it(on);
        }
        EXPECT_GT(n, 100) << "hardly anything was allocated";
    }
}

}  // namespace
}  // namespace varve
