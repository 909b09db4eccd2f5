#include "protocol/crash_grid.h"

#include "protocol/ledger.h"
#include "protocol/scripted_store.h"
#include "transactions/coordinator.h"
#include "transactions/settled_reader.h"
#include "transactions/sweeper.h"
#include "transactions/system_table.h"

#include <varve/store/item_store.h>
#include <varve/testing/later.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/seeded_random.h>
#include <varve/varve.h>

#include <algorithm>
#include <iostream>
#include <set>

#include <gtest/gtest.h>

namespace varve::protocol {

using namespace transactions;
using namespace std::chrono_literals;
using enum Kind;

namespace {

bool is_stream(Kind kind) {
    return kind == slot || kind == new_slot || kind == read_head;
}
bool is_read(Kind kind) {
    return kind == read_head || kind == read_row || kind == read_range;
}

const store::TableSchema rows_table{.name = "rows",
                                    .partition_attribute = "partition",
                                    .sort_attribute = "sort",
                                    .sort = store::SortType::text,
                                    .expiry_attribute = "_expires"};

// ---- the world: one store, one clock, and what everybody was told

enum class Answer { committed, aborted, nothing };

/// One attempt of one transaction.
struct Deed {
    Plan plan;
    Answer told = Answer::nothing;
};

class World {
  public:
    /// `prefix` keeps apart the worlds that share one store.
    World(const Scenario& scenario, std::shared_ptr<store::ItemStore> store, std::string prefix)
        : ledger(std::move(store)), scenario_(scenario), prefix_(std::move(prefix)) {
        for (const store::TableSchema& schema : {system_table(), events_table(), rows_table})
            ledger.ensure_table(schema);
        Coordinator coordinator{ledger, runtime(), inline_, {.strategy = Strategy::protocol}};
        const auto put = [&](const Plan& plan) {
            const auto outcome = coordinator.commit(plan, new_id("setup"), clock.now());
            if (!std::holds_alternative<Commit>(outcome)) throw std::logic_error("the setup failed");
        };
        const auto append = [&](const std::string& stream) {
            Plan plan;
            plan.slots.push_back({slot_key(stream, 1), 0, {{"by", std::string{"setup"}}}});
            put(plan);
        };
        const auto write = [&](const store::Key& key, std::optional<std::string> after) {
            Plan plan;
            plan.rows.push_back({key, coordinator.reader().rows({&key, 1}, Isolation::committed).front(), after});
            put(plan);
        };
        for (std::size_t i = 0; i < scenario_.kinds.size(); ++i) {
            const Kind kind = scenario_.kinds[i];
            if (kind == slot || kind == read_head) append(stream(i));
            if (kind == update || kind == erase || kind == reinsert || kind == read_row) write(row(i), "\"setup\"");
            if (kind == reinsert) write(row(i), std::nullopt);
            if (kind == read_range) {
                for (const char* sort : {"b", "d"}) write(range_row(i, sort), "\"setup\"");
                write(range_row(i, "d"), std::nullopt);
            }
        }
        append(prefix_ + "bystander-1");
        write({rows_table.name, prefix_ + "bystander", "1"}, "\"setup\"");
        before_ = contents();
    }

    Runtime runtime() { return {clock, random_, Log::standard_error()}; }
    std::string new_id(const char* who) { return prefix_ + who + "." + std::to_string(++ids_); }

    std::string stream(std::size_t i) const { return prefix_ + "account-" + std::to_string(i); }
    store::Key row(std::size_t i) const { return {rows_table.name, prefix_ + "row", std::to_string(i)}; }
    store::Key range_row(std::size_t i, const char* sort) const {
        return {rows_table.name, prefix_ + "range" + std::to_string(i), sort};
    }

    /// One attempt: reads what the scenario names, then writes it. `opposite` writes what the scenario reads and reads
    /// what it writes, so that two of them are in each other's way without writing one common item.
    enum class Wish { as_scenario, write_all, opposite };
    void attempt(store::ItemStore& store, Strategy strategy, const char* who, Time since, Wish wish);

    /// Attempts until it is committed.
    void command(store::ItemStore& store, Strategy strategy, const char* who, Time since, Wish wish);

