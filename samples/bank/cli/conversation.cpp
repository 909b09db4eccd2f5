#include "conversation.h"

#include <varve/events/event_store.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

namespace bank {
namespace {

struct ConversationLine {
    std::size_t depth = 0;  ///< 0: nothing of the conversation has led to it
    std::string kind;       ///< "event" or "effect"
    std::string id;
    std::string stream;
    varve::Version version = 0;
    varve::Time time = {};
    std::string type;
    varve::json::Raw data;
    std::string command;
    std::string causation;
};
struct Conversation {
    bool ok = true;
    std::string correlation;
    std::vector<ConversationLine> lines;
};

ConversationLine line_of(const varve::RecordedEvent& event) {
    return {.kind = "event",
            .id = event.id,
            .stream = event.stream,
            .version = event.version,
            .time = event.time,
            .type = event.event.type,
            .data = {event.event.data},
            .command = event.metadata->command_id,
            .causation = event.metadata->causation};
}

/// In the order of the feed, what a slot's commands have asked for behind its events.
std::vector<ConversationLine> lines_of(varve::Application& bank, const std::string& correlation) {
    std::vector<ConversationLine> lines;
    std::set<std::pair<std::string, varve::Version>> slots;
    bank.subscribe("conversation",
                   [&](std::span<const varve::RecordedEvent> events) {
                       for (const varve::RecordedEvent& event : events) {
                           if (event.metadata->correlation != correlation) continue;
                           slots.emplace(event.stream, event.version);
                           lines.push_back(line_of(event));
                       }
                   },
                   {.ephemeral = true});
    if (!bank.wait_for("conversation", {}, std::chrono::minutes{10}))
        throw varve::UnavailableError("the events were not read within ten minutes; ask again");
    bank.unfollow("conversation");
    for (const auto& [stream, version] : slots) {
        for (const varve::Effect& effect : bank.events().effects(stream, version)) {
            if (effect.metadata->correlation != correlation) continue;
            lines.push_back({.kind = "effect",
                             .id = effect.id,
                             .stream = stream,
                             .version = version,
                             .time = effect.time,
                             .type = effect.effect.type,
                             .data = {effect.effect.data},
                             .command = effect.metadata->command_id,
                             .causation = effect.metadata->causation});
        }
    }
    return lines;
}

/// Each below what led to it: the event with the id that is its causation, or the first line of the command with it.
std::vector<ConversationLine> as_tree(std::vector<ConversationLine> lines) {
    std::map<std::string, std::size_t> led_to;  // by the ids of events and commands
    for (std::size_t i = 0; i < lines.size(); ++i) {
        led_to.emplace(lines[i].id, i);
        if (!lines[i].command.empty()) led_to.emplace(lines[i].command, i);
    }
    std::vector<std::vector<std::size_t>> below(lines.size());
    std::vector<std::size_t> next;  // a stack: the last one is printed first
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto found = led_to.find(lines[i].causation);
        const bool is_above = found != led_to.end() && found->second < i;
        (is_above ? below[found->second] : next).push_back(i);
    }
    std::ranges::reverse(next);
    std::vector<ConversationLine> tree;
    while (!next.empty()) {
        const std::size_t i = next.back();
        next.pop_back();
        for (auto child = below[i].rbegin(); child != below[i].rend(); ++child) {
            lines[*child].depth = lines[i].depth + 1;
            next.push_back(*child);
        }
        tree.push_back(std::move(lines[i]));
    }
    return tree;
}

}  // namespace

int print_conversation(const Cli& cli, const std::string& correlation) {
    const auto bank = cli.open();
    const Conversation conversation{.correlation = correlation, .lines = as_tree(lines_of(*bank, correlation))};
    if (conversation.lines.empty()) {
        const std::string message = "nothing belongs to a conversation '" + correlation + "' in " + cli.store;
        if (cli.json)
            print_line("{\"ok\":false,\"error\":\"not_found\",\"message\":" + varve::json::quote(message) + "}");
        std::fprintf(stderr, "bank: %s\n", message.c_str());
        return exit_refused;
    }
    if (cli.json) {
        print_line(varve::json::encode(conversation));
        return exit_done;
    }
    for (const ConversationLine& line : conversation.lines) {
        print_line(varve::to_string(line.time) + "  " + std::string(2 * line.depth, ' ') +
                   (line.kind == "effect" ? "effect " : "") + line.stream + "/" + std::to_string(line.version) + "  " +
                   line.type + " " + line.data.text);
    }
    return exit_done;
}

}  // namespace bank
