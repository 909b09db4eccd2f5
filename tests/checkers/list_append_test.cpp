#include "list_append.h"

#include "history_json.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include <gtest/gtest.h>
#include <rapidjson/document.h>

namespace varve::checkers {
namespace {

std::string names(const std::vector<Finding>& findings) {
    std::string s;
    for (const Finding& f : findings) s += (s.empty() ? "" : ", ") + std::string(name(f.anomaly));
    return s.empty() ? "ok" : s;
}

std::string explain(const std::vector<Finding>& findings) {
    std::string s;
    for (const Finding& f : findings) {
        s += std::string(name(f.anomaly)) + "\n";
        for (const std::string& line : f.explanation) s += "    " + line + "\n";
    }
    return s;
}

bool has(const std::vector<Finding>& findings, Anomaly anomaly) {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.anomaly == anomaly; });
}

std::string slurp(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ListAppend, hand_made_histories_show_exactly_the_anomaly_they_were_made_for) {
    std::size_t seen = 0;
    for (const auto& file : std::filesystem::directory_iterator(HISTORIES_DIR)) {
        const std::string text = slurp(file.path());
        const auto histories = parse_histories(text);
        rapidjson::Document expected;
        expected.Parse(text.c_str());
        for (rapidjson::SizeType i = 0; i < expected.Size(); ++i, ++seen) {
            std::string want;
            for (const auto& anomaly : expected[i]["expect"].GetArray()) {
                want += (want.empty() ? "" : ", ") + std::string(anomaly.GetString());
            }
            const auto findings = check(histories[i]);
            EXPECT_EQ(names(findings), want.empty() ? "ok" : want)
                << file.path().filename() << ": " << histories[i].name << "\n"
                << explain(findings);
        }
    }
    EXPECT_GE(seen, 35u);
}

TEST(ListAppend, every_anomaly_has_a_hand_made_history) {
    std::string all;
    for (const auto& file : std::filesystem::directory_iterator(HISTORIES_DIR)) all += slurp(file.path());
    for (int a = 0; a <= static_cast<int>(Anomaly::g2_item_realtime); ++a) {
        const std::string quoted = '"' + std::string(name(static_cast<Anomaly>(a))) + '"';
        EXPECT_NE(all.find(quoted), std::string::npos) << quoted;
    }
}

TEST(ListAppend, a_cycle_is_explained_edge_by_edge) {
    const auto findings = check(parse_histories(R"([{"name": "skew", "txns": [
        {"id": "a", "status": "ok", "ops": [["r", "x", []], ["append", "y", 1]]},
        {"id": "b", "status": "ok", "ops": [["r", "y", []], ["append", "x", 2]]}]}])")[0]);
    ASSERT_EQ(names(findings), "G2-item");
    EXPECT_EQ(explain(findings),
              "G2-item\n    a -rw-> b: a read x before the 2 that b appended\n"
              "    b -rw-> a: b read y before the 1 that a appended\n");
    EXPECT_EQ(findings[0].cycle, (std::vector<std::string>{"a", "b"}));
}

TEST(ListAppend, levels_allow_what_their_definition_allows) {
    EXPECT_TRUE(anomalies_allowed(Level::serializable).empty());
    EXPECT_TRUE(anomalies_allowed(Level::snapshot).contains(Anomaly::g2_item));
    EXPECT_FALSE(anomalies_allowed(Level::snapshot).contains(Anomaly::g_nonadjacent));
    EXPECT_TRUE(anomalies_allowed(Level::committed).contains(Anomaly::g_nonadjacent));
    for (const Anomaly never : {Anomaly::g0, Anomaly::g1a, Anomaly::g1b, Anomaly::g1c, Anomaly::g0_realtime,
                                Anomaly::incompatible_order, Anomaly::internal}) {
        EXPECT_FALSE(anomalies_allowed(Level::committed).contains(never)) << name(never);
    }
}

