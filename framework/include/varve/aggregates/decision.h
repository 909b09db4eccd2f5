#pragma once

#include <varve/core/error.h>
#include <varve/events/event_type.h>

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace varve {

/// A command refused for a reason of the domain: a value, not an exception.
struct Rejection {
    std::string code;          ///< for programs, e.g. "insufficient_funds"
    std::string message = {};  ///< for people; may be empty

    bool operator==(const Rejection&) const = default;
};

inline Rejection reject(std::string code, std::string message = {}) {
    return {std::move(code), std::move(message)};
}

/// What an aggregate decides on a command: any number of events, none included, or a rejection.
///
///     Decision<Event> decide(const Withdraw& c) const {
///         if (c.cents > balance) return reject("insufficient_funds");
///         return Withdrawn{c.cents};                       // or: return {Withdrawn{…}, LimitReached{}};
///     }
///
/// A decision also carries what is to be done outside the store once its events are committed (Transaction::effect):
///
///         return Decision<Event>{Withdrawn{c.cents}}.effect(SendReceipt{c.to});
template <class Event>
class [[nodiscard]] Decision {
  public:
    Decision() = default;
    Decision(Rejection rejection) : state_(std::move(rejection)) {}
    Decision(std::vector<Event> events) : state_(std::move(events)) {}
    template <class... Some>
    requires(sizeof...(Some) > 0 && (std::constructible_from<Event, Some&&> && ...) &&
             !(std::same_as<std::remove_cvref_t<Some>, Decision> || ...)) Decision(Some&&... events) {
        auto& list = std::get<0>(state_);
        list.reserve(sizeof...(Some));
        (list.emplace_back(std::forward<Some>(events)), ...);
    }

    /// InvalidError for a rejection: nothing of it is committed.
    template <EventType Effect>
    Decision&& effect(const Effect& effect) && {
        if (rejection() != nullptr) throw InvalidError("a rejected command has no effects; nothing of it is committed");
        effects_.push_back(encode_event(effect));
        return std::move(*this);
    }
    template <class Effect, VARVE_WHY(detail::RefusedEvent<Effect>)>
    requires(!EventType<Effect>) Decision && effect(const Effect& effect) && VARVE_REFUSED;

    const Rejection* rejection() const { return std::get_if<1>(&state_); }
    /// Empty if it is a rejection.
    const std::vector<Event>& events() const {
        static const std::vector<Event> none;
        const auto* events = std::get_if<0>(&state_);
        return events ? *events : none;
    }
    const std::vector<EventData>& effects() const { return effects_; }

  private:
    std::variant<std::vector<Event>, Rejection> state_;
    std::vector<EventData> effects_;
};

}  // namespace varve
