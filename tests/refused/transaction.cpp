#include <varve/rows/indexes.h>
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

struct Indexed {
    static constexpr std::string_view table = "indexed";
    std::vector<int> list;
    int number = 0;
    int other = 0;
#if defined(WITH_INDEXES_OF_ANOTHER_KIND)
    using Indexes = int;
#elif defined(WITH_AN_INDEX_ON_A_LIST)
    using Indexes = varve::Indexes<varve::Index<&Indexed::list> >;
#elif defined(WITH_TWO_INDEXES_ON_A_FIELD)
    using Indexes = varve::Indexes<varve::Index<&Indexed::number>, varve::Unique<&Indexed::number> >;
#else
    using Indexes = varve::Indexes<varve::Index<&Indexed::number> >;
#endif
};

struct Projection {
#if defined(PROJECTING_NOTHING) || defined(FOLLOWING_NOTHING)
    void operator()(const Stranger&, varve::ProjectionContext&) const {}
#elif defined(PROJECTING_AS_NON_CONST) || defined(FOLLOWING_AS_NON_CONST)
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
#elif defined(WITH_INDEXES_OF_ANOTHER_KIND) || defined(WITH_AN_INDEX_ON_A_LIST) || defined(WITH_TWO_INDEXES_ON_A_FIELD)
bool read(varve::Application& application) {
    return application.rows<Indexed>().get("alice").has_value();
}
#elif defined(FINDING_BY_NO_INDEX)
bool read(varve::Application& application) {
    return application.rows<Indexed>().where<&Indexed::other>(1).rows.empty();
}
#elif defined(FINDING_ONE_OF_MANY)
bool read(varve::Application& application) {
    return application.rows<Indexed>().find<&Indexed::number>(1).has_value();
}
#elif defined(PROJECTING_NOTHING) || defined(PROJECTING_AS_NON_CONST)
void project(varve::Application& application) {
    application.project<Account>(Projection{});
}
#elif defined(FOLLOWING_NOTHING) || defined(FOLLOWING_AS_NON_CONST)
void follow(varve::Application& application) {
    application.follow<Account>(Projection{});
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
    application.follow<Account>(Projection{});
    return application.transact(
        [](varve::Transaction& tx) { tx.rows<Row>().update("alice", [](Row& row) { row = {}; }); });
#endif
}
#endif