struct Shape {
    std::size_t transactions = 200;
    int keys = 5;
    std::int64_t overlap = 10;  ///< how long before and after its moment of truth a transaction lasts at most
    std::size_t list_max = 50;  ///< a key is given up when its list is that long
    bool doubts = true;
};

/// Runs transactions one by one at a hidden moment each, so the history is strictly serializable whatever the intervals
/// around the moments are. Some are aborted, some in doubt with or without effect.
History serial_execution(std::mt19937_64& random, const Shape& shape) {
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    History history{"serial", {}, {}};
    std::map<std::string, std::vector<std::int64_t>> lists;
    std::vector<std::string> live;
    int made = 0;
    const auto fresh_key = [&] {
        std::string k = "k";  // spelt out in steps: gcc 12 warns falsely of the sum
        k += std::to_string(made++);
        return k;
    };
    for (int k = 0; k < shape.keys; ++k) live.push_back(fresh_key());
    std::int64_t next_value = 1;
    for (std::size_t i = 0; i < shape.transactions; ++i) {
        Transaction t;
        t.id = std::to_string(i);
        const auto moment = static_cast<std::int64_t>(i) * 4;
        t.invoke = moment - below(static_cast<std::uint64_t>(shape.overlap) + 1);
        t.complete = moment + 1 + below(static_cast<std::uint64_t>(shape.overlap) + 1);
        const auto fate = below(10);
        t.status = fate == 0 ? Status::fail : fate == 1 && shape.doubts ? Status::info : Status::ok;
        const bool takes_effect = t.status == Status::ok || (t.status == Status::info && below(2));
        std::map<std::string, std::vector<std::int64_t>> after;  // of what it touches
        for (auto n = 1 + below(4); n > 0; --n) {
            auto& key = live[static_cast<std::size_t>(below(live.size()))];
            auto it = after.find(key);
            if (it == after.end()) it = after.emplace(key, lists[key]).first;
            if (below(2)) {
                it->second.push_back(next_value);
                t.operations.push_back(Append{key, next_value++});
                if (it->second.size() >= shape.list_max) key = fresh_key();
            } else if (t.status == Status::ok) {
                t.operations.push_back(Read{key, it->second});
            } else {
                t.operations.push_back(Read{key, std::nullopt});
            }
        }
        if (takes_effect) {
            for (auto& [key, list] : after) lists[key] = std::move(list);
        }
        history.transactions.push_back(std::move(t));
    }
    std::shuffle(history.transactions.begin(), history.transactions.end(), random);
    return history;
}

std::uint64_t first_seed() {
    const char* text = std::getenv("VARVE_SEED");
    return text ? std::strtoull(text, nullptr, 10) : 1;
}

std::string replay(std::uint64_t seed) {
    return "seed=" + std::to_string(seed) + " replay: VARVE_SEED=" + std::to_string(seed) +
           " test_checkers --gtest_filter=ListAppend.*";
}

TEST(ListAppend, serial_executions_are_clean) {
    for (std::uint64_t seed = first_seed(), end = seed + 300; seed < end; ++seed) {
        std::mt19937_64 random(seed);
        const Shape shape{20 + seed % 200, 1 + static_cast<int>(seed % 7), static_cast<std::int64_t>(seed % 60), 30};
        const auto findings = check(serial_execution(random, shape));
        ASSERT_TRUE(findings.empty()) << replay(seed) << "\n" << explain(findings);
    }
}

/// A read of an acknowledged transaction that nothing in the transaction itself constrains: its list may be bent.
std::vector<Read*> bendable_reads(History& history, std::size_t size_min) {
    std::vector<Read*> reads;
    for (Transaction& t : history.transactions) {
        if (t.status != Status::ok) continue;
        for (Operation& operation : t.operations) {
            auto* read = std::get_if<Read>(&operation);
            if (!read || !read->values || read->values->size() < size_min) continue;
            const bool own = std::any_of(t.operations.begin(), t.operations.end(), [&](const Operation& o) {
                const auto* append = std::get_if<Append>(&o);
                return append && append->key == read->key;
            });
            if (!own) reads.push_back(read);
        }
    }
    return reads;
}

