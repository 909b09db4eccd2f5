#include "support/account.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace varve {
namespace {

using account::Balance;
using account::Deposit;
using account::Deposited;

struct Thank {
    std::string whom;
};
struct Audit {
    std::int64_t cents = 0;
    std::string by;
};

/// Says thank you for large gifts; refuses those of nothing.
struct Box {
    static constexpr std::string_view name = "box";
    using Event = std::variant<Deposited>;

    std::int64_t cents = 0;

    void apply(const Deposited& e) { cents += e.cents; }
    Decision<Event> decide(const Deposit& c) const {
        if (c.cents == 0) return reject("nothing");
        Decision<Event> decision{Deposited{c.cents}};
        return c.cents < 100 ? std::move(decision) : std::move(decision).effect(Thank{"the donor"});
    }
};

struct AuditLarge {
    void operator()(const Deposited& e, ProjectionContext& context) const {
        const Metadata& metadata = context.metadata();
        if (e.cents >= 1000) context.effect(Audit{e.cents, metadata.headers.at("user") + " " + metadata.correlation});
    }
};

struct Effects : ::testing::Test {
    Application app{open("memory:")};

    std::vector<std::string> of(const Receipt& receipt) {
        std::vector<std::string> found;
        for (const Effect& one : app.events().effects(receipt.primary->stream, receipt.primary->version))
            found.push_back(one.effect.type + one.effect.data);
        return found;
    }
};

using Texts = std::vector<std::string>;

TEST_F(Effects, are_decided_by_execute_and_by_projections_as_by_a_transaction) {
    app.project<Box>(AuditLarge{});
    const CommandOptions by_ann{.command_id = "gift-1", .correlation = "party", .headers = {{"user", "ann"}}};
    EXPECT_EQ(of(app.execute<Box>("red", Deposit{5}).value()), Texts{});
    EXPECT_EQ(of(app.execute<Box>("red", Deposit{100}).value()), Texts{R"(Thank{"whom":"the donor"})"});
    const Texts both{R"(Audit{"cents":1000,"by":"ann party"})", R"(Thank{"whom":"the donor"})"};
    EXPECT_EQ(of(app.execute<Box>("red", Deposit{1000}, by_ann).value()), both);
    EXPECT_EQ(app.execute<Box>("red", Deposit{0}).error().code, "nothing");

    const Outcome two = app.transact([](Transaction& tx) {
        tx.execute<Box>("red", Deposit{100});
        tx.effect(Thank{"all"});
        tx.execute<Box>("blue", Deposit{200});
    });
    const Texts three{R"(Thank{"whom":"the donor"})", R"(Thank{"whom":"all"})", R"(Thank{"whom":"the donor"})"};
    EXPECT_EQ(of(*two), three);
}

TEST_F(Effects, of_commands_that_are_written_together_are_all_there) {
    std::vector<std::future<Outcome>> futures;
    for (int i = 0; i < 20; ++i) futures.push_back(app.submit<Box>("red", Deposit{i % 2 == 0 ? 100 : 0}));
    std::map<Version, std::size_t> slots;
    std::size_t accepted = 0;
    for (auto& future : futures) {
        if (const Outcome outcome = future.get()) {
            ++accepted;
            slots[outcome->primary->version] = of(*outcome).size();
        }
    }
    EXPECT_EQ(accepted, 10u);
    std::size_t effects = 0;
    for (const auto& [version, count] : slots) effects += count;
    EXPECT_EQ(effects, 10u);
}

TEST_F(Effects, of_a_rejection_are_refused) {
    EXPECT_THROW(static_cast<void>(Decision<Box::Event>{reject("no")}.effect(Thank{"nobody"})), InvalidError);
}

}  // namespace
}  // namespace varve