    std::size_t sweep(store::ItemStore& store) {
        Coordinator coordinator{store, runtime(), inline_, options(Strategy::protocol)};
        Sweeper sweeper{coordinator, {rows_table.name}, {.page_interval = 0s, .pause = 0s}};
        std::size_t passes = 0;
        sweeper.sweep();
        do {
            clock.advance(options(Strategy::protocol).lease + 1s);
            if (++passes > 20) throw std::logic_error("the sweeper does not come to an end");
        } while (sweeper.sweep() > 0 || !sweeper.is_through());
        return passes;
    }

    /// Reads everything as a reader does: it writes nothing, and sees of every transaction all or nothing, as the
    /// judge of the store knows.
    void check_reader(std::vector<std::string>& violations);

    /// Q1 to Q5.
    void check_at_rest(std::vector<std::string>& violations);

    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    Ledger ledger;

  private:
    static Options options(Strategy strategy) { return {.strategy = strategy, .lease = 20ms, .answer_time_max = 40ms}; }
    std::map<store::Key, store::Item> contents();
    std::vector<store::Key> range_keys(std::size_t i) const {
        std::vector<store::Key> keys;
        for (const char* sort : {"a", "b", "c", "d"}) keys.push_back(range_row(i, sort));
        return keys;
    }

    class Inline final : public Executor {
      public:
        void post(std::function<void()> task) override { task(); }
        void drain() override {}
    };

