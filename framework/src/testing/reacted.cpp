#include "testing/expectations.h"

#include <varve/testing/reacted.h>

#include <algorithm>

namespace varve::testing::detail {
namespace {

class Tried final : public Reaction {
  public:
    Tried(const EventContext& input, const World& world, const Encoding& encode, ReactedTo& reacted)
        : Reaction(input), world_(world), encode_(encode), reacted_(reacted) {}

    Time now() const override { return world_.now; }
    bool cancel(std::string_view id) override {
        reacted_.cancelled.emplace_back(id);
        return !world_.timers_are_gone;
    }
    void expect_all_seen() const {
        const varve::detail::Refusal* const refusal = unseen();
        if (refusal == nullptr) return;
        fail(reacted_.place, reacted_.event + " led to the command " + refusal->command + ", which was " +
                                 described(refusal->rejection) +
                                 ", and nobody looked at that; look at what Reaction::execute returns");
    }

  private:
    std::optional<Rejection> execute(const varve::detail::GivenCommand& command) override {
        const std::string stream = stream_name(command.aggregate, command.id);
        std::string fields = command.json();
        reacted_.commands.push_back({.type = std::string{command.command} + " on " + stream,
                                     .data = fields.empty() ? std::string{"null"} : std::move(fields)});
        const auto found = std::ranges::find(world_.rejecting, stream, &Rejecting::stream);
        if (found == world_.rejecting.end()) return std::nullopt;
        return found->rejection;
    }
    void add_effect(EventData effect) override { reacted_.effects.push_back(std::move(effect)); }
    void add_event(const std::type_info& type, std::string_view name, const void* event) override {
        std::optional<EventData> encoded = encode_.event(type, event);
        if (!encoded) {
            fail(reacted_.place, reacted_.event + " led to " + std::string{name} +
                                     ", which is no event of the process; add it to its Event variant");
        }
        reacted_.events.push_back(*std::move(encoded));
    }

    std::string set_timer(Time due, const std::type_info& type, std::string_view name, const void* timer) override {
        std::optional<EventData> encoded = encode_.timer(type, timer);
        if (!encoded) {
            fail(reacted_.place, reacted_.event + " led to the timer " + std::string{name} +
                                     ", which is none of the process; add it to its Timers variant");
        }
        encoded->type = to_string(due) + " " + encoded->type;
        reacted_.timers.push_back(*std::move(encoded));
        return "timer-" + std::to_string(reacted_.timers.size());
    }

    const World& world_;
    const Encoding& encode_;
    ReactedTo& reacted_;
};

}  // namespace

ReactedTo react(Place place, const RecordedEvent& input, const World& world, const Encoding& encode,
                const std::function<void(Reaction&)>& react) {
    ReactedTo reacted{.place = place,
                      .event = input.event.type,
                      .commands = {},
                      .events = {},
                      .effects = {},
                      .timers = {},
                      .cancelled = {}};
    const EventContext context{input};
    Tried tried{context, world, encode, reacted};
    react(tried);
    tried.expect_all_seen();
    return reacted;
}

void expect_commands(const ReactedTo& reacted, const std::vector<EventData>& expected) {
    expect_same(reacted.place, reacted.event + " led to other commands", expected, reacted.commands);
}

void expect_events(const ReactedTo& reacted, const std::vector<EventData>& expected) {
    expect_same(reacted.place, reacted.event + " led to other events", expected, reacted.events);
}

void expect_effects(const ReactedTo& reacted, const std::vector<EventData>& expected) {
    expect_same(reacted.place, reacted.event + " led to other effects", expected, reacted.effects);
}

void expect_timers(const ReactedTo& reacted, const std::vector<EventData>& expected) {
    expect_same(reacted.place, reacted.event + " led to other timers", expected, reacted.timers);
}

void expect_cancelled(const ReactedTo& reacted, const std::vector<std::string>& expected) {
    const JsonDiff diff = diff_json(json::encode(expected), json::encode(reacted.cancelled));
    if (!diff.fields.empty()) fail(reacted.place, reacted.event + " cancelled other timers" + shown(diff));
}

}  // namespace varve::testing::detail
