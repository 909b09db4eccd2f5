// What processes cost in requests to the store, with what they touch known.

#include "commands/timers.h"
#include "support/lending.h"
#include "support/one_by_one_store.h"
#include "support/reacting.h"

#include <varve/testing/counting_store.h>
#include <varve/testing/later.h>

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace lending;

struct Costs : Reacts {
    std::shared_ptr<testing::CountingStore> counting;
    testing::Later later;

    ApplicationOptions options() {
        ApplicationOptions options = Reacts::options();
        options.executor = &later;
        return options;
    }

    void begin(const std::shared_ptr<store::ItemStore>& inner) {
        counting = std::make_shared<testing::CountingStore>(inner);
    }
    /// "2 trips, 3 writes": of one turn, and of what is finalised after it.
    std::string turn(detail::Follower& follower) {
        counting->reset();
        follower.turn({});
        later.drain();
        const testing::RequestCounts counts = counting->counts();
        return std::to_string(counts.round_trips()) + " trips, " + std::to_string(counts.writes) + " writes";
    }
};

TEST_F(Costs, of_a_reaction_with_a_command_an_event_and_an_effect) {
    begin(open("memory:"));
    Application live{counting, options()};
    live.execute<Stock>("p", Fill{100}).value();
    live.execute<Purchase>("o0", Place{"p", 1}).value();
    detail::Follower follower{live, idle, consumer<Checkout>()};
    follower.turn({});
    follower.turn({});
    const std::string at_rest = turn(follower);
    for (int i = 1; i < 4; ++i) {
        live.execute<Purchase>("o" + std::to_string(i), Place{"p", 1}).value();
        turn(follower);
    }
    live.execute<Purchase>("o9", Place{"p", 1}).value();
    EXPECT_EQ(at_rest, "1 trips, 0 writes");
    // Looks for events, reads the checkpoint and the new instance, writes; looks until there is nothing more. It writes
    // the command's event, its own with the effect, the input's id and the checkpoint.
    EXPECT_EQ(turn(follower), "6 trips, 4 writes");
}

TEST_F(Costs, of_a_timer_that_is_set_and_fires) {
    begin(open("memory:"));
    Application live{counting, options()};
    detail::Follower follower{live, idle, consumer<Reminder>()};
    for (const char* book : {"a", "b", "c"}) {
        live.execute<Book>(book, Lend{3600}).value();
        follower.turn({});
    }
    live.execute<Book>("d", Lend{3600}).value();
    EXPECT_EQ(turn(follower), "6 trips, 5 writes")
        << "its own event, the timer, the input's id and the checkpoint; the "
           "timer's bucket is checked";
    clock.advance(2s);
    EXPECT_EQ(turn(follower), "2 trips, 0 writes") << "it looks for timers once a second";
    clock.advance(2h);
    // Each of the four: it is read, as is the bucket of the one that it sets; and written, with the event, its id, and
    // that one. Then its bucket is closed: two writes, a validated read and one write to finalise.
    EXPECT_EQ(turn(follower), "22 trips, 23 writes");
}

}  // namespace
}  // namespace varve
