#include <varve/commands/application.h>
#include <varve/projections/inline_projection.h>

// Must not compile: what an aggregate lacks has to be said by name (as in json.cpp).

struct Opened {};
struct Closed {};
struct Open {};
struct Close {};

struct Account {
#if defined(WITH_A_FIELD_CALLED_NAME)
    std::string name;
#elif !defined(WITHOUT_NAME)
    static constexpr std::string_view name = "account";
#endif
#if defined(WITH_EVENT_NO_VARIANT)
    using Event = Opened;
#else
    using Event = std::variant<Opened, Closed>;
#endif
#if defined(WITH_SNAPSHOTS_NEVER)
    static constexpr varve::SnapshotPolicy snapshots{};
#endif
#if defined(WITH_SNAPSHOTS_OF_PRIVATE_DATA)
    static constexpr varve::SnapshotPolicy snapshots{.every_slots = 10};

  private:
    int hidden_ = 0;

  public:
#endif
    void apply(const Opened&) {}
#if !defined(WITHOUT_APPLY)
    void apply(const Closed&) {}
#endif
    varve::Decision<Event> decide(const Open&) const {
        return Opened{};
    }
};

#if defined(WITHOUT_DECIDE)
using Command = Close;
#else
using Command = Open;
#endif

varve::Outcome execute(varve::Application& application) {
    return application.execute<Account>("alice", Command{});
}

#if defined(WITH_USELESS_PROJECTION)
struct Projection {
    void operator()(int, varve::ProjectionContext&) const {}
};
void project(varve::Application& application) {
    application.project<Account>(Projection{});
}
#endif
