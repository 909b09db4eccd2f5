#include "isolation/adapters.h"
#include "isolation/cases.h"
#include "isolation/table.h"
#include "support/temporary_folder.h"

#include <varve/core/error.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace varve::isolation {
namespace {

/// A store of an adapter in a directory of its own, removed at the end.
class Scratch {
  public:
    std::string url(const Adapter& adapter) const {
        std::string url = adapter.url;
        if (const auto at = url.find('%'); at != std::string::npos) url.replace(at, 1, folder_.path().string());
        return url;
    }

  private:
    const TemporaryFolder folder_{"isolation"};
};

struct Row {
    Adapter adapter;
    Subject subject;
    Way way;
    Case what;

    std::string name() const {
        std::string name = adapter.name + "_" + to_string(subject) + "_" + to_string(way) + "_" + what.name;
        std::ranges::replace(name, '-', '_');
        return name;
    }
    friend std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name(); }
};

std::vector<Row> all_rows() {
    std::vector<Row> rows;
    for (const Adapter& adapter : adapters) {
        for (const Subject subject : {Subject::rows, Subject::streams}) {
            for (const Way way : {Way::native, Way::protocol, Way::reserved}) {
                // Reserving is slow, for it waits; to the store it is the protocol.
                if (way == Way::reserved && adapter.name != adapters.front().name) continue;
                for (const Case& one : cases()) {
                    if (std::ranges::any_of(
                            levels, [&](Level l) { return may_happen(one.name, subject, way, l).has_value(); })) {
                        rows.push_back({adapter, subject, way, one});
                    }
                }
            }
        }
    }
    return rows;
}

class IsolationOf : public ::testing::TestWithParam<Row> {};

struct Tried {
    unsigned schedules = 0;
    std::string found;  ///< the schedule in which it came about, if any
};

Tried try_every_schedule(const Row& row, const Case& what, Level level) {
    const Scratch scratch;
    World world{open(scratch.url(row.adapter)), row.subject, row.way};
    Tried tried;
    every_schedule([&](const Interleaving::Schedule& schedule) -> std::optional<Interleaving::Cut> {
        ++tried.schedules;
        const Scenario scenario = what.make(world, level);
        const Interleaving::Cut cut = world.interleaving().run(scenario.parties, schedule);
        if (!scenario.happened()) return cut;
        tried.found = to_string(schedule);
        return std::nullopt;
    });
    return tried;
}

TEST_P(IsolationOf, is_what_the_table_says) {
    const Row& row = GetParam();
    for (const Level level : levels) {
        const std::optional<bool> may = may_happen(row.what.name, row.subject, row.way, level);
        if (!may) continue;
        const Tried tried = try_every_schedule(row, row.what, level);
        EXPECT_EQ(*may, !tried.found.empty())
            << row.what.name << " at " << to_string(level)
            << (tried.found.empty() ? " did not come about in any of " + std::to_string(tried.schedules) + " schedules"
                                    : " came about: " + tried.found);
        if (*may) continue;
        EXPECT_GT(tried.schedules, 5u) << row.what.name << " at " << to_string(level) << " was hardly tried";
    }
}

TEST(Rejections, rest_on_one_moment) {
    for (const Adapter& adapter : adapters) {
        for (const Subject subject : {Subject::rows, Subject::streams}) {
            for (const Way way : {Way::native, Way::protocol}) {
                const Case& what = read_skew_of_a_rejection();
                const Tried tried = try_every_schedule({adapter, subject, way, what}, what, Level::serializable);
                EXPECT_EQ(tried.found, "") << adapter << " " << to_string(way);
                EXPECT_GT(tried.schedules, 5u);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Adapters, IsolationOf, ::testing::ValuesIn(all_rows()),
                         [](const auto& info) { return info.param.name(); });

TEST(IsolationTable, stands_in_the_documentation_as_it_is_tested) {
    const std::filesystem::path path = VARVE_ISOLATION_TABLE;
    const std::string generated = render_table();
    if (std::getenv("VARVE_WRITE_DOCS") != nullptr) std::ofstream{path} << generated;
    std::ifstream file{path};
    std::ostringstream written;
    written << file.rdbuf();
    EXPECT_EQ(written.str(), generated) << "write it anew: VARVE_WRITE_DOCS=1 ctest -R IsolationTable";
}

}  // namespace
}  // namespace varve::isolation
