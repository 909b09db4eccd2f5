#include "list_append.h"

#include "cycles.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>

namespace varve::checkers {
namespace {

using TransactionIndex = std::uint32_t;
constexpr TransactionIndex nobody = std::numeric_limits<TransactionIndex>::max();

/// What is known of one value of one key.
struct Appended {
    TransactionIndex by = nobody;
    bool last = false;               ///< its transaction appends nothing to this key after it
    bool repeated = false;           ///< appended more than once: nothing follows from seeing it
    bool seen = false;               ///< in a committed read of somebody else
    std::uint32_t seen_in_read = 0;  ///< the read that was last found to contain it
};

/// The part of a committed transaction's read that others wrote.
struct OutsideRead {
    TransactionIndex by = 0;
    const std::vector<std::int64_t>* values = nullptr;
    std::size_t size = 0;  ///< the first so many of `values`
    bool tells_what_follows =
        true;  ///< false: something is wrong with it, draw no conclusion from what it does not contain
};

struct Key {
    std::string name;
    std::unordered_map<std::int64_t, Appended> values;
    std::vector<OutsideRead> reads;
    std::vector<TransactionIndex> writers;  ///< in the history's order, each once
};

// Real time orders all this many readers with all this many writers anyway; the square of more would not fit.
constexpr std::size_t unordered_pairs_side_max = 500;

class Checker {
  public:
    explicit Checker(const History& history) : history_(history), transactions_(history.transactions) {}

    std::vector<Finding> run() {
        index_appends();
        follow_reads();
        for (std::uint32_t k = 0; k < keys_.size(); ++k) infer(k);
        add_cycles();
        std::vector<Finding> result;
        for (auto& [anomaly, finding] : findings_) {
            if (const std::size_t more = count_[anomaly]; more > 1) {
                finding.explanation.push_back("(and " + std::to_string(more - 1) + " more of the kind)");
            }
            result.push_back(std::move(finding));
        }
        return result;
    }

  private:
    std::string text(std::int64_t value) const {
        const auto i = static_cast<std::size_t>(value);
        return value >= 0 && i < history_.value_names.size() ? history_.value_names[i] : std::to_string(value);
    }
    /// Long lists are shown by their end.
    std::string text(const std::vector<std::int64_t>& values, std::size_t size) const {
        constexpr std::size_t shown_max = 12;
        std::string s = "[";
        std::size_t i = size > shown_max ? size - shown_max : 0;
        if (i) s += "… ";
        for (bool first = true; i < size; ++i, first = false) s += (first ? "" : " ") + text(values[i]);
        return s + "]";
    }
    const std::string& id(TransactionIndex t) const { return transactions_[t].id; }

    void report(Anomaly anomaly, const std::function<std::string()>& sentence) {
        if (++count_[anomaly] == 1) findings_[anomaly] = {anomaly, {sentence()}, {}};
    }

    std::uint32_t key_index(const std::string& name) {
        const auto [it, fresh] = key_indexes_.emplace(name, static_cast<std::uint32_t>(keys_.size()));
        if (fresh) keys_.emplace_back().name = name;
        return it->second;
    }

    void index_appends() {
        for (TransactionIndex t = 0; t < transactions_.size(); ++t) {
            std::map<std::uint32_t, std::int64_t> last;
            for (const Operation& operation : transactions_[t].operations) {
                const auto* append = std::get_if<Append>(&operation);
                if (!append) continue;
                const std::uint32_t k = key_index(append->key);
                Key& key = keys_[k];
                const auto [it, fresh] = key.values.emplace(append->value, Appended{});
                if (fresh) {
                    it->second.by = t;
                } else {
                    it->second.repeated = true;
                    report(Anomaly::duplicate_appends, [&, by = it->second.by] {
                        return text(append->value) + " was appended to " + key.name + " by " + id(by) +
                               (by == t ? " twice" : " and by " + id(t));
                    });
                }
                if (last.insert_or_assign(k, append->value).second) key.writers.push_back(t);
            }
            for (const auto& [k, value] : last) keys_[k].values[value].last = true;
        }
    }