    const Scenario& scenario_;
    const std::string prefix_;
    testing::SeededRandom random_{1};
    Inline inline_;
    unsigned ids_ = 0;
    std::map<std::string, Deed> deeds_;
    std::map<store::Key, store::Item> before_;
};

void World::attempt(store::ItemStore& store, Strategy strategy, const char* who, Time since, Wish wish) {
    testing::Later later;
    Coordinator coordinator{store, runtime(), later, options(strategy)};
    const std::string tx = new_id(who);
    SettledReader reader{coordinator, tx, since};
    Plan plan;
    for (std::size_t i = 0; i < scenario_.kinds.size(); ++i) {
        const Kind kind = scenario_.kinds[i];
        const bool reads = wish == Wish::write_all ? false : is_read(kind) == (wish == Wish::as_scenario);
        if (is_stream(kind)) {
            const StreamRead read = reader.head(stream(i));
            store::Key next = slot_key(stream(i), read.head + 1);
            if (reads) {
                plan.heads_read.push_back({std::move(next)});
            } else {
                plan.slots.push_back({std::move(next), read.next.epoch, {{"by", tx}}});
            }
        } else if (kind == read_range) {
            if (reads) {
                const store::Query query{.table = rows_table.name, .partition = range_row(i, "").partition};
                RangeRead& range = plan.ranges_read.emplace_back(RangeRead{.query = query, .found = {}});
                for (auto& found : reader.range(query).rows)
                    range.found.emplace_back(found.key, found.image.rev.value());
            } else {
                const store::Key key = range_row(i, "c");
                plan.rows.push_back({key, reader.rows({&key, 1}).front(), "\"" + tx + "\""});
            }
        } else {
            const store::Key key = row(i);
            const Image seen = reader.rows({&key, 1}).front();
            if (reads) {
                plan.rows_read.push_back({key, seen.rev});
            } else if (kind == erase && wish == Wish::as_scenario && seen.data) {
                plan.rows.push_back({key, seen, std::nullopt});
            } else {
                plan.rows.push_back({key, seen, "\"" + tx + "\""});
            }
        }
    }
    Deed& deed = deeds_.emplace(tx, Deed{std::move(plan)}).first->second;
    try {
        const auto outcome = coordinator.commit(deed.plan, tx, since);
        deed.told = std::holds_alternative<Commit>(outcome) ? Answer::committed : Answer::aborted;
    } catch (const InDoubtError&) {
        throw;
    } catch (const Error&) {
        deed.told = Answer::aborted;
        throw;
    }
    later.drain();
    if (deed.told == Answer::aborted) throw ConflictError(tx + " lost");
}

void World::command(store::ItemStore& store, Strategy strategy, const char* who, Time since, Wish wish) {
    for (int attempts = 1;; ++attempts) {
        try {
            return attempt(store, strategy, who, since, wish);
        } catch (const Error& error) {
            if (error.in_doubt() || attempts == 10) throw;
        }
    }
}

std::map<store::Key, store::Item> World::contents() {
    std::vector<store::Key> keys{slot_key(prefix_ + "bystander-1", 1), {rows_table.name, prefix_ + "bystander", "1"}};
    for (std::size_t i = 0; i < scenario_.kinds.size(); ++i) {
        const Kind kind = scenario_.kinds[i];
        for (Version v = 1; is_stream(kind) && v <= 4; ++v) keys.push_back(slot_key(stream(i), v));
        if (kind == read_range) std::ranges::copy(range_keys(i), std::back_inserter(keys));
        if (!is_stream(kind) && kind != read_range) keys.push_back(row(i));
    }
    for (const auto& [tx, deed] : deeds_) keys.push_back(slot_key("$tx-" + tx, 1));
    std::map<store::Key, store::Item> found;
    const auto items = ledger.read(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (items[i]) found.emplace(keys[i], *items[i]);
    }
    return found;
}

void World::check_reader(std::vector<std::string>& violations) {
    ScriptedStore connection{ledger};
    Coordinator coordinator{connection, runtime(), inline_, options(Strategy::protocol)};
    Reader& reader = coordinator.reader();
    for (std::size_t i = 0; i < scenario_.kinds.size(); ++i) {
        const Kind kind = scenario_.kinds[i];
        if (is_stream(kind)) {
            const StreamRead read = reader.stream(stream(i), 1);
            Version committed = 0;
            for (const auto& [tx, commit] : ledger.commits()) {
                committed += std::ranges::count_if(commit.items,
                                                   [&](const store::Key& key) { return key.partition == stream(i); });
            }
            if (read.head != committed) {
                violations.push_back("a reader sees " + std::to_string(read.head) + " slots of " + stream(i) + ", " +
                                     std::to_string(committed) + " are committed");
            }
            continue;
        }
        for (const store::Key& key : kind == read_range ? range_keys(i) : std::vector{row(i)}) {
            std::uint64_t newest = 0;
            std::string rev;
            for (const auto& [tx, commit] : ledger.commits()) {
                if (commit.at > newest && std::ranges::count(commit.items, key) > 0) {
                    newest = commit.at;
                    rev = tx;
                }
            }
            for (const Isolation isolation : {Isolation::committed, Isolation::snapshot}) {
                const Image image = reader.rows({&key, 1}, isolation).front();
                if (ledger.origin(image.rev.value_or("")) != rev) {
                    violations.push_back("a reader sees " + store::to_string(key) + " by " +
                                         image.rev.value_or("nobody") + ", the last committed is '" + rev + "'");
                }
            }
        }
    }
    if (connection.writes() != 0) violations.emplace_back("a reader wrote");
}

void World::check_at_rest(std::vector<std::string>& violations) {
    for (std::string& line : ledger.violations_at_rest({})) violations.push_back(std::move(line));
    if (ledger.capabilities().ordered_changes)
        std::ranges::copy(ledger.written_again(), std::back_inserter(violations));
    const auto& commits = ledger.commits();
    for (const auto& one : deeds_) {
        const std::string& tx = one.first;
        const Deed& deed = one.second;
        const auto commit = commits.find(tx);
        const bool committed = commit != commits.end();
        const bool writes = deed.plan.writes() > 0;
        if (writes && deed.told == Answer::committed && !committed)
            violations.push_back("Q2: " + tx + " was told committed");
        if (deed.told == Answer::aborted && committed) violations.push_back("Q2: " + tx + " was told aborted");
        if (!committed) continue;
        // What the caller wanted, and nothing else, is what was committed.
        std::vector<store::Key> wanted;
        for (const SlotWrite& one : deed.plan.slots) wanted.push_back(one.key);
        for (const RowWrite& one : deed.plan.rows) wanted.push_back(one.key);
        std::ranges::sort(wanted);
        std::vector<store::Key> written = commit->second.items;
        std::erase_if(written, [](const store::Key& key) { return is_internal(key.partition); });
        if (written != wanted) violations.push_back("Q1: " + tx + " committed other items than it was to write");
        // Whoever overwrites what it read and did not write came after it.
        const auto came_later = [&](const store::Key& key, const std::string& over) {
            for (const auto& effect : ledger.effects()) {
                if (effect.key != key || effect.over != ledger.origin(over) || effect.rev == tx) continue;
                if (commits.contains(effect.rev) && commits.at(effect.rev).at < commit->second.at) {
                    violations.push_back(tx + " committed after " + effect.rev +
                                         " had changed what it read: " + store::to_string(key));
                }
            }
        };
        for (const HeadRead& read : deed.plan.heads_read) came_later(read.next, "");
        for (const RowRead& read : deed.plan.rows_read) came_later(read.key, read.rev.value_or(""));
        for (const RangeRead& read : deed.plan.ranges_read) {
            std::map<store::Key, std::string> revs(read.found.begin(), read.found.end());
            for (std::size_t i = 0; i < scenario_.kinds.size(); ++i) {
                if (scenario_.kinds[i] != read_range) continue;
                for (const store::Key& key : range_keys(i)) came_later(key, revs[key]);
            }
        }
    }
    const auto is_data = [&](const store::Key& key, const store::Item& item) {
        if (key.table == rows_table.name) return item.contains("data");
        return !store::text(item, "state") || *store::text(item, "state") == "committed";
    };
    const auto without_revision = [&](store::Item item) {
        if (const std::string* rev = store::text(item, "_rev")) item["_rev"] = ledger.origin(*rev);
        return item;
    };
    const std::map<store::Key, store::Item> after = contents();
    for (const auto& [key, item] : after) {
        for (const char* left : {"_tx", "_primary", "_primary_version", "_primary_epoch", "_lease", "_priority",
                                 "_after", "_was_expires", "_was_data"}) {
            if (item.contains(left)) violations.push_back("Q3: " + store::to_string(key) + " still has " + left);
        }
        if (is_data(key, item) && ledger.revisions(key).empty()) {
            violations.push_back("Q4: " + store::to_string(key) + " is there, and nobody committed it");
        }
    }
    for (const auto& [key, item] : before_) {
        const auto found = after.find(key);
        const bool written = std::ranges::any_of(deeds_, [&, &key = key](const auto& one) {
            return commits.contains(one.first) && std::ranges::count(commits.at(one.first).items, key) > 0;
        });
        if (!written && (found == after.end() || without_revision(found->second) != without_revision(item))) {
            violations.push_back("Q4: " + store::to_string(key) + " was changed, and nobody committed that");
        }
    }
    check_reader(violations);
    const std::uint64_t writes = ledger.writes_applied();
    sweep(ledger);
    if (contents() != after || ledger.writes_applied() != writes)
        violations.emplace_back("Q5: recovering again changed something");
}

// ---- the grid

enum class Recoverer { same_owner, older_contender, younger_contender, opposite, sweeper, nobody };
const char* to_string(Recoverer who) {
    switch (who) {
        case Recoverer::same_owner: return "the same owner";
        case Recoverer::older_contender: return "an older contender";
        case Recoverer::younger_contender: return "a younger contender";
        case Recoverer::opposite: return "one who reads what is written";
        case Recoverer::sweeper: return "the sweeper";
        case Recoverer::nobody: return "nobody";
    }
    return "unknown";
}

struct Point {
    Strategy strategy = Strategy::protocol;
    BatchOrder order = BatchOrder::forward;
    unsigned at = 0;  ///< the owner's request that meets `fault`
    Fault fault = Fault::none;
    Recoverer by = Recoverer::nobody;
    unsigned again_at = 0;  ///< the recoverer's request that meets `again`
    Fault again = Fault::none;
    Recoverer meanwhile = Recoverer::nobody;  ///< who runs while the recoverer is paused