/// Applies `mutate` to one read per history and counts by seeds how often the checker notices; the serial run itself is
/// clean.
template <class Mutate>
void expect_caught(std::size_t size_min, Mutate mutate) {
    std::size_t mutated = 0;
    for (std::uint64_t seed = first_seed(), end = seed + 150; seed < end; ++seed) {
        std::mt19937_64 random(seed);
        // Nobody overlaps and nothing is in doubt, so that no mutation has an innocent explanation.
        History history = serial_execution(random, {150, 3, 0, 30, false});
        const auto reads = bendable_reads(history, size_min);
        if (reads.empty()) continue;
        if (!mutate(*reads[random() % reads.size()], reads, random)) continue;
        ++mutated;
        ASSERT_FALSE(check(history).empty()) << replay(seed);
    }
    EXPECT_GE(mutated, 100u);
}

TEST(ListAppend, a_read_with_two_values_swapped_is_caught) {
    expect_caught(2, [](Read& read, const auto&, auto& random) {
        auto& values = *read.values;
        const auto i = random() % (values.size() - 1);
        std::swap(values[i], values[i + 1]);
        return true;
    });
}

TEST(ListAppend, a_read_that_lost_its_last_value_is_caught) {
    expect_caught(1, [](Read& read, const auto&, auto&) { return read.values->pop_back(), true; });
}

TEST(ListAppend, a_read_that_lost_a_value_in_the_middle_is_caught) {
    expect_caught(3, [](Read& read, const auto&, auto& random) {
        read.values->erase(read.values->begin() + static_cast<std::ptrdiff_t>(random() % (read.values->size() - 1)));
        return true;
    });
}

TEST(ListAppend, a_value_moved_to_the_read_of_another_key_is_caught) {
    expect_caught(1, [](Read& read, const std::vector<Read*>& reads, auto& random) {
        Read& other = *reads[random() % reads.size()];
        if (other.key == read.key) return false;
        other.values->push_back(read.values->back());
        return true;
    });
}

TEST(ListAppend, a_read_that_sees_the_future_is_caught) {
    expect_caught(1, [](Read& read, const std::vector<Read*>& reads, auto&) {
        for (const Read* later : reads) {
            if (later->key != read.key || later->values->size() <= read.values->size()) continue;
            read.values = later->values;
            return true;
        }
        return false;
    });
}

TEST(ListAppend, an_acknowledged_writer_turned_failed_is_an_aborted_read) {
    std::size_t mutated = 0;
    for (std::uint64_t seed = first_seed(), end = seed + 50; seed < end; ++seed) {
        std::mt19937_64 random(seed);
        History history = serial_execution(random, {150, 3, 20, 30});
        const auto reads = bendable_reads(history, 1);
        if (reads.empty()) continue;
        const std::int64_t value = reads[0]->values->front();
        for (Transaction& t : history.transactions) {
            for (const Operation& operation : t.operations) {
                const auto* append = std::get_if<Append>(&operation);
                if (append && append->value == value) t.status = Status::fail;
            }
        }
        ++mutated;
        ASSERT_TRUE(has(check(history), Anomaly::g1a)) << replay(seed);
    }
    EXPECT_GE(mutated, 40u);
}

/// Snapshot isolation without anybody's clock: a write skew planted into a good history must come out by name.
TEST(ListAppend, a_write_skew_planted_into_a_good_history_is_named) {
    for (std::uint64_t seed = first_seed(), end = seed + 50; seed < end; ++seed) {
        std::mt19937_64 random(seed);
        History history = serial_execution(random, {100, 4, 20, 30});
        history.transactions.push_back({"left", 1, Status::ok, 50, 60, {Read{"u", {{}}}, Append{"v", -1}}});
        history.transactions.push_back({"right", 2, Status::ok, 50, 60, {Read{"v", {{}}}, Append{"u", -2}}});
        ASSERT_EQ(names(check(history)), "G2-item") << replay(seed);
    }
}