    /// Committed is who was acknowledged, and whoever is seen by the committed.
    void follow_reads() {
        committed_.assign(transactions_.size(), false);
        for (TransactionIndex t = 0; t < transactions_.size(); ++t) {
            if (transactions_[t].status == Status::ok) commit(t);
        }
        while (!to_follow_.empty()) {
            const TransactionIndex t = to_follow_.front();
            to_follow_.pop_front();
            std::map<std::uint32_t, std::vector<std::int64_t>> own;
            for (const Operation& operation : transactions_[t].operations) {
                if (const auto* append = std::get_if<Append>(&operation)) {
                    own[key_index(append->key)].push_back(append->value);
                } else if (const auto& read = std::get<Read>(operation); read.values) {
                    const std::uint32_t k = key_index(read.key);
                    follow(t, keys_[k], *read.values, own[k]);
                }
            }
        }
    }

    void commit(TransactionIndex t) {
        if (committed_[t]) return;
        committed_[t] = true;
        to_follow_.push_back(t);
    }

    void follow(TransactionIndex t, Key& key, const std::vector<std::int64_t>& values,
                const std::vector<std::int64_t>& own) {
        OutsideRead read{t, &values, values.size(), true};
        if (values.size() >= own.size() && std::equal(own.rbegin(), own.rend(), values.rbegin())) {
            read.size -= own.size();
        } else {
            read.tells_what_follows = false;
            report(Anomaly::internal, [&] {
                return id(t) + " read " + key.name + " = " + text(values, values.size()) +
                       ", which does not end in its own earlier appends " + text(own, own.size());
            });
        }
        ++read_count_;
        for (std::size_t i = 0; i < read.size; ++i) {
            Appended& appended = key.values[values[i]];
            if (appended.seen_in_read == read_count_) {
                report(Anomaly::duplicate_appends, [&] {
                    return id(t) + " read " + key.name + " = " + text(values, values.size()) + ", where " +
                           text(values[i]) + " comes twice";
                });
                cut(read, i);
                break;
            }
            appended.seen_in_read = read_count_;
            if (appended.by == t) {
                if (read.tells_what_follows) {  // else it has been reported
                    report(Anomaly::internal, [&] {
                        return id(t) + " read " + key.name + " = " + text(values, values.size()) + " with its own " +
                               text(values[i]) + " where it cannot be yet";
                    });
                }
                cut(read, i);
                break;
            }
            appended.seen = true;
            if (appended.by == nobody) {
                report(Anomaly::garbage_read, [&] {
                    return id(t) + " read " + key.name + " = " + text(values, values.size()) +
                           ", but nobody appended " + text(values[i]);
                });
            } else if (appended.repeated) {
                continue;
            } else if (transactions_[appended.by].status == Status::info) {
                commit(appended.by);
            } else if (transactions_[appended.by].status == Status::fail) {
                report(Anomaly::g1a, [&] {
                    return id(t) + " read " + key.name + " = " + text(values, values.size()) + ", but " +
                           text(values[i]) + " was appended by " + id(appended.by) +
                           ", which was told that it had failed";
                });
            }
        }
        if (read.size > 0) {
            const Appended& end = key.values[values[read.size - 1]];
            if (end.by != nobody && !end.last && !end.repeated && transactions_[end.by].status != Status::fail) {
                // An intermediate version is none that anybody installed: it has no next one.
                read.tells_what_follows = false;
                report(Anomaly::g1b, [&] {
                    return id(t) + " read " + key.name + " = " + text(values, values.size()) + ", but " +
                           text(values[read.size - 1]) + " is not the last that " + id(end.by) + " appended to it";
                });
            }
        }
        key.reads.push_back(read);
    }

    static void cut(OutsideRead& read, std::size_t size) {
        // The rest still counts as seen: never conclude that it was missing.
        read.size = size;
        read.tells_what_follows = false;
    }

    TransactionIndex committed_writer(const Key& key, std::int64_t value) const {
        const auto it = key.values.find(value);
        if (it == key.values.end() || it->second.by == nobody || it->second.repeated) return nobody;
        return committed_[it->second.by] ? it->second.by : nobody;
    }

    void depend(TransactionIndex from, TransactionIndex to, EdgeKind kind, std::uint32_t key, std::int64_t before,
                std::int64_t after, bool exact = true) {
        if (from != to) dependencies_.push_back({from, to, kind, key, before, after, exact});
    }