    std::string describe() const {
        std::string text = std::string{strategy == Strategy::protocol ? "protocol" : "native"} +
                           (order == BatchOrder::forward ? "" : ", batches backward") + ", owner's request " +
                           std::to_string(at) + ": " + to_string(fault) + ", recovered by " + to_string(by);
        if (again_at > 0) text += ", whose request " + std::to_string(again_at) + ": " + to_string(again);
        if (meanwhile != Recoverer::nobody) text += std::string{", meanwhile "} + to_string(meanwhile);
        return text;
    }
};

class Grid {
  public:
    Grid(const Scenario& scenario, Stores& stores, Counts& counts)
        : scenario_(scenario), stores_(stores), counts_(counts) {}

    void enumerate(Extent extent) {
        switch (extent) {
            case Extent::everything: return enumerate_all();
            case Extent::what_differs_most: return enumerate_some();
            case Extent::sweeping: return enumerate_sweeping();
            case Extent::each_point:
                enumerate_points(Strategy::protocol);
                if (stores_.next()->capabilities().atomic_writes_max > 0) enumerate_points(Strategy::automatic);
        }
    }

  private:
    void enumerate_all() {
        constexpr Recoverer everybody[] = {Recoverer::same_owner, Recoverer::older_contender,
                                           Recoverer::younger_contender, Recoverer::opposite, Recoverer::sweeper};
        for (const BatchOrder order : {BatchOrder::forward, BatchOrder::backward}) {
            enumerate({.order = order}, all_faults, everybody, true);
        }
        enumerate({.strategy = Strategy::automatic}, all_faults, everybody, true);
    }

