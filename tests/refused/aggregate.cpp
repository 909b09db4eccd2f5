#include <varve/testing/given.h>
#include <varve/varve.h>

#include <set>

// Each case but FINE must be refused in a sentence (CMakeLists.txt has them).

struct Open {};
struct Close {};
struct Stranger {};
template <class T>
struct Changed {
    T to;
};
struct Opened {};
namespace other {
struct Opened {};
}  // namespace other
struct Closed {
#if defined(WITH_EVENT_NAMED_BY_FUNCTION)
    static std::string_view name() {
        return "closed";
    }
#elif defined(WITH_SET_IN_EVENT)
    std::set<int> field;
#elif defined(WITHOUT_UPCAST)
    struct Previous {};
#elif defined(WITH_UPCAST_TO_A_STRANGER)
    struct Previous {};
    static std::vector<std::variant<Opened, Stranger>> upcast(const Previous&) {
        return {Stranger{}};
    }
#elif defined(WITH_SET_IN_PREVIOUS)
    struct Previous {
        std::set<int> field;
    };
    static Closed upcast(const Previous&) {
        return {};
    }
#else
    struct Previous {
        int why = 0;
    };
    static std::vector<std::variant<Opened, Closed>> upcast(const Previous&) {
        return {Closed{}, Opened{}};
    }
#endif
};

struct Account {
#if defined(WITH_A_FIELD_CALLED_NAME)
    std::string name;
#elif defined(WITH_NAME_BY_FUNCTION)
    static std::string_view name() {
        return "account";
    }
#elif !defined(WITHOUT_NAME)
    static constexpr std::string_view name = "account";
#endif
#if defined(WITHOUT_DEFAULT)
    explicit Account(int) {}
#endif
#if defined(WITH_EVENT_NO_VARIANT)
    using Event = Opened;
#elif defined(WITH_EVENTS_OF_ONE_NAME)
    using Event = std::variant<Opened, other::Opened>;
#elif defined(WITH_EVENT_TWICE)
    using Event = std::variant<Opened, Closed, Opened>;
#elif defined(WITH_TEMPLATE_EVENT)
    using Event = std::variant<Opened, Changed<int>>;
#elif !defined(WITHOUT_EVENTS)
    using Event = std::variant<Opened, Closed>;
#endif
#if defined(WITH_SNAPSHOTS_NEVER)
    static constexpr varve::SnapshotPolicy snapshots{};
#elif defined(WITH_SNAPSHOTS_AS_A_FIELD)
    varve::SnapshotPolicy snapshots{.every_slots = 10};
#elif defined(WITH_SNAPSHOTS_OF_PRIVATE_DATA)
    static constexpr varve::SnapshotPolicy snapshots{.every_slots = 10};

  private:
    int hidden_ = 0;

  public:
#endif
    void apply(const Opened&) {}
    void apply(const other::Opened&) {}
    void apply(const Changed<int>&) {}
#if !defined(WITHOUT_APPLY) && !defined(LOADED_WITHOUT_APPLY)
    void apply(const Closed&) {}
#endif
    varve::Decision<std::variant<Opened, Closed>> decide(const Open&) const {
        return Opened{};
    }
};

#if defined(LOADED_WITHOUT_APPLY)
varve::Version load(varve::Application& application) {
    return application.load<Account>("alice").version;
}
#elif defined(GIVEN_A_STRANGER)
void given() {
    static_cast<void>(varve::testing::given<Account>(Opened{}, Stranger{}));
}
#elif defined(GIVEN_A_STRANGE_COMMAND)
void given() {
    varve::testing::given<Account>(Opened{}).when(Stranger{});
}
#else
#if defined(WITHOUT_DECIDE)
using Command = Close;
#else
using Command = Open;
#endif
varve::Outcome execute(varve::Application& application) {
    return application.execute<Account>("alice", Command{});
}
#endif