TEST(ListAppend, a_hundred_thousand_transactions_are_judged) {
    std::mt19937_64 random(first_seed());
    const History history = serial_execution(random, {100'000, 20, 100, 60});
    const auto findings = check(history);
    EXPECT_TRUE(findings.empty()) << explain(findings);
}

TEST(ListAppend, a_history_broken_all_over_is_judged_too) {
    std::mt19937_64 random(first_seed());
    History history = serial_execution(random, {20'000, 20, 100, 60});
    for (Read* read : bendable_reads(history, 1)) {
        if (random() % 10 == 0) read->values->pop_back();
    }
    const auto findings = check(history);
    EXPECT_TRUE(has(findings, Anomaly::g_single_realtime) || has(findings, Anomaly::g_single)) << names(findings);
}

std::string complaint(const std::string& json) {
    try {
        parse_histories(json);
    } catch (const BadHistory& error) {
        return error.what();
    }
    return "none";
}

TEST(HistoryJson, an_error_names_its_place) {
    EXPECT_EQ(complaint("[\n {"), "line 2, column 3: Missing a name for object member.");
    EXPECT_EQ(complaint("{}"), "the document: expected an array of histories");
    EXPECT_EQ(complaint(R"([{"txns": []}])"), "history 0: has no \"name\"");
    EXPECT_EQ(complaint(R"([{"name": "h", "txns": [{"id": 7, "status": "ok", "ops": [["w", "x", 1]]}]}])"),
              "history 0 \"h\", transaction 0 (id 7), operation 0: expected [\"append\", key, value] or [\"r\", key, "
              "[values]]");
    EXPECT_EQ(
        complaint(R"([{"name": "h", "txns": [{"id": 7, "status": "ok", "ops": [["r", "x", null]]}]}])"),
        "history 0 \"h\", transaction 0 (id 7), operation 0: a read of an acknowledged transaction needs its list");
    EXPECT_EQ(complaint(R"([{"name": "h", "txns": [{"id": 7, "status": "maybe", "ops": []}]}])"),
              "history 0 \"h\", transaction 0 (id 7): \"status\" must be \"ok\", \"fail\" or \"info\"");
    EXPECT_EQ(complaint(R"([{"name": "h", "txns": [{"id": 7, "status": "ok", "ops": []},
                                                   {"id": 7, "status": "ok", "ops": []}]}])"),
              "history 0 \"h\", transaction 1 (id 7): the id is not unique");
    EXPECT_EQ(
        complaint(R"([{"name": "h", "txns": [{"id": 7, "status": "ok", "invoke": 2, "complete": 1, "ops": []}]}])"),
        "history 0 \"h\", transaction 0 (id 7): completes before it was invoked");
    EXPECT_EQ(complaint(R"([{"name": "h", "txns": [{"id": 7, "status": "ok", "ops": [["append", "x", 1.5]]}]}])"),
              "history 0 \"h\", transaction 0 (id 7), operation 0: a value must be an integer or a string");
    EXPECT_EQ(complaint(R"([{"name": "h", "txns": [{"id": 7, "status": "ok", "ops": [["append", "x", null]]}]}])"),
              "history 0 \"h\", transaction 0 (id 7), operation 0: a value must be an integer or a string");
}

TEST(HistoryJson, strings_and_integers_are_told_apart) {
    const auto findings = check(parse_histories(R"([{"name": "h", "txns": [
        {"id": 1, "status": "ok", "ops": [["append", 1, 7]]},
        {"id": "1", "status": "ok", "ops": [["append", "1", "7"]]},
        {"id": 2, "status": "ok", "ops": [["r", 1, ["7"]]]}]}])")[0]);
    ASSERT_EQ(names(findings), "garbage-read");
    EXPECT_EQ(findings[0].explanation[0], "2 read 1 = [\"7\"], but nobody appended \"7\"");
}

}  // namespace
}  // namespace varve::checkers
