#pragma once

#include "events/stored_slot.h"
#include "transactions/slot.h"

#include <varve/store/item_store.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

namespace varve {

/// A stored slot of which one attribute was changed or taken away, as no version of varve writes it.
struct MutatedSlot {
    std::string what;  ///< "pending, _lease = -1"
    store::Key key;
    store::Item item;
    bool senseless;  ///< whether it must be found; else it may be a slot that somebody meant
};

/// Each attribute of each state of a slot, missing, of another type, and beyond its range.
inline std::vector<MutatedSlot> mutated_slots() {
    using namespace transactions;
    const store::Key slot = slot_key("account-a", 1);
    const Time time = Time{std::chrono::hours{500'000}};
    const Claim claim{
        .tx = "t", .primary = slot_key("account-b", 3), .primary_epoch = 2, .lease = time, .priority = time};
    const EventData event{"Deposited", 2, R"({"cents":5})"};
    const Metadata metadata{.command_id = "c", .correlation = "d", .causation = "e", .headers = {{"f", "g"}}};
    store::Item payload = events::encode_payload({{.events = {event}, .metadata = metadata, .effects = {event}}}, time);
    const store::Item of_two = events::encode_payload({{{event}, metadata}, {{event}, {}, {event}}}, time);
    const std::vector<store::Key> others{slot_key("account-c", 1), {"balances", "a"}, {"pairs", "a", "b"}};
    const auto item_of = [](const store::Write& write) { return std::get<store::Put>(write.action).item; };
    const auto committed = [&](Committed content) { return item_of(commit_free_slot(slot, 0, content)); };

    struct State {
        const char* name;
        store::Key key;
        store::Item item;
    };
    store::Item done = committed({.write_id = "w", .payload = payload, .participants = others});
    done.emplace("done", 1);
    const std::vector<State> states{
        {"void", slot, item_of(fence_free_slot(slot, 0))},
        {"pending", slot, item_of(prepare_slot(slot, 0, claim, payload))},
        {"reserved", slot, item_of(reserve_slot(slot, 4, claim))},
        {"committed", slot, committed({.write_id = "w", .payload = of_two})},
        {"done", slot, done},
        {"continued", slot, committed({.write_id = "w", .payload = payload, .continued = 2})},
        {"part", slot_key("$tx-t", 2),
         item_of(write_part(slot_key("$tx-t", 2), {.write_id = "t", .participants = others}))},
    };
    const std::set<std::string> may_be_missing{"participants", "continued", "done",    "reserved", "command_id",
                                               "correlation",  "causation", "headers", "commands", "effects"};
    std::vector<MutatedSlot> mutated;
    for (const auto& [state, key, item] : states) {
        for (const auto& [name, value] : item) {
            const auto add = [&, state = state, key = key, item = item, name = name](
                                 const std::string& as, std::optional<store::Value> other, bool senseless) {
                store::Item changed = item;
                changed.erase(name);
                if (other) changed.emplace(name, *std::move(other));
                mutated.push_back({std::string{state} + ", " + name + " " + as, key, std::move(changed), senseless});
            };
            add("missing", std::nullopt, !may_be_missing.contains(name));
            add("bytes", store::Bytes{std::byte{1}}, true);
            if (std::holds_alternative<std::int64_t>(value)) {
                add("= -1", std::int64_t{-1}, true);
                add("as text", std::string{"1"}, true);
                add("= 1,000,000,000", std::int64_t{1'000'000'000},
                    name == "continued" || name == "done" || name == "reserved");
                add("= the largest", std::numeric_limits<std::int64_t>::max(), name != "_primary_version");
            } else {
                add("as a number", std::int64_t{1}, true);
                add("empty", std::string{}, name == "state" || name == "write_id" || name.starts_with("_"));
                add("in other words", std::string{"?"},
                    name == "state" || name == "participants" || name == "headers" || name == "commands" ||
                        name == "events" || name == "effects");
            }
        }
        const auto with = [&, state = state, key = key, item = item](const char* name, store::Value value) {
            store::Item changed = item;
            if (!changed.emplace(name, std::move(value)).second) return;
            mutated.push_back({std::string{state} + " with " + name, key, std::move(changed), true});
        };
        with("_tx", std::string{"t"});
        with("_lease", std::int64_t{1});
    }
    mutated.push_back({"a part in an aggregate's stream", slot, states.back().item, true});
    return mutated;
}

}  // namespace varve
