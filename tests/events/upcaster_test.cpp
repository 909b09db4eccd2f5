#include <varve/events/event_store.h>
#include <varve/store/item_store.h>
#include <varve/varve.h>

#include <gtest/gtest.h>

namespace varve {
namespace {

// The same event over the years, as three programs know it: it began with `amount`, which became `cents`, which became
// `minor_units` with a currency.

namespace first {
struct Deposited {
    std::string amount;  // "12.50"
};
}  // namespace first

namespace second {
struct Deposited {
    std::int64_t cents = 0;

    using Previous = first::Deposited;
    static Deposited upcast(const Previous& old) {
        const std::size_t point = old.amount.find('.');
        return {std::stoll(old.amount.substr(0, point)) * 100 + std::stoll(old.amount.substr(point + 1))};
    }
};
}  // namespace second

namespace third {
struct Deposited {
    std::int64_t minor_units = 0;
    std::string currency;

    using Previous = second::Deposited;
    static Deposited upcast(const Previous& old) { return {old.cents, "EUR"}; }
};
}  // namespace third

/// The account as the program of one year knows it.
template <class Deposited>
struct AccountOf {
    static constexpr std::string_view name = "account";
    using Event = std::variant<Deposited>;

    std::vector<Deposited> deposits;

    void apply(const Deposited& e) { deposits.push_back(e); }
    Decision<Event> decide(const Deposited& e) const { return e; }
};

struct Upcaster : ::testing::Test {
    std::shared_ptr<store::ItemStore> store = open("memory:");

    template <class Deposited>
    void deposit(const Deposited& deposited) {
        Application program{store};
        ASSERT_TRUE(program.execute<AccountOf<Deposited>>("alice", deposited));
    }
    template <class Deposited>
    std::vector<Deposited> deposits() {
        Application program{store};
        return program.load<AccountOf<Deposited>>("alice").state.deposits;
    }
    void append(const EventData& event) {
        Application program{store};
        ASSERT_TRUE(program.events().append("account-alice", {event}, Expected::any()));
    }
    template <class Act>
    static std::string corruption_of(Act act) {
        try {
            act();
        } catch (const CorruptionError& error) {
            return error.what();
        }
        ADD_FAILURE() << "no CorruptionError";
        return {};
    }
};

TEST_F(Upcaster, a_renamed_field_is_read_from_what_the_old_program_stored) {
    deposit(first::Deposited{"12.50"});
    const auto read = deposits<second::Deposited>();
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].cents, 1250);
}

TEST_F(Upcaster, three_schemas_in_one_stream_are_all_read_as_the_newest) {
    deposit(first::Deposited{"12.50"});
    deposit(second::Deposited{700});
    deposit(third::Deposited{99, "USD"});
    const auto read = deposits<third::Deposited>();
    ASSERT_EQ(read.size(), 3u);
    EXPECT_EQ(read[0].minor_units, 1250);
    EXPECT_EQ(read[0].currency, "EUR");
    EXPECT_EQ(read[1].minor_units, 700);
    EXPECT_EQ(read[1].currency, "EUR");
    EXPECT_EQ(read[2].minor_units, 99);
    EXPECT_EQ(read[2].currency, "USD");
}

TEST_F(Upcaster, an_old_form_may_be_nested_in_its_event) {
    struct Deposited {
        std::int64_t amount_cents = 0;

        struct Previous {
            std::int64_t cents = 0;
        };
        static Deposited upcast(const Previous& old) { return {old.cents}; }
    };
    static_assert(event_schema<Deposited>() == 2);
    append({"Deposited", 1, R"({"cents":1250})"});
    deposit(Deposited{700});
    const auto read = deposits<Deposited>();
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].amount_cents, 1250);
    EXPECT_EQ(read[1].amount_cents, 700);
}

TEST_F(Upcaster, what_is_stored_stays_as_it_was_written) {
    deposit(first::Deposited{"12.50"});
    deposit(third::Deposited{99, "USD"});
    Application program{store};
    const Stream stream = program.history<AccountOf<third::Deposited>>("alice");
    ASSERT_EQ(stream.events.size(), 2u);
    EXPECT_EQ(stream.events[0].event, (EventData{"Deposited", 1, R"({"amount":"12.50"})"}));
    EXPECT_EQ(stream.events[1].event, (EventData{"Deposited", 3, R"({"minor_units":99,"currency":"USD"})"}));
}

