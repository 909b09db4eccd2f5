#include "cycles.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace varve::checkers {
namespace {

using Node = std::uint32_t;
constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

constexpr unsigned bit(EdgeKind kind) {
    return 1U << static_cast<unsigned>(kind);
}
constexpr unsigned writes = bit(EdgeKind::ww), reads = bit(EdgeKind::wr), antis = bit(EdgeKind::rw),
                   clock = bit(EdgeKind::rt);
constexpr unsigned everything = writes | reads | antis | clock;

struct Arc {
    Node from, to;
    EdgeKind kind;
    std::uint32_t dependency;
};

/// Transactions are the nodes 0 … n - 1. Real time would need an edge for every pair; instead each moment at which
/// somebody completed is a node of its own: transaction → its completion → next moment → … → whoever began after it.
/// Linear, and exact.
class Graph {
  public:
    Graph(const std::vector<Dependency>& dependencies, const std::vector<Interval>& times, bool with_clock)
        : transactions_(static_cast<Node>(times.size())) {
        arcs_.reserve(dependencies.size());
        for (std::uint32_t i = 0; i < dependencies.size(); ++i) {
            arcs_.push_back({dependencies[i].from, dependencies[i].to, dependencies[i].kind, i});
        }
        sort();
        // Of parallel edges the strongest stays, so that a cycle counts as the worst that it is.
        arcs_.erase(std::unique(arcs_.begin(), arcs_.end(),
                                [](const Arc& a, const Arc& b) { return a.from == b.from && a.to == b.to; }),
                    arcs_.end());
        nodes_ = transactions_;
        if (with_clock) {
            add_clock(times);
            sort();
        }
        first_.assign(nodes_ + 1, 0);
        for (const Arc& arc : arcs_) ++first_[arc.from + 1];
        for (Node v = 0; v < nodes_; ++v) first_[v + 1] += first_[v];
    }

    Node nodes() const { return nodes_; }
    bool is_transaction(Node v) const { return v < transactions_; }
    std::uint32_t begin(Node v) const { return first_[v]; }
    std::uint32_t end(Node v) const { return first_[v + 1]; }
    const Arc& arc(std::uint32_t i) const { return arcs_[i]; }
    const std::vector<Arc>& arcs() const { return arcs_; }

    const Arc* direct(Node from, Node to) const {
        for (auto i = begin(from); i < end(from); ++i) {
            if (arcs_[i].to == to) return &arcs_[i];
        }
        return nullptr;
    }

    /// Strongly connected components of the part with these kinds (Tarjan, without recursion): a label per node. A path
    /// from v to w needs label(v) >= label(w).
    std::vector<std::uint32_t> components(unsigned kinds) const {
        std::vector<std::uint32_t> label(nodes_, none), index(nodes_, none), low(nodes_, 0), next(nodes_, 0);
        std::vector<Node> open, path;
        std::uint32_t counter = 0, labels = 0;
        for (Node root = 0; root < nodes_; ++root) {
            if (index[root] != none) continue;
            path.push_back(root);
            while (!path.empty()) {
                const Node v = path.back();
                if (index[v] == none) {
                    index[v] = low[v] = counter++;
                    next[v] = begin(v);
                    open.push_back(v);
                }
                bool deeper = false;
                for (; next[v] < end(v); ++next[v]) {
                    const Arc& a = arcs_[next[v]];
                    if (!(bit(a.kind) & kinds)) continue;
                    if (index[a.to] == none) {
                        path.push_back(a.to);
                        deeper = true;
                        break;
                    }
                    if (label[a.to] == none) low[v] = std::min(low[v], low[a.to]);
                }
                if (deeper) continue;
                if (low[v] == index[v]) {
                    Node w = none;
                    do {
                        w = open.back();
                        open.pop_back();
                        label[w] = labels;
                    } while (w != v);
                    ++labels;
                }
                path.pop_back();
                if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[v]);
            }
        }
        return label;
    }

