#pragma once

#include <varve/processes/process.h>
#include <varve/varve.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

/// The domain that the tests of processes share: an order is placed, stock is reserved, a payment is asked for.
namespace varve::checkout {

struct Placed {
    std::string product;
    std::int64_t quantity = 0;
};
struct Cancelled {
    std::string why;
};
struct Place {
    std::string product;
    std::int64_t quantity = 0;
};
struct Cancel {
    std::string why;
};

struct Purchase {
    static constexpr std::string_view name = "purchase";
    using Event = std::variant<Placed, Cancelled>;

    bool is_open = false;
    std::string why = {};

    void apply(const Placed&) { is_open = true; }
    void apply(const Cancelled& e) {
        is_open = false;
        why = e.why;
    }
    Decision<Event> decide(const Place& c) const { return Placed{c.product, c.quantity}; }
    Decision<Event> decide(const Cancel& c) const {
        if (!is_open) return reject("not_open");
        return Cancelled{c.why};
    }
};

struct Filled {
    std::int64_t quantity = 0;
};
struct Reserved {
    std::int64_t quantity = 0;
};
struct Fill {
    std::int64_t quantity = 0;
};
struct Reserve {
    std::int64_t quantity = 0;
};

struct Stock {
    static constexpr std::string_view name = "stock";
    using Event = std::variant<Filled, Reserved>;

    std::int64_t free = 0;
    std::int64_t reserved = 0;

    void apply(const Filled& e) { free += e.quantity; }
    void apply(const Reserved& e) {
        free -= e.quantity;
        reserved += e.quantity;
    }
    Decision<Event> decide(const Fill& c) const { return Filled{c.quantity}; }
    Decision<Event> decide(const Reserve& c) const {
        if (c.quantity > free) return reject("out_of_stock", "there are " + std::to_string(free));
        return Reserved{c.quantity};
    }
};

struct Paid {
    std::string order;
};
struct Failed {
    std::string order;
};
struct Pay {
    std::string order;
};
struct Fail {
    std::string order;
};

struct Payment {
    static constexpr std::string_view name = "payment";
    using Event = std::variant<Paid, Failed>;

    void apply(const Paid&) {}
    void apply(const Failed&) {}
    Decision<Event> decide(const Pay& c) const { return Paid{c.order}; }
    Decision<Event> decide(const Fail& c) const { return Failed{c.order}; }
};

/// An effect.
struct AskPayment {
    std::string order;
};

struct Started {
    std::string product;
};
struct Done {};
struct GivenUp {
    std::string why;
};

/// Does what an order needs, and gives up where that cannot be.
struct Checkout {
    static constexpr std::string_view name = "checkout";
    using Event = std::variant<Started, Done, GivenUp>;
    using ListensTo = EventsOf<Purchase, Payment>;

    std::int64_t started = 0;
    bool is_done = false;

    void apply(const Started&) { ++started; }
    void apply(const Done&) { is_done = true; }
    void apply(const GivenUp&) { is_done = true; }

    static std::optional<std::string> on(const Placed&, const EventContext& c) { return std::string{c.aggregate_id()}; }
    static std::optional<std::string> on(const Paid& e, const EventContext&) { return of(e.order); }
    static std::optional<std::string> on(const Failed& e, const EventContext&) { return of(e.order); }

    void react(const Placed& e, Reaction& r) const {
        const std::string order{r.input().aggregate_id()};
        if (const Executed reserved = r.execute<Stock>(e.product, Reserve{e.quantity}); !reserved) {
            r.execute<Purchase>(order, Cancel{reserved.rejection()->code});
            r.record(GivenUp{reserved.rejection()->code});
            return;
        }
        r.effect(AskPayment{order});
        r.record(Started{e.product});
    }
    void react(const Paid&, Reaction& r) const { r.record(Done{}); }
    void react(const Failed& e, Reaction& r) const {
        r.execute<Purchase>(e.order, Cancel{"unpaid"});  // a rejection is not looked at
        r.record(GivenUp{"unpaid"});
    }

  private:
    static std::optional<std::string> of(const std::string& order) {
        if (order.empty()) return std::nullopt;  // a payment for something else
        return order;
    }
};

}  // namespace varve::checkout