TEST_F(Upcaster, an_event_of_a_newer_program_is_refused_with_both_schemas_named) {
    deposit(third::Deposited{99, "USD"});
    const std::string message = corruption_of([&] { deposits<second::Deposited>(); });
    EXPECT_NE(message.find("its schema is version 3, this program knows versions 1 to 2"), std::string::npos)
        << message;
    EXPECT_NE(message.find("version 1 of stream 'account-alice'"), std::string::npos) << message;
}

TEST_F(Upcaster, an_unknown_event_is_refused_with_the_name_that_was_meant) {
    append({"Deposit", 1, "{}"});
    const std::string message = corruption_of([&] { deposits<second::Deposited>(); });
    EXPECT_NE(message.find("no event of this name (did you mean 'Deposited'?"), std::string::npos) << message;
}

// What was one event came to be two; and one that nobody needs became none.
namespace split {
struct Paid {
    std::int64_t cents = 0;
};
struct Shipped {
    std::string address;
    struct Previous {
        std::string address;
        std::int64_t cents = 0;
    };
    static std::vector<std::variant<Shipped, Paid>> upcast(const Previous& old) {
        return {Paid{old.cents}, Shipped{old.address}};
    }
};
struct Noticed {
    struct Previous {};
    static std::vector<Noticed> upcast(const Previous&) { return {}; }
};
struct Sold {
    struct Previous {
        std::int64_t cents = 0;
    };
    static Paid upcast(const Previous& old) { return {old.cents}; }
};

struct Order {
    static constexpr std::string_view name = "order";
    static constexpr SnapshotPolicy snapshots{.every_slots = 2};
    using Event = std::variant<Paid, Shipped, Noticed, Sold>;

    std::vector<std::string> seen;

    void apply(const Paid& e) { seen.push_back("paid " + std::to_string(e.cents)); }
    void apply(const Shipped& e) { seen.push_back("shipped to " + e.address); }
    void apply(const Noticed&) { seen.push_back("noticed"); }
    void apply(const Sold&) { seen.push_back("sold"); }
    Decision<Event> decide(const Shipped& e) const { return e; }
};
}  // namespace split

TEST_F(Upcaster, an_old_event_may_become_several_others_or_none) {
    using split::Order;
    const std::vector<std::string> expected{"paid 5", "shipped to Rome", "paid 7", "shipped to Oslo"};
    {
        Application program{store};
        const std::vector<EventData> old{
            {"Shipped", 1, R"({"address":"Rome","cents":5})"}, {"Noticed", 1, "{}"}, {"Sold", 1, R"({"cents":7})"}};
        ASSERT_TRUE(program.events().append("order-1", old, Expected::none()));
        ASSERT_TRUE(program.execute<Order>("1", split::Shipped{"Oslo"}));
        EXPECT_EQ(program.load<Order>("1").state.seen, expected);

        const Stream stream = program.history<Order>("1");
        ASSERT_EQ(stream.events.size(), 4u) << "what is stored keeps its number and its indexes";
        std::vector<std::size_t> parts;
        for (const RecordedEvent& event : stream.events) {
            EXPECT_EQ(event.index, event.version == 1 ? parts.size() : 0);
            parts.push_back(EventVariant<Order::Event>::decode(event).size());
        }
        EXPECT_EQ(parts, (std::vector<std::size_t>{2, 0, 1, 1}));
        const auto first = EventVariant<Order::Event>::decode(stream.events[0]);
        EXPECT_EQ(std::get<split::Paid>(first.at(0)).cents, 5);
        EXPECT_EQ(std::get<split::Shipped>(first.at(1)).address, "Rome");
    }
    Application again{store};
    EXPECT_EQ(again.load<Order>("1").state.seen, expected);
    const SnapshotCheck check = again.check_snapshot<Order>("1");
    EXPECT_EQ(check.version, 2);
    EXPECT_TRUE(check.holds());
}

struct Registered {
    std::string name;
};

TEST(EventName, is_the_types_although_a_field_is_called_name) {
    const EventData stored = encode_event(Registered{"Ann"});
    EXPECT_EQ(stored.type, "Registered");
    EXPECT_EQ(stored.data, R"({"name":"Ann"})");
}

TEST_F(Upcaster, old_data_that_the_old_schema_cannot_read_is_refused) {
    append({"Deposited", 1, R"({"amount":12})"});
    const std::string message = corruption_of([&] { deposits<third::Deposited>(); });
    EXPECT_NE(message.find("$.amount: expected a string"), std::string::npos) << message;
}

}  // namespace
}  // namespace varve