    void enumerate_some() {
        constexpr Fault faults[] = {Fault::stop_after, Fault::pause_after, Fault::lost_answer, Fault::late};
        constexpr Recoverer some[] = {Recoverer::older_contender, Recoverer::sweeper};
        enumerate({}, faults, some, false);
        enumerate({.strategy = Strategy::automatic}, faults, some, false);
    }

    void enumerate_sweeping() {
        constexpr Recoverer sweeper[] = {Recoverer::sweeper};
        enumerate({}, all_faults, sweeper, true);
    }

    void enumerate_points(Strategy strategy) {
        constexpr Fault others[] = {Fault::late, Fault::pause_after, Fault::lost_answer, Fault::repeated,
                                    Fault::stop_before};
        constexpr Recoverer everybody[] = {Recoverer::sweeper, Recoverer::older_contender, Recoverer::same_owner,
                                           Recoverer::opposite};
        for (Point point{.strategy = strategy, .at = 1};; ++point.at) {
            point.fault = Fault::stop_after;
            point.by = everybody[point.at % std::size(everybody)];
            if (!run(point).owner) return;
            point.fault = others[point.at % std::size(others)];
            point.by = everybody[(point.at + 1) % std::size(everybody)];
            run(point);
            counts_.points += 2;
            if (::testing::Test::HasFailure()) return;
        }
    }

    struct Met {
        bool owner;
        bool recoverer;
    };

    void enumerate(Point point, std::span<const Fault> faults, std::span<const Recoverer> recoverers, bool twice) {
        for (const Fault fault : faults) {
            for (const Recoverer by : recoverers) {
                point.fault = fault;
                point.by = by;
                for (point.at = 1; run(point).owner; ++point.at) {
                    ++counts_.points;
                    if (twice && fault == Fault::stop_after) enumerate_recovery(point);
                }
                if (::testing::Test::HasFailure()) return;
            }
        }
    }

    void enumerate_recovery(Point point) {
        const auto all_requests = [&] {
            for (point.again_at = 1; run(point).recoverer; ++point.again_at) {
            }
        };
        // The many requests of a large transaction differ little from each other: fewer faults do. Where nothing is
        // optimised, or everything watched, there is time for fewer still.
#ifdef NDEBUG
        const bool large = scenario_.kinds.size() > 3;
#else
        if (scenario_.kinds.size() > 3) return;
        const bool large = scenario_.kinds.size() > 1;
#endif
        if (large && point.order == BatchOrder::backward) return;
        for (const Fault again : {Fault::stop_after, Fault::stop_before, Fault::lost_answer, Fault::late}) {
            point.again = again;
            all_requests();
            if (large) break;
        }
        point.again = Fault::pause_after;
        for (const Recoverer meanwhile : {Recoverer::older_contender, Recoverer::sweeper}) {
            point.meanwhile = meanwhile;
            all_requests();
            if (large) break;
        }
    }