  private:
    void sort() {
        std::sort(arcs_.begin(), arcs_.end(), [](const Arc& a, const Arc& b) {
            return std::tie(a.from, a.to, a.kind, a.dependency) < std::tie(b.from, b.to, b.kind, b.dependency);
        });
    }
    void add_clock(const std::vector<Interval>& times) {
        std::vector<std::int64_t> moments;
        for (const Interval& t : times) {
            if (t.complete) moments.push_back(*t.complete);
        }
        std::sort(moments.begin(), moments.end());
        moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
        nodes_ += static_cast<Node>(moments.size());
        const auto moment = [&](auto it) { return transactions_ + static_cast<Node>(it - moments.begin()); };
        for (Node m = transactions_; m + 1 < nodes_; ++m) arcs_.push_back({m, m + 1, EdgeKind::rt, 0});
        for (Node v = 0; v < transactions_; ++v) {
            if (times[v].complete) {
                const auto at = std::lower_bound(moments.begin(), moments.end(), *times[v].complete);
                arcs_.push_back({v, moment(at), EdgeKind::rt, 0});
            }
            if (times[v].invoke) {
                const auto after = std::lower_bound(moments.begin(), moments.end(), *times[v].invoke);
                if (after != moments.begin()) arcs_.push_back({moment(after - 1), v, EdgeKind::rt, 0});
            }
        }
    }

    Node transactions_ = 0, nodes_ = 0;
    std::vector<Arc> arcs_;
    std::vector<std::uint32_t> first_;
};

enum Rank { rank_g0, rank_g1c, rank_single, rank_nonadjacent, rank_item, rank_nothing };

struct Class {
    Rank rank;
    bool realtime;
};

Class classify(const Cycle& cycle) {
    std::size_t antis_seen = 0;
    bool read = false, realtime = false, adjacent = false;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        read |= cycle[i].kind == EdgeKind::wr;
        realtime |= cycle[i].kind == EdgeKind::rt;
        if (cycle[i].kind != EdgeKind::rw) continue;
        ++antis_seen;
        adjacent |= cycle[(i + 1) % cycle.size()].kind == EdgeKind::rw;
    }
    const Rank rank = antis_seen == 0   ? (read ? rank_g1c : rank_g0)
                      : antis_seen == 1 ? rank_single
                      : adjacent        ? rank_item
                                        : rank_nonadjacent;
    return {rank, realtime};
}

/// The cycles of one component, worst class first.
class Search {
  public:
    explicit Search(const Graph& graph, bool with_clock)
        : graph_(graph),
          with_clock_(with_clock),
          whole_(graph.components(everything)),
          stamp_(std::size_t{graph.nodes()} * 4, 0),
          came_by_(std::size_t{graph.nodes()} * 4),
          came_from_(std::size_t{graph.nodes()} * 4) {}

    struct Found {
        std::uint32_t component;
        Rank rank;
        Cycle cycle;
    };

    const std::vector<std::uint32_t>& components() const { return whole_; }

    /// With a clock: in each component only its worst class, and only if that is worse than `known[component]`.
    std::vector<Found> run(const std::map<std::uint32_t, Rank>& known) {
        std::map<std::uint32_t, std::vector<std::uint32_t>> inner;  // component → its arcs between transactions
        for (std::uint32_t i = 0; i < graph_.arcs().size(); ++i) {
            const Arc& a = graph_.arc(i);
            if (a.kind != EdgeKind::rt && whole_[a.from] == whole_[a.to]) inner[whole_[a.from]].push_back(i);
        }
        if (inner.empty()) return {};
        const unsigned rt = with_clock_ ? clock : 0;
        written_ = graph_.components(writes | rt);
        forward_ = graph_.components(writes | reads | rt);
        std::vector<Found> found;
        for (const auto& [component, arcs] : inner) {
            best_.clear();
            limit_ = rank_nothing;
            if (const auto it = known.find(component); it != known.end()) limit_ = it->second;
            for (int rank = rank_g0; rank < limit_; ++rank) {
                if (with_clock_ && !best_.empty()) break;
                look_for(static_cast<Rank>(rank), arcs, rt);
            }
            for (auto& [rank, cycle] : best_) {
                if (rank < limit_) found.push_back({component, rank, std::move(cycle)});
                if (with_clock_) break;
            }
        }
        return found;
    }

  private:
    // A thoroughly broken history has huge components; the search of one class in one component visits at most this
    // many arcs.
    static constexpr std::size_t visits_max = 20'000'000;
    static constexpr int examples_max = 50;

