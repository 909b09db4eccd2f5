#include "failing_new.h"
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

template <class P, class Dying>
void let_each_allocation_fail(Dying& dying) {
    for (const FailingNew::Which which : {FailingNew::Which::one, FailingNew::Which::all_after}) {
        long n = 1;
        for (bool has_failed = true; has_failed && !::testing::Test::HasFailure(); ++n) {
            SCOPED_TRACE("allocation " + std::to_string(n));
            const std::shared_ptr<store::ItemStore> on = open("memory:");
            dying.begin(on);
            {
                Application first{on, dying.options()};
                detail::Follower follower{first, dying.idle, dying.template consumer<P>()};
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

TEST_F(DyingReaction, happens_once_whichever_allocation_fails) {
    let_each_allocation_fail<Checkout>(*this);
}

TEST_F(DyingTimers, each_fires_once_whichever_allocation_fails) {
    let_each_allocation_fail<Reminder>(*this);
}

}  // namespace
}  // namespace varve
