#include "commands/consumer.h"

#include "commands/deliverer.h"
#include "commands/failures.h"
#include "commands/workspace.h"
#include "core/planted_faults.h"
#include "core/utf8.h"
#include "events/stored_slot.h"

#include <varve/core/error.h>

#include <algorithm>
#include <new>
#include <utility>

namespace varve::detail {

namespace {

constexpr std::size_t name_bytes_max = 200;
constexpr std::size_t partitions_max = 64;

/// With so many rows a batch is large enough: what one more slot changes should still fit into an atomic request.
std::size_t rows_enough(const store::Capabilities& capabilities) {
    constexpr std::size_t where_nothing_is_atomic = 250;
    constexpr std::size_t at_most = 500;
    if (capabilities.atomic_writes_max == 0) return where_nothing_is_atomic;
    return std::min(capabilities.atomic_writes_max / 2, at_most);
}

}  // namespace

const char* Consumer::options_name() const {
    if (deliverer) return "DeliverOptions";
    if (react) return "ProcessOptions";
    return hears ? "FollowOptions" : "ScheduleOptions";
}

void Consumer::check() const {
    const auto refuse = [&](const std::string& why) {
        throw ConfigError("the follower '" + name + "' cannot begin: " + why);
    };
    const std::string of_options = options_name();
    if (name.empty() || name.size() > name_bytes_max)
        refuse("a name has 1 to " + std::to_string(name_bytes_max) + " bytes");
    if (name.find('\0') != std::string::npos || find_invalid_utf8(name) != std::string_view::npos)
        throw ConfigError("a follower cannot begin: its name is not UTF-8 without NUL");
    if (name.front() == '$' && !deliverer && !react && hears) refuse("names with '$' are the framework's own");
    if (options.batch_max == 0) refuse(of_options + "::batch_max is 0, so it would never take anything");
    if (options.partitions == 0 || options.partitions > partitions_max) {
        refuse(of_options + "::partitions is " + std::to_string(options.partitions) + "; it can be split into 1 to " +
               std::to_string(partitions_max));
    }
    if (ephemeral && options.partitions > 1)
        refuse("it is ephemeral, so that each process takes all events, and there is nothing to split among them");
    if (after > 0 && start_at == StartAt::end) refuse("it is to start at the end, and after a position as well");
    if (ephemeral && options.on_poison == FollowOptions::OnPoison::park)
        refuse("it is ephemeral, so there is nowhere to note which streams are set aside");
    if (options.parked_max == 0) {
        refuse(of_options + "::parked_max is 0; " +
               (deliverer ? "one effect that is not taken would hold up all others"
                          : "to stop at an event that cannot be taken, leave on_poison at stop"));
    }
    if (options.replaced_rows_kept_for < Duration::zero()) {
        refuse(of_options + "::replaced_rows_kept_for is " + to_string(options.replaced_rows_kept_for) +
               "; a time to wait cannot be negative");
    }
    if (version < 1) refuse("its version is " + std::to_string(version) + "; the first one is 1");
    if (options.poll_interval <= Duration::zero()) {
        refuse(of_options + "::poll_interval is " + to_string(options.poll_interval) +
               ", so it would ask the store without a pause");
    }
}

std::size_t Consumer::project_some(Transaction& tx, std::span<const RecordedEvent> events,
                                   const store::Capabilities& capabilities) const {
    if (!project && !react) return events.size();
    Workspace& work = Workspace::of(tx);
    const Workspace::Keeping keeping{work, project && build ? &*build : nullptr};
    const std::size_t enough = rows_enough(capabilities);
    if (read_ahead) read_ahead(tx, events.first(std::min(enough, events.size())));
    std::size_t taken = 0;
    for (; taken < events.size(); ++taken) {
        const bool begins_a_slot = taken > 0 && (events[taken].position != events[taken - 1].position ||
                                                 planted(PlantedFault::a_slot_is_cut_in_two));
        if (begins_a_slot && (work.has_once() || work.items_at_most() >= enough)) break;
        react ? react(tx, name, events[taken]) : project(tx, events[taken]);
    }
    return taken;
}

Consumer consumer_of(std::string_view name, std::vector<AggregateProjection> projections,
                     const FollowOptions& options) {
    Consumer consumer{.name = std::string{name}, .filter = {}, .options = options, .project = {}, .handle = {}};
    for (const AggregateProjection& one : projections) {
        consumer.filter.aggregates.emplace(one.aggregate.named.name);
        consumer.version = one.version;
    }
    consumer.project = [projections = std::move(projections)](Transaction& tx, const RecordedEvent& recorded) {
        const auto of_aggregate = [&](const AggregateProjection& one) {
            return one.aggregate.named.name == events::aggregate_of(recorded.stream);
        };
        const AggregateProjection& one = *std::ranges::find_if(projections, of_aggregate);
        one.aggregate.each_event(recorded, [&](const void* event) { one.run(tx, projected(recorded, event)); });
    };
    return consumer;
}

Consumer consumer_of(std::string_view name, const std::shared_ptr<Deliverer>& deliverer) {
    const DeliverOptions& options = deliverer->options();
    // What is not tried in this second is read again in the next.
    const std::size_t batch_max =
        options.per_second_max == 0 ? 500 : std::clamp(options.per_second_max, std::size_t{100}, std::size_t{500});
    return {
        .name = std::string{name},
        .filter = {.types = {deliverer->type()}, .effects = true},
        .start_at = options.start_at,
        .options = {.batch_max = batch_max,
                    .poll_interval = options.poll_interval,
                    .parked_max = options.parked_max,
                    .partitions = options.partitions},
        .pace = [deliverer](store::Position,
                            std::int64_t) { return std::min(deliverer->pause(), deliverer->options().poll_interval); },
        .project = {},
        .handle = {},
        .deliverer = deliverer};
}

std::vector<Consumer> partitions_of(const Consumer& whole) {
    const std::int64_t of = whole.build ? whole.build->partitions : 1;
    std::vector<Consumer> all;
    for (std::int64_t number = 1; number <= of; ++number) {
        Consumer& one = all.emplace_back(whole);
        one.filter.partition = {.number = number, .of = of};
        one.name = partition_name(whole.name, one.filter.partition);
    }
    return all;
}

std::vector<Receipt::Written> slots_of(const Receipt& receipt) {
    std::vector<Receipt::Written> slots = receipt.written;
    const auto& effects = receipt.effects_slot;
    if (effects && std::ranges::find(slots, *effects) == slots.end()) slots.push_back(*effects);
    return slots;
}

bool may_pass(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::bad_alloc&) {
        return true;
    } catch (...) {
        return concerns_the_store(failure);
    }
}

std::string described(const RecordedEvent& event) {
    return event.event.type + ", version " + std::to_string(event.version) + " of stream '" + event.stream + "'";
}

}  // namespace varve::detail