    void look_for(Rank rank, const std::vector<std::uint32_t>& arcs, unsigned rt) {
        visits_ = 0;
        int examples = 0;
        for (const std::uint32_t i : arcs) {
            if (visits_ > visits_max || examples >= examples_max) return;
            if (const auto it = best_.find(rank); it != best_.end() && it->second.size() == 2) return;
            const Arc& a = graph_.arc(i);
            bool closed = false;
            switch (rank) {
                case rank_g0: closed = a.kind == EdgeKind::ww && close(i, writes | rt, written_); break;
                case rank_g1c: closed = a.kind == EdgeKind::wr && close(i, writes | reads | rt, forward_); break;
                case rank_single: closed = a.kind == EdgeKind::rw && close(i, writes | reads | rt, forward_); break;
                case rank_nonadjacent: closed = a.kind == EdgeKind::rw && close_without_neighbours(i); break;
                case rank_item: closed = a.kind == EdgeKind::rw && close_after_two(i); break;
                case rank_nothing: break;
            }
            examples += closed;
        }
    }

    /// Arc u → v and the shortest way from v back to u.
    bool close(std::uint32_t first, unsigned kinds, const std::vector<std::uint32_t>& labels) {
        const Arc& a = graph_.arc(first);
        const auto way = shortest(a.to, a.from, kinds, labels, none);
        if (!way) return false;
        std::vector<std::uint32_t> walk{first};
        walk.insert(walk.end(), way->begin(), way->end());
        return record(walk);
    }

    bool close_after_two(std::uint32_t first) {
        const Arc& a = graph_.arc(first);
        for (auto i = graph_.begin(a.to); i < graph_.end(a.to); ++i) {
            const Arc& b = graph_.arc(i);
            if (b.kind != EdgeKind::rw || whole_[b.to] != whole_[a.from]) continue;
            std::vector<std::uint32_t> walk{first, i};
            if (b.to != a.from) {
                const auto way = shortest(b.to, a.from, everything, whole_, a.to);
                if (!way) continue;
                walk.insert(walk.end(), way->begin(), way->end());
            }
            if (record(walk)) return true;
        }
        return false;
    }

    /// The shortest walk that begins with this rw, contains another one, and never two in a row. A state is a node,
    /// whether an rw led there, and whether it was the second. A walk may cross itself; what is recorded are its simple
    /// parts.
    bool close_without_neighbours(std::uint32_t first) {
        const Arc& a = graph_.arc(first);
        const auto state = [](Node v, bool anti, bool second) { return v * 4 + (anti ? 2U : 0U) + (second ? 1U : 0U); };
        ++round_;
        std::deque<std::uint32_t> queue{state(a.to, true, false)};
        stamp_[queue.front()] = round_;
        came_by_[queue.front()] = first;
        const std::uint32_t start = queue.front(), goal = state(a.from, false, true);
        while (!queue.empty() && visits_ <= visits_max) {
            const auto at = queue.front();
            queue.pop_front();
            if (at == goal) break;
            const Node v = at / 4;
            if (v == a.from) continue;
            for (auto i = graph_.begin(v); i < graph_.end(v); ++i) {
                const Arc& b = graph_.arc(i);
                ++visits_;
                const bool anti = b.kind == EdgeKind::rw;
                if (whole_[b.to] != whole_[v] || (anti && (at & 2U))) continue;
                const auto to = state(b.to, anti, anti || (at & 1U));
                if (stamp_[to] == round_) continue;
                stamp_[to] = round_;
                came_by_[to] = i;
                came_from_[to] = at;
                graph_.is_transaction(v) ? queue.push_back(to) : queue.push_front(to);
            }
        }
        if (stamp_[goal] != round_) return false;
        std::vector<std::uint32_t> walk;
        for (auto at = goal; at != start; at = came_from_[at]) walk.push_back(came_by_[at]);
        walk.push_back(first);
        std::reverse(walk.begin(), walk.end());
        return record(walk);
    }