    Met run(const Point& point) {
        World world{scenario_, stores_.next(), "r" + std::to_string(++counts_.runs) + "-"};
        std::vector<std::string> violations;
        const Time began = world.clock.now();
        std::vector<std::unique_ptr<ScriptedStore>> connections;
        const auto connect = [&](ScriptedStore::Script script) -> ScriptedStore& {
            return *connections.emplace_back(std::make_unique<ScriptedStore>(world.ledger, std::move(script)));
        };
        const auto act = [&](Recoverer who, ScriptedStore& connection) {
            const auto as = [&](Time since, World::Wish wish, const char* name) {
                world.command(connection, point.strategy, name, since, wish);
            };
            try {
                switch (who) {
                    case Recoverer::same_owner: return as(began, World::Wish::as_scenario, "owner");
                    case Recoverer::older_contender: return as(began - 1s, World::Wish::write_all, "older");
                    case Recoverer::younger_contender: return as(began + 1s, World::Wish::write_all, "younger");
                    case Recoverer::opposite: return as(began - 1s, World::Wish::opposite, "opposite");
                    case Recoverer::sweeper: world.sweep(connection); return;
                    case Recoverer::nobody: return;
                }
            } catch (const Stopped&) {
            } catch (const Error& error) {
                // Lost against others, or the store did not answer: that may be; what the callers were told is checked.
                if (!error.in_doubt() && !error.retryable() && error.kind() != ErrorKind::conflict)
                    violations.push_back(std::string{"unexpected: "} + error.what());
            }
        };

        bool recovered = false;
        ScriptedStore* recoverer = nullptr;
        const auto recover = [&] {
            if (std::exchange(recovered, true)) return;
            world.check_reader(violations);
            recoverer = &connect({.at = point.again_at, .fault = point.again, .order = point.order, .others = [&] {
                                      act(point.meanwhile, connect({}));
                                  }});
            act(point.by, *recoverer);
            world.check_reader(violations);
        };
        ScriptedStore& owner = connect({.at = point.at, .fault = point.fault, .order = point.order, .others = recover});
        try {
            world.attempt(owner, point.strategy, "first", began, World::Wish::as_scenario);
        } catch (const Stopped&) {
        } catch (const Error& error) {
            if (!error.in_doubt() && !error.retryable() && error.kind() != ErrorKind::conflict)
                violations.push_back(std::string{"unexpected: "} + error.what());
        }
        const Met met{owner.met(), false};
        if (!met.owner) return met;
        recover();
        for (const auto& connection : connections) connection->deliver_late();
        world.check_reader(violations);
        world.sweep(world.ledger);
        world.check_at_rest(violations);
        for (const auto& [tx, commit] : world.ledger.commits()) {
            if (tx.find("first") != std::string::npos) {
                ++counts_.committed;
                --counts_.aborted;
            }
        }
        ++counts_.aborted;
        for (const std::string& violation : violations) {
            ADD_FAILURE() << violation << "\n  " << scenario_.name << "; " << point.describe();
        }
        return {true, recoverer != nullptr && recoverer->met()};
    }

    const Scenario& scenario_;
    Stores& stores_;
    Counts& counts_;
};

}  // namespace

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> all{
        {"a slot", {slot}},
        {"a row that is inserted", {insert}},
        {"a row that is updated", {update}},
        {"a row that is deleted", {erase}},
        {"a row where one was deleted", {reinsert}},
        {"two slots", {slot, new_slot}},
        {"a slot and an insert", {slot, insert}},
        {"a new slot and an update", {new_slot, update}},
        {"a slot and a delete", {slot, erase}},
        {"a slot and a row where one was deleted", {slot, reinsert}},
        {"two rows", {update, insert}},
        {"two reads", {read_head, read_row}},
        {"a slot and a stream that is read", {slot, read_head}},
        {"a new slot and a row that is read", {new_slot, read_row}},
        {"a slot and a range that is read", {slot, read_range}},
        {"a row and a stream that is read", {insert, read_head}},
        {"three rows", {insert, erase, update}},
        {"a slot, a delete and an update", {slot, erase, update}},
        {"two slots and a row that is read", {slot, slot, read_row}},
        {"two slots and two rows", {slot, new_slot, insert, erase}},
        {"reads and writes of each", {slot, update, read_head, read_row}},
        {"five slots", {slot, new_slot, slot, slot, new_slot}},
        {"five rows", {insert, update, erase, reinsert, update}},
        {"one of each", {slot, insert, update, erase, reinsert}},
        {"five with reads", {slot, insert, erase, read_head, read_range}},
    };
    return all;
}

void run_crash_grid(const Scenario& scenario, Stores& stores, Extent extent, Counts& counts) {
    Grid{scenario, stores, counts}.enumerate(extent);
}

void print(const std::string& store, const Counts& counts) {
    std::cout << "crash grid on " << store << ": " << counts.runs << " runs, " << counts.points
              << " points of an owner; its transaction committed in " << counts.committed << ", aborted in "
              << counts.aborted << "\n";
}

}  // namespace varve::protocol