    /// The edges that one key gives.
    void infer(std::uint32_t k) {
        Key& key = keys_[k];
        const OutsideRead* longest = nullptr;
        for (const OutsideRead& read : key.reads) {
            if (!longest || read.size > longest->size) longest = &read;
        }
        const std::vector<std::int64_t> none;
        const std::vector<std::int64_t>& order = longest ? *longest->values : none;
        const std::size_t size = longest ? longest->size : 0;

        // Per position: the nearest committed writer before it (exclusive) and from it on (inclusive), as positions.
        constexpr std::size_t absent = std::numeric_limits<std::size_t>::max();
        std::vector<TransactionIndex> writer(size, nobody);
        std::vector<std::size_t> previous(size + 1, absent), next(size + 1, absent);
        for (std::size_t i = 0; i < size; ++i) {
            writer[i] = committed_writer(key, order[i]);
            previous[i + 1] = writer[i] == nobody ? previous[i] : i;
        }
        for (std::size_t i = size; i-- > 0;) next[i] = writer[i] == nobody ? next[i + 1] : i;
        for (std::size_t i = 1; i < size; ++i) {
            if (writer[i] == nobody || previous[i] == absent) continue;
            depend(writer[previous[i]], writer[i], EdgeKind::ww, k, order[previous[i]], order[i]);
        }

        bool compatible = true;
        std::vector<TransactionIndex> readers_of_all;
        for (const OutsideRead& read : key.reads) {
            const auto& values = *read.values;
            const bool prefix =
                std::equal(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(read.size), order.begin());
            if (!prefix) {
                compatible = false;
                report(Anomaly::incompatible_order, [&] {
                    return id(longest->by) + " read " + key.name + " = " + text(order, order.size()) + ", but " +
                           id(read.by) + " read " + text(values, values.size());
                });
                const TransactionIndex by = committed_writer(key, values[read.size - 1]);
                if (by != nobody) depend(by, read.by, EdgeKind::wr, k, 0, values[read.size - 1]);
                continue;
            }
            if (const std::size_t i = previous[read.size]; i != absent) {
                depend(writer[i], read.by, EdgeKind::wr, k, 0, order[i]);
            }
            if (!read.tells_what_follows) continue;
            if (const std::size_t i = next[read.size]; i != absent) {
                depend(read.by, writer[i], EdgeKind::rw, k, 0, order[i]);
            } else {
                readers_of_all.push_back(read.by);
            }
        }
        if (compatible)
            infer_unseen(k, readers_of_all, previous[size] == absent ? nobody : writer[previous[size]],
                         previous[size] == absent ? 0 : order[previous[size]]);
    }

    /// A list only grows. So an acknowledged append that no read shows lies behind the longest read: after the last
    /// writer in it, and after everybody who read no more than that. The order among several of them stays unknown.
    void infer_unseen(std::uint32_t k, std::vector<TransactionIndex>& readers, TransactionIndex last,
                      std::int64_t last_value) {
        Key& key = keys_[k];
        std::vector<std::pair<TransactionIndex, std::int64_t>> unseen;
        for (const TransactionIndex t : key.writers) {
            if (!committed_[t]) continue;
            for (const Operation& operation : transactions_[t].operations) {
                const auto* append = std::get_if<Append>(&operation);
                if (!append || append->key != key.name) continue;
                const Appended& appended = key.values[append->value];
                if (appended.seen || appended.repeated) continue;
                unseen.emplace_back(t, append->value);
                break;
            }
        }
        const bool exact = unseen.size() == 1;
        if (last != nobody) {
            for (const auto& [t, value] : unseen) depend(last, t, EdgeKind::ww, k, last_value, value, exact);
        }
        std::sort(readers.begin(), readers.end());
        readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
        if (readers.size() * unseen.size() > unordered_pairs_side_max * unordered_pairs_side_max) {
            // Keep those that are the most likely to contradict each other: late readers, early writers.
            const auto began = [&](TransactionIndex t) {
                return transactions_[t].invoke.value_or(std::numeric_limits<std::int64_t>::min());
            };
            const auto ended = [&](TransactionIndex t) {
                return transactions_[t].complete.value_or(std::numeric_limits<std::int64_t>::max());
            };
            std::sort(readers.begin(), readers.end(), [&](auto a, auto b) { return began(a) > began(b); });
            std::sort(unseen.begin(), unseen.end(),
                      [&](const auto& a, const auto& b) { return ended(a.first) < ended(b.first); });
            readers.resize(std::min(readers.size(), unordered_pairs_side_max));
            unseen.resize(std::min(unseen.size(), unordered_pairs_side_max));
        }
        for (const TransactionIndex reader : readers) {
            for (const auto& [t, value] : unseen) depend(reader, t, EdgeKind::rw, k, 0, value, exact);
        }
    }

