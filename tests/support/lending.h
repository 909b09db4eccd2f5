#pragma once

#include <varve/processes/process.h>
#include <varve/varve.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The domain that the tests of timers share: books are lent, and who keeps them is reminded.
namespace varve::lending {

struct Lent {
    std::int64_t seconds = 0;
};
struct Returned {};
struct Lend {
    std::int64_t seconds = 0;
};
struct Return {};

struct Book {
    static constexpr std::string_view name = "book";
    using Event = std::variant<Lent, Returned>;

    bool is_lent = false;

    void apply(const Lent&) { is_lent = true; }
    void apply(const Returned&) { is_lent = false; }
    Decision<Event> decide(const Lend& c) const { return Lent{c.seconds}; }
    Decision<Event> decide(const Return&) const {
        if (!is_lent) return reject("not_lent", "it is on the shelf");
        return Returned{};
    }
};

/// An effect.
struct Letter {
    std::int64_t round = 0;
};
/// A timer.
struct Overdue {
    std::int64_t round = 1;
};

struct Set {
    std::string timer;
};
struct Reminded {
    std::int64_t round = 0;
    Time at;
};
struct Ended {
    bool was_waiting = false;
};

/// Reminds of a book that is overdue, up to three times.
struct Reminder {
    static constexpr std::string_view name = "reminder";
    using Event = std::variant<Set, Reminded, Ended>;
    using ListensTo = EventsOf<Book>;
    using Timers = std::variant<Overdue>;

    static inline bool is_broken = false;
    static inline std::vector<std::string> order = {};  ///< of those who were reminded

    std::string timer = {};
    std::vector<Time> reminded = {};

    void apply(const Set& e) { timer = e.timer; }
    void apply(const Reminded& e) { reminded.push_back(e.at); }
    void apply(const Ended&) { timer.clear(); }

    static std::optional<std::string> on(const Lent&, const EventContext& c) { return std::string{c.aggregate_id()}; }
    static std::optional<std::string> on(const Returned&, const EventContext& c) {
        return std::string{c.aggregate_id()};
    }

    void react(const Lent& e, Reaction& r) const {
        r.record(Set{r.at(r.now() + std::chrono::seconds{e.seconds}, Overdue{})});
    }
    void react(const Returned&, Reaction& r) const { r.record(Ended{r.cancel(timer)}); }
    void react(const Overdue& e, Reaction& r) const {
        if (is_broken) throw std::runtime_error("the printer is out of paper");
        order.emplace_back(r.input().aggregate_id());
        r.effect(Letter{e.round});
        r.record(Reminded{e.round, r.now()});
        if (e.round < 3) r.record(Set{r.at(r.now() + std::chrono::hours{1}, Overdue{e.round + 1})});
    }
};

}  // namespace varve::lending
