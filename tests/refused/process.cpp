#include <varve/processes/process.h>
#include <varve/processes/schedule.h>
#include <varve/testing/given.h>
#include <varve/varve.h>

#include <set>

// Each case but FINE must be refused in a sentence (CMakeLists.txt has them).

struct Place {};
struct Placed {};
struct Cancelled {};
struct Stranger {};
struct Thing {};
template <class T>
struct Changed {
    T to;
};
struct WithSet {
    std::set<int> field;
};
struct Order {
    static constexpr std::string_view name = "order";
    using Event = std::variant<Placed, Cancelled>;
    void apply(const Placed&) {}
    void apply(const Cancelled&) {}
    varve::Decision<Event> decide(const Place&) const { return Placed{}; }
    varve::Decision<Event> decide(const WithSet&) const { return Placed{}; }
};

struct Overdue {
#if defined(WITH_A_SET_IN_A_TIMER)
    std::set<int> field;
#endif
};
struct Started {};

struct Checkout {
#if !defined(WITHOUT_NAME)
    static constexpr std::string_view name = "checkout";
#endif
    using Event = std::variant<Started>;
#if defined(LISTENING_TO_ONE_AGGREGATE)
    using ListensTo = Order;
#elif defined(LISTENING_TO_A_VARIANT)
    using ListensTo = std::variant<Order>;
#elif defined(LISTENING_TO_NO_AGGREGATE)
    using ListensTo = varve::EventsOf<Order, Thing>;
#elif defined(LISTENING_TO_NO_ONE)
    using ListensTo = varve::EventsOf<>;
#elif !defined(WITHOUT_LISTENS_TO)
    using ListensTo = varve::EventsOf<Order>;
#endif
#if defined(WITH_TIMERS_NO_VARIANT)
    using Timers = Overdue;
#elif defined(WITH_A_TEMPLATE_TIMER)
    using Timers = std::variant<Overdue, Changed<int> >;
#else
    using Timers = std::variant<Overdue>;
#endif
    void apply(const Started&) {}

#if defined(WITH_ON_OF_AN_OBJECT)
    std::optional<std::string> on(const Placed&, const varve::EventContext&) const {
        return "a";
    }
#elif defined(WITH_ON_RETURNING_A_NUMBER)
    static int on(const Placed&, const varve::EventContext&) {
        return 1;
    }
#elif defined(WITH_ON_WITHOUT_CONTEXT)
    static std::optional<std::string> on(const Placed&) {
        return "a";
    }
#elif !defined(WITHOUT_ON) && !defined(LISTENING_TO_NOTHING)
    static std::optional<std::string> on(const Placed&, const varve::EventContext&) {
        return "a";
    }
#endif
#if defined(WITH_REACT_NOT_CONST)
    void react(const Placed&, varve::Reaction&) {}
#elif !defined(WITHOUT_REACT) && !defined(LISTENING_TO_NOTHING)
    void react(const Placed&, varve::Reaction& r) const {
#if defined(GIVING_A_STRANGE_COMMAND)
        r.execute<Order>("o", Stranger{});
#elif defined(GIVING_A_COMMAND_TO_NO_AGGREGATE)
        r.execute<Thing>("o", Place{});
#elif defined(WITH_A_TEMPLATE_EFFECT)
        r.effect(Changed<int>{1});
#elif defined(WITH_A_SET_IN_AN_EFFECT)
        r.effect(WithSet{});
#elif defined(RECORDING_A_SET)
        r.record(WithSet{});
#elif defined(SETTING_A_TEMPLATE_TIMER)
        r.at(r.now(), Changed<int>{1});
#elif defined(SETTING_A_TIMER_WITH_A_SET)
        r.at(r.now(), WithSet{});
#else
        r.execute<Order>("o", Place{});
        r.effect(Stranger{});
#if !defined(WITH_A_SET_IN_A_TIMER)
        r.at(r.now(), Overdue{});
#endif
        r.record(Started{});
#endif
    }
#endif
#if !defined(WITHOUT_REACT_TO_A_TIMER)
    void react(const Overdue&, varve::Reaction&) const {}
#endif
};

#if defined(RUNNING_NO_PROCESS)
void run(varve::Application& application) {
    varve::run<Thing>(application);
}
#elif defined(RUNNING_AN_AGGREGATE)
void run(varve::Application& application) {
    varve::run<Order>(application);
}
#elif defined(SCHEDULING_A_STRANGE_COMMAND)
std::string schedule(varve::Application& application) {
    return varve::schedule<Order>(application, "o", Stranger{}, varve::Time{});
}
#elif defined(SCHEDULING_A_SET)
std::string schedule(varve::Application& application) {
    return varve::schedule<Order>(application, "o", WithSet{}, varve::Time{});
}
#elif defined(SCHEDULING_A_STRANGE_COMMAND_IN_A_TRANSACTION)
std::string schedule(varve::Transaction& tx) {
    return varve::schedule<Order>(tx, "o", Stranger{}, varve::Time{});
}
#elif defined(SCHEDULING_A_SET_IN_A_TRANSACTION)
std::string schedule(varve::Transaction& tx) {
    return varve::schedule<Order>(tx, "o", WithSet{}, varve::Time{});
}
#elif defined(RUNNING_A_STRANGE_COMMAND)
void run(varve::Application& application) {
    varve::run_scheduled<Order, Place, Stranger>(application);
}
#elif defined(RUNNING_A_COMMAND_WITH_A_SET)
void run(varve::Application& application) {
    varve::run_scheduled<Order, Place, WithSet>(application);
}
#elif defined(GIVEN_A_STRANGER)
void given() {
    varve::testing::given<Checkout>().when(Stranger{});
}
#elif defined(GIVEN_AN_EVENT_IT_DOES_NOT_LISTEN_TO)
void given() {
    varve::testing::given<Checkout>().when(Cancelled{});
}
#else
void run(varve::Application& application) {
    varve::run<Checkout>(application);
#if defined(FINE)
    varve::run_scheduled<Order, Place>(application);
    varve::schedule<Order>(application, "o", Place{}, varve::Time{});
    static_cast<void>(varve::testing::given<Checkout>().when(Placed{}));
    static_cast<void>(varve::testing::given<Checkout>().when(Overdue{}));
#endif
}
#endif