    void add_cycles() {
        std::vector<Interval> times(transactions_.size());
        for (TransactionIndex t = 0; t < transactions_.size(); ++t) {
            if (!committed_[t]) continue;
            times[t].invoke = transactions_[t].invoke;
            if (transactions_[t].status == Status::ok) times[t].complete = transactions_[t].complete;
        }
        for (const auto& [anomaly, cycle] : find_cycles(dependencies_, times)) {
            Finding finding{anomaly, {}, {}};
            for (const Step& step : cycle) {
                finding.cycle.push_back(id(step.from));
                finding.explanation.push_back(describe(step));
            }
            findings_[anomaly] = std::move(finding);
        }
    }

    std::string describe(const Step& step) const {
        constexpr std::array<const char*, 4> names{"ww", "wr", "rw", "rt"};
        const std::string &from = id(step.from), &to = id(step.to);
        std::string line = from + " -" + names[static_cast<std::size_t>(step.kind)] + "-> " + to + ": ";
        if (step.kind == EdgeKind::rt) {
            return line + from + " had completed at " + std::to_string(*transactions_[step.from].complete) +
                   " before " + to + " began at " + std::to_string(*transactions_[step.to].invoke);
        }
        const Dependency& d = dependencies_[step.dependency];
        const std::string& key = keys_[d.key].name;
        switch (step.kind) {
            case EdgeKind::ww:
                return line + to + " appended " + text(d.after) + " to " + key +
                       (d.exact ? " behind the " : " somewhere behind the ") + text(d.before) + " of " + from;
            case EdgeKind::wr: return line + to + " read " + text(d.after) + " in " + key + ", appended by " + from;
            default: return line + from + " read " + key + " before the " + text(d.after) + " that " + to + " appended";
        }
    }

    const History& history_;
    const std::vector<Transaction>& transactions_;
    std::unordered_map<std::string, std::uint32_t> key_indexes_;
    std::deque<Key> keys_;
    std::vector<bool> committed_;
    std::deque<TransactionIndex> to_follow_;
    std::uint32_t read_count_ = 0;
    std::vector<Dependency> dependencies_;
    std::map<Anomaly, Finding> findings_;
    std::map<Anomaly, std::size_t> count_;
};

}  // namespace

std::string_view name(Anomaly anomaly) {
    switch (anomaly) {
        case Anomaly::garbage_read: return "garbage-read";
        case Anomaly::duplicate_appends: return "duplicate-appends";
        case Anomaly::incompatible_order: return "incompatible-order";
        case Anomaly::internal: return "internal";
        case Anomaly::g1a: return "G1a";
        case Anomaly::g1b: return "G1b";
        case Anomaly::g0: return "G0";
        case Anomaly::g1c: return "G1c";
        case Anomaly::g_single: return "G-single";
        case Anomaly::g_nonadjacent: return "G-nonadjacent";
        case Anomaly::g2_item: return "G2-item";
        case Anomaly::g0_realtime: return "G0-realtime";
        case Anomaly::g1c_realtime: return "G1c-realtime";
        case Anomaly::g_single_realtime: return "G-single-realtime";
        case Anomaly::g_nonadjacent_realtime: return "G-nonadjacent-realtime";
        case Anomaly::g2_item_realtime: return "G2-item-realtime";
    }
    return "?";
}

std::vector<Finding> check(const History& history) {
    return Checker(history).run();
}

std::set<Anomaly> anomalies_allowed(Level level) {
    switch (level) {
        case Level::serializable: return {};
        case Level::snapshot: return {Anomaly::g2_item, Anomaly::g2_item_realtime};
        case Level::committed:
            return {Anomaly::g_single,          Anomaly::g_nonadjacent,          Anomaly::g2_item,
                    Anomaly::g_single_realtime, Anomaly::g_nonadjacent_realtime, Anomaly::g2_item_realtime};
    }
    return {};
}

}  // namespace varve::checkers
