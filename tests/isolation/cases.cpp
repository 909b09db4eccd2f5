#include "isolation/cases.h"

#include <varve/store/item_store.h>

#include <algorithm>
#include <set>

namespace varve::isolation {
namespace {

using transactions::Isolation;

struct Set {
    int value;
};
struct Register {
    static constexpr std::string_view name = "register";
    using Event = std::variant<Set>;
    int value = 0;
    void apply(const Set& e) { value = e.value; }
    Decision<Event> decide(const Set& c) const { return c; }
};

struct RegisterRow {
    static constexpr std::string_view table = "registers";
    int value = 0;
};

struct Entry {
    static constexpr std::string_view table = "entries";
    static constexpr bool sorted = true;
    int value = 0;
};

Isolation isolation(Level level) {
    switch (level) {
        case Level::uncommitted: return Isolation::uncommitted;
        case Level::snapshot: return Isolation::snapshot;
        case Level::serializable: return Isolation::serializable;
        case Level::committed:
        case Level::expected_version: break;
    }
    return Isolation::committed;
}

bool commit(Application& by, const std::function<void(Transaction&)>& body) {
    try {
        return by.transact(body).has_value();
    } catch (const ConflictError&) {
        return false;
    }
}

using Values = std::optional<std::vector<int>>;

/// What both parties have seen and done; lives as long as their functions.
struct Log {
    std::array<Values, 2> seen;
    std::array<bool, 2> committed{};
};

// ---- the cases

Scenario g0(World& w, Level level) {
    const auto log = std::make_shared<Log>();
    const std::string x = w.fresh("x");
    const std::string y = w.fresh("y");
    const auto writer = [=, &w](std::size_t i, int value) {
        return [=, &w] {
            log->committed[i] = commit(w.party(i), [&](Transaction& tx) {
                w.write(tx, x, value);
                w.write(tx, y, value);
            });
        };
    };
    return {{writer(0, 11), writer(1, 12)}, [=, &w] {
                const std::vector<int> end = w.read(w.bystander(), {x, y}, level).value();
                const bool nobody_got_through = end[0] == 0;
                return end[0] != end[1] || nobody_got_through;
            }};
}

Scenario g1a(World& w, Level level) {
    const auto log = std::make_shared<Log>();
    const std::string a = w.fresh("a");
    const std::string x = w.fresh("x");
    return {{[=, &w] {
                 int times = 0;
                 log->committed[0] = commit(w.party(0), [&](Transaction& tx) {
                     w.write(tx, x, 101);
                     w.write(tx, a, 101);
                     // Somebody else is quicker, so this attempt is going to abort; or waits in vain for what is
                     // reserved here.
                     if (!commit(w.bystander(), [&](Transaction& other) { w.write(other, a, ++times); })) {
                         tx.reject({"changed_its_mind"});
                     }
                 });
             },
             [=, &w] { log->seen[1] = w.read(w.party(1), {x}, level); }},
            [=] { return !log->committed[0] && log->seen[1] && log->seen[1]->front() == 101; }};
}

Scenario g1b(World& w, Level level) {
    const auto log = std::make_shared<Log>();
    const std::string x = w.fresh("x");
    const std::string y = w.fresh("y");
    return {{[=, &w] {
                 commit(w.party(0), [&](Transaction& tx) {
                     for (const int value : {101, 11}) {
                         w.write(tx, x, value);
                         w.write(tx, y, value);
                     }
                 });
             },
             [=, &w] {
                 log->seen[1] = w.read(w.party(1), {x, y}, level);
             }},
            [=] { return log->seen[1] && std::ranges::count(*log->seen[1], 101) > 0; }};
}

Scenario g1c(World& w, Level level) {
    const auto log = std::make_shared<Log>();
    const std::string x = w.fresh("x");
    const std::string y = w.fresh("y");
    const auto party = [=, &w](std::size_t i, const std::string& reads, const std::string& writes) {
        return [=, &w] {
            log->committed[i] =
                w.read_then_write(w.party(i), {reads}, writes, level, [&](const std::vector<int>& seen) {
                    log->seen[i] = seen;
                    return 11;
                });
        };
    };
    return {{party(0, y, x), party(1, x, y)}, [=] {
                return log->committed[0] && log->committed[1] && log->seen[0]->front() == 11 &&
                       log->seen[1]->front() == 11;
            }};
}

Scenario otv(World& w, Level level) {
    const auto log = std::make_shared<Log>();
    const std::string x = w.fresh("x");
    const std::string y = w.fresh("y");
    const auto write = [=, &w](Application& by, int value) {
        return commit(by, [&](Transaction& tx) {
            w.write(tx, x, value);
            w.write(tx, y, value);
        });
    };
    write(w.bystander(), 1);
    return {{[=, &w] { log->committed[0] = write(w.party(0), 2); },
             [=, &w] {
                 const std::vector<std::string> order{x, y, x, y};
                 if (level == Level::serializable) {
                     log->seen[1] = w.read(w.party(1), order, level);
                     return;
                 }
                 log->seen[1].emplace();
                 for (const std::string& name : order) {
                     log->seen[1]->push_back(w.read(w.party(1), {name}, level)->front());
                 }
             }},
            [=] { return log->seen[1] && !std::ranges::is_sorted(*log->seen[1]); }};
}

Scenario pmp(World& w, Level level) {
    struct Seen {
        std::set<std::string> keys;
    };
    const auto seen = std::make_shared<Seen>();
    const std::string partition = w.fresh("p");
    static_cast<void>(w.bystander().rows<Entry>());
    commit(w.bystander(), [&](Transaction& tx) {
        for (const char* sort : {"m", "n"}) tx.rows<Entry>().put({partition, sort}, {});
    });
    return {{[=, &w] {
                 commit(w.party(0), [&](Transaction& tx) {
                     tx.rows<Entry>().put({partition, "a"}, {});
                     tx.rows<Entry>().put({partition, "z"}, {});
                 });
             },
             [=, &w] {
                 try {
                     for (const auto& row : w.party(1).rows<Entry>().range({partition}, {}, isolation(level)).rows) {
                         seen->keys.insert(row.key.sort);
                     }
                 } catch (const ConflictError&) {
                 }
             }},
            [=] { return seen->keys.contains("a") != seen->keys.contains("z"); }};
}

Scenario p4(World& w, Level level) {
    const auto log = std::make_shared<Log>();
    const std::string x = w.fresh("x");
    const auto party = [=, &w](std::size_t i) {
        return [=, &w] {
            log->committed[i] = w.read_then_write(w.party(i), {x}, x, level,
                                                  [](const std::vector<int>& seen) { return seen.front() + 1; });
        };
    };
    return {{party(0), party(1)}, [=, &w] {
                const int end = w.read(w.bystander(), {x}, Level::committed)->front();
                return end != log->committed[0] + log->committed[1];
            }};
}

void set_both(World& w, Application& by, const std::pair<std::string, int>& one,
              const std::pair<std::string, int>& other) {
    commit(by, [&](Transaction& tx) {
        w.write(tx, one.first, one.second);
        w.write(tx, other.first, other.second);
    });
}

Scenario g_single(World& w, Level level) {
    const auto log = std::make_shared<Log>();
    const std::string x = w.fresh("x");
    const std::string y = w.fresh("y");
    set_both(w, w.bystander(), {x, 50}, {y, 50});
    return {{[=, &w] {
                 set_both(w, w.party(0), {x, 40}, {y, 60});
             },
             [=, &w] {
                 log->seen[1] = w.read(w.party(1), {x, y}, level);
             }},
            [=] { return log->seen[1] && log->seen[1]->at(0) + log->seen[1]->at(1) != 100; }};
}

Scenario rejection(World& w, Level) {
    const auto log = std::make_shared<Log>();
    const std::string x = w.fresh("x");
    const std::string y = w.fresh("y");
    set_both(w, w.bystander(), {x, 50}, {y, 50});
    const auto reject_by_the_sum = [=, &w](Transaction& tx) {
        const int seen_x = w.read(tx, x);
        w.write(tx, w.fresh("z"), 1);
        if (seen_x + w.read(tx, y) != 100) tx.reject({"the sum is wrong"});
    };
    return {{[=, &w] {
                 set_both(w, w.party(0), {x, 40}, {y, 60});
             },
             [=, &w] {
                 try {
                     log->committed[1] = w.party(1).transact(reject_by_the_sum).has_value();
                 } catch (const ConflictError&) {
                     log->committed[1] = true;  // it has not been rejected
                 }
             }},
            [=] { return !log->committed[1]; }};
}

Scenario g2_item(World& w, Level level) {
    const std::string x = w.fresh("x");
    const std::string y = w.fresh("y");
    commit(w.bystander(), [&](Transaction& tx) {
        w.write(tx, x, 1);
        w.write(tx, y, 1);
    });
    const auto party = [=, &w](std::size_t i, const std::string& mine) {
        return [=, &w] {
            w.read_then_write(w.party(i), {x, y}, mine, level, [](const std::vector<int>& seen) {
                return seen[0] + seen[1] == 2 ? std::optional{0} : std::nullopt;
            });
        };
    };
    return {{party(0, x), party(1, y)}, [=, &w] {
                return w.read(w.bystander(), {x, y}, Level::committed).value() == std::vector{0, 0};
            }};
}

Scenario g2(World& w, Level level) {
    const std::string partition = w.fresh("p");
    static_cast<void>(w.bystander().rows<Entry>());
    const auto party = [=, &w](std::size_t i, const char* mine) {
        return [=, &w] {
            const auto insert_if = [&](Transaction& tx, bool empty) {
                if (empty) tx.rows<Entry>().put({partition, mine}, {});
            };
            try {
                if (level == Level::serializable) {
                    static_cast<void>(w.party(i).transact(
                        [&](Transaction& tx) { insert_if(tx, tx.rows<Entry>().range({partition}, {}).rows.empty()); }));
                } else {
                    const bool empty = w.party(i).rows<Entry>().range({partition}, {}, isolation(level)).rows.empty();
                    static_cast<void>(w.party(i).transact([&](Transaction& tx) { insert_if(tx, empty); }));
                }
            } catch (const ConflictError&) {
            }
        };
    };
    return {{party(0, "a"), party(1, "b")},
            [=, &w] { return w.bystander().rows<Entry>().range({partition}, {}).rows.size() == 2; }};
}

}  // namespace

World::World(std::shared_ptr<store::ItemStore> store, Subject subject, Way way, std::uint64_t seed)
    : store_(std::move(store)), subject_(subject), random_(seed) {
    for (auto& party : parties_) party = make(way, std::chrono::milliseconds{20});
    bystander_ = make(way == Way::reserved ? Way::protocol : way, std::chrono::milliseconds{2});
}

std::unique_ptr<Application> World::make(Way way, Duration lease) {
    return std::make_unique<Application>(
        std::make_shared<SteppedStore>(store_, interleaving_),
        ApplicationOptions{.retry = {.attempts_max = 2},
                           .escalation = {.reserve_after = way == Way::reserved ? 0 : Escalation{}.reserve_after},
                           .transactions = {.strategy = way == Way::native ? transactions::Strategy::automatic
                                                                           : transactions::Strategy::protocol,
                                            .lease = lease},
                           .sweep = false,
                           .runtime = {.clock = clock_, .random = random_},
                           .executor = &at_once_});
}

std::vector<World::Seen> World::look(Application& by, const std::vector<std::string>& names, Level level) const {
    std::vector<Seen> seen;
    if (subject_ == Subject::streams) {
        for (const std::string& name : names) {
            const Loaded<Register> loaded = by.load<Register>(name);
            seen.push_back({loaded.state.value, loaded.version});
        }
        return seen;
    }
    for (const auto& row : by.rows<RegisterRow>().get_all({names.begin(), names.end()}, isolation(level))) {
        seen.push_back({row ? row->value : 0, 0});
    }
    return seen;
}

std::optional<std::vector<int>> World::read(Application& by, const std::vector<std::string>& names, Level level) {
    std::vector<int> values;
    if (level == Level::serializable) {
        const bool committed = commit(by, [&](Transaction& tx) {
            values.clear();
            for (const std::string& name : names) values.push_back(read(tx, name));
        });
        if (!committed) return std::nullopt;
        return values;
    }
    for (const Seen& seen : look(by, names, level)) values.push_back(seen.value);
    return values;
}

int World::read(Transaction& tx, const std::string& name) const {
    if (subject_ == Subject::streams) return tx.load<Register>(name).value;
    return tx.rows<RegisterRow>().get(name).value_or(RegisterRow{}).value;
}

void World::write(Transaction& tx, const std::string& name, int value) const {
    if (subject_ == Subject::streams) {
        tx.execute<Register>(name, Set{value});
    } else {
        tx.rows<RegisterRow>().put(name, {value});
    }
}

bool World::read_then_write(Application& by, const std::vector<std::string>& reads, const std::string& writes,
                            Level level, const std::function<std::optional<int>(const std::vector<int>&)>& decide) {
    std::vector<int> values;
    const auto write_decision = [&](Transaction& tx) {
        if (const std::optional<int> value = decide(values)) write(tx, writes, *value);
    };
    if (level == Level::serializable) {
        return commit(by, [&](Transaction& tx) {
            values.clear();
            for (const std::string& name : reads) values.push_back(read(tx, name));
            write_decision(tx);
        });
    }
    const std::vector<Seen> seen = look(by, reads, level);
    for (const Seen& one : seen) values.push_back(one.value);
    return commit(by, [&](Transaction& tx) {
        write_decision(tx);
        const auto read = std::ranges::find(reads, writes);
        if (level != Level::expected_version || read == reads.end()) return;
        const Version expected = seen.at(static_cast<std::size_t>(read - reads.begin())).version;
        if (tx.version<Register>(writes) != expected) tx.reject({"wrong_version"});
    });
}

const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {"G0", "dirty write", "Two transactions write x and y. In the end both values are of one of them.", g0},
        {"G1a", "aborted read", "A transaction writes x and aborts. Nobody has seen that value.", g1a},
        {"G1b", "intermediate read", "A transaction writes x and y twice. Nobody has seen a first value.", g1b},
        {"G1c", "circular information flow",
         "One reads y and writes x, the other reads x and writes y. They have not both seen what the other one wrote.",
         g1c},
        {"OTV", "observed transaction vanishes",
         "A transaction writes x and y. A reader that has seen one of its values does not see an older one in any "
         "later "
         "call.",
         otv},
        {"PMP", "predicate-many-preceders",
         "A transaction inserts two rows into a range. A read of the range sees both or none.", pmp},
        {"P4", "lost update", "Two add 1 to x, each to what it has read. x counts all additions.", p4},
        {"G-single", "read skew", "A transaction moves 10 from x to y. One call that reads both sees the same sum.",
         g_single},
        {"G2-item", "write skew", "Of x and y one must stay; each of two reads both and removes one. One stays.",
         g2_item},
        {"G2", "write skew on a range",
         "Each of two inserts a row into a range that it has found empty. There is only one.", g2},
    };
    return all;
}

const Case& read_skew_of_a_rejection() {
    static const Case one{"rejection", "read skew of a rejection", "", rejection};
    return one;
}

}  // namespace varve::isolation