    std::optional<std::vector<std::uint32_t>> shortest(Node from, Node to, unsigned kinds,
                                                       const std::vector<std::uint32_t>& labels, Node avoid) {
        if (labels[from] < labels[to]) return std::nullopt;
        ++round_;
        std::deque<Node> queue{from};
        stamp_[from] = round_;
        while (!queue.empty() && visits_ <= visits_max) {
            const Node v = queue.front();
            queue.pop_front();
            if (v == to) break;
            for (auto i = graph_.begin(v); i < graph_.end(v); ++i) {
                const Arc& a = graph_.arc(i);
                ++visits_;
                if (!(bit(a.kind) & kinds) || a.to == avoid || stamp_[a.to] == round_) continue;
                if (labels[a.to] < labels[to] || whole_[a.to] != whole_[from]) continue;
                stamp_[a.to] = round_;
                came_by_[a.to] = i;
                // From moment to moment costs nothing.
                graph_.is_transaction(v) ? queue.push_back(a.to) : queue.push_front(a.to);
            }
        }
        if (stamp_[to] != round_) return std::nullopt;
        std::vector<std::uint32_t> way;
        for (Node v = to; v != from; v = graph_.arc(came_by_[v]).from) way.push_back(came_by_[v]);
        std::reverse(way.begin(), way.end());
        return way;
    }

    /// Cuts a closed walk into simple cycles and keeps those that are the best of their class; true if any was of use.
    bool record(const std::vector<std::uint32_t>& walk) {
        Cycle steps;
        for (const std::uint32_t i : walk) {
            const Arc& a = graph_.arc(i);
            if (graph_.is_transaction(a.from)) {
                steps.push_back({a.from, a.to, a.kind, a.dependency});
            } else {
                steps.back().to = a.to;
            }
        }
        for (Step& step : steps) {  // no clock where data alone say as much
            const Arc* data = step.kind == EdgeKind::rt ? graph_.direct(step.from, step.to) : nullptr;
            if (data && data->kind != EdgeKind::rw) step = {step.from, step.to, data->kind, data->dependency};
        }
        bool useful = false;
        Cycle open;
        for (const Step& step : steps) {
            open.push_back(step);
            const auto again = std::find_if(open.begin(), open.end(), [&](const Step& s) { return s.from == step.to; });
            if (again == open.end()) continue;
            Cycle cycle(again, open.end());
            open.erase(again, open.end());
            const Class is = classify(cycle);
            if (is.realtime != with_clock_) continue;
            useful = true;
            Cycle& best = best_[is.rank];
            if (best.empty() || cycle.size() < best.size()) best = std::move(cycle);
        }
        return useful;
    }

    const Graph& graph_;
    const bool with_clock_;
    std::vector<std::uint32_t> whole_, written_, forward_;  // labels: all edges; ww (and rt); ww, wr (and rt)
    std::map<Rank, Cycle> best_;
    Rank limit_ = rank_nothing;
    std::size_t visits_ = 0;
    std::uint32_t round_ = 0;
    std::vector<std::uint32_t> stamp_, came_by_, came_from_;
};

constexpr Anomaly anomaly_of(Rank rank, bool realtime) {
    constexpr Anomaly plain[] = {Anomaly::g0, Anomaly::g1c, Anomaly::g_single, Anomaly::g_nonadjacent,
                                 Anomaly::g2_item};
    constexpr Anomaly timed[] = {Anomaly::g0_realtime, Anomaly::g1c_realtime, Anomaly::g_single_realtime,
                                 Anomaly::g_nonadjacent_realtime, Anomaly::g2_item_realtime};
    return realtime ? timed[rank] : plain[rank];
}

}  // namespace

std::map<Anomaly, Cycle> find_cycles(const std::vector<Dependency>& dependencies, const std::vector<Interval>& times) {
    std::map<Anomaly, Cycle> result;
    const auto keep = [&](Anomaly anomaly, Cycle&& cycle) {
        Cycle& best = result[anomaly];
        if (best.empty() || cycle.size() < best.size()) best = std::move(cycle);
    };
    const Graph data(dependencies, times, false);
    auto found = Search(data, false).run({});

    const Graph timed(dependencies, times, true);
    Search search(timed, true);
    std::map<std::uint32_t, Rank> known;
    for (auto& f : found) {
        const std::uint32_t component = search.components()[f.cycle[0].from];
        const auto [it, fresh] = known.emplace(component, f.rank);
        if (!fresh) it->second = std::min(it->second, f.rank);
        keep(anomaly_of(f.rank, false), std::move(f.cycle));
    }
    for (auto& f : search.run(known)) keep(anomaly_of(f.rank, true), std::move(f.cycle));
    return result;
}

}  // namespace varve::checkers
