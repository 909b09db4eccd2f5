#include <varve/varve.h>

#include <cstdint>
#include <cstdio>
#include <variant>

namespace {

struct Counted {
    std::int64_t by = 0;
};
struct Count {
    std::int64_t by = 0;
};

struct Counter {
    static constexpr std::string_view name = "counter";
    using Event = std::variant<Counted>;

    std::int64_t total = 0;

    void apply(const Counted& e) { total += e.by; }
    varve::Decision<Event> decide(const Count& c) const { return Counted{c.by}; }
};

struct Total {
    static constexpr std::string_view table = "totals";
    std::int64_t counted = 0;
};

struct ProjectTotal {
    void operator()(const Counted& e, varve::ProjectionContext& context) const {
        context.rows<Total>().update(context.aggregate_id(), [&](Total& row) { row.counted += e.by; });
    }
};

/// What a user's first program does, by every layer of the installed library.
bool count_on(const char* url) {
    varve::Application application{varve::open(url)};
    application.project<Counter>(ProjectTotal{});
    if (!application.execute<Counter>("left", Count{2})) return false;
    const auto both = application.transact([](varve::Transaction& tx) {
        tx.execute<Counter>("left", Count{3});
        tx.execute<Counter>("right", Count{4});
    });
    if (!both) return false;
    const auto rows = application.rows<Total>();
    return rows.get("left")->counted == 5 && rows.get("right")->counted == 4;
}

}  // namespace

/// consumer URL…: counts on each store.
int main(int count, char** arguments) {
    try {
        for (int i = 1; i < count; ++i) {
            if (!count_on(arguments[i])) {
                std::fprintf(stderr, "counted wrongly on %s\n", arguments[i]);
                return 1;
            }
            std::printf("counted on %s\n", arguments[i]);
        }
    } catch (const varve::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
