#include <varve/varve.h>

#include <set>

// Each case but FINE must be refused in a sentence (CMakeLists.txt has them).

struct Open {};
struct Opened {};
struct Stranger {};
template <class T>
struct Changed {
    T to;
};
struct Account {
    static constexpr std::string_view name = "account";
    using Event = std::variant<Opened>;
    void apply(const Opened&) {}
    varve::Decision<Event> decide(const Open&) const { return Opened{}; }
};

struct Row {
#if defined(WITH_A_FIELD_CALLED_TABLE)
    std::string table = "rows";
#elif !defined(WITHOUT_A_TABLE) && !defined(ROWS_READ_WITHOUT_A_TABLE)
    static constexpr std::string_view table = "rows";
#endif
#if defined(WITH_A_FIELD_CALLED_SORTED)
    bool sorted = true;
#endif
#if defined(WITH_A_SET_IN_A_ROW)
    std::set<int> field;
#else
    int field = 0;
#endif
};

struct Projection {
#if defined(PROJECTING_NOTHING)
    void operator()(const Stranger&, varve::ProjectionContext&) const {}
#elif defined(PROJECTING_AS_NON_CONST)
    void operator()(const Opened&, varve::ProjectionContext&) {}
#else
    void operator()(const Opened&, varve::ProjectionContext& context) const {
        context.effect(Stranger{});
    }
#endif
};

#if defined(ROWS_READ_WITHOUT_A_TABLE)
bool read(varve::Application& application) {
    return application.rows<Row>().get("alice").has_value();
}
#elif defined(PROJECTING_NOTHING) || defined(PROJECTING_AS_NON_CONST)
void project(varve::Application& application) {
    application.project<Account>(Projection{});
}
#else
varve::Outcome transact(varve::Application& application) {
#if defined(BY_VALUE)
    return application.transact([](varve::Transaction) {});
#elif defined(RETURNING_A_REJECTION)
    return application.transact([](varve::Transaction&) { return varve::reject("no"); });
#elif defined(WITH_A_TEMPLATE_EFFECT)
    return application.transact([](varve::Transaction& tx) { tx.effect(Changed<int>{1}); });
#elif defined(WITH_A_STRANGE_COMMAND)
    return application.transact([](varve::Transaction& tx) { tx.execute<Account>("alice", Stranger{}); });
#else
    application.project<Account>(Projection{});
    return application.transact(
        [](varve::Transaction& tx) { tx.rows<Row>().update("alice", [](Row& row) { row = {}; }); });
#endif
}
#endif
