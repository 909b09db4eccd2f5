#include "commands/application_parts.h"
#include "commands/caused_by.h"
#include "commands/timers.h"
#include "commands/workspace.h"
#include "events/stored_slot.h"
#include "processes/process_consumer.h"

#include <varve/commands/fingerprint.h>
#include <varve/core/error.h>
#include <varve/processes/process.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace varve {

Executed Reaction::give(const detail::GivenCommand& command) {
    std::optional<Rejection> rejection = execute(command);
    if (!rejection) return Executed{nullptr};
    refusals_.push_back(
        {.rejection = *std::move(rejection),
         .command = std::string{command.command} + " on " + stream_name(command.aggregate, command.id)});
    return Executed{&refusals_.back()};
}

const detail::Refusal* Reaction::unseen() const {
    const auto found = std::ranges::find(refusals_, false, &detail::Refusal::is_seen);
    return found == refusals_.end() ? nullptr : &*found;
}

namespace detail {
namespace {

/// "the process 'checkout'"
std::string named(const AggregateType& process) {
    return "the process '" + std::string{process.named.name} + "'";
}

/// What one instance does about one event, in a transaction.
class Reacting final : public Reaction {
  public:
    /// `consumer`: whose timers it sets.
    Reacting(Transaction& tx, const ProcessType& process, const std::string& consumer, const Input& input,
             const EventContext& event)
        : Reaction(event), tx_(tx), process_(process), consumer_(consumer), input_(input) {}

    void run() {
        const std::string& id = input_.instance;
        Workspace& work = Workspace::of(tx_);
        const Touched& own = work.touch(process_.own, id, Workspace::Also::own_rows);
        work.keep_effects_with(own);
        input_.react(own.state(), *this);
        if (const Refusal* refusal = unseen()) {
            const Rejection& why = refusal->rejection;
            throw InvalidError(named(process_.own) + " gave a command that was rejected, and did not look at that: " +
                               refusal->command + " was rejected with \"" + why.code + "\"" +
                               (why.message.empty() ? "" : " (" + why.message + ")") +
                               "; look at what Reaction::execute returns, and say what is to be done then");
        }
        for (const Append& append : events_) append(tx_, id);
    }

    Time now() const override { return tx_.now(); }
    bool cancel(std::string_view id) override { return cancel_timer(tx_, process_name(process_.own), id); }

  private:
    std::optional<Rejection> execute(const GivenCommand& command) override {
        const std::string stream = stream_name(command.aggregate, command.id);
        if (stream == stream_name(process_.own, input_.instance)) {
            throw InvalidError(named(process_.own) + " gives a command to itself, to '" + stream +
                               "'; let it record an event");
        }
        return command.execute(tx_);
    }
    void add_effect(EventData effect) override { Workspace::of(tx_).add_effect(std::move(effect)); }
    void add_event(const std::type_info& type, std::string_view name, const void* event) override {
        events_.push_back(process_.append(type, event));
        if (events_.back()) return;
        throw InvalidError(named(process_.own) + " records " + std::string{name} +
                           ", which is no event of it; add it to its Event variant");
    }
    std::string set_timer(Time due, const std::type_info& type, std::string_view name, const void* timer) override {
        std::optional<EventData> data = process_.encode_timer(type, timer);
        if (data) return detail::set_timer(tx_, consumer_, due, input_.instance, *std::move(data));
        throw InvalidError(named(process_.own) + " sets " + std::string{name} +
                           ", which is no timer of it; add it to its Timers: using Timers = std::variant<...>");
    }

    Transaction& tx_;
    const ProcessType& process_;
    const std::string& consumer_;
    const Input& input_;
    std::vector<Append> events_;
};

void react(const ProcessType& process, Transaction& tx, const std::string& consumer, const RecordedEvent& event) {
    const auto of_aggregate = [&](const ProcessType::Heard& heard) {
        return heard.aggregate.named.name == events::aggregate_of(event.stream);
    };
    const EventContext context{event};
    std::optional<bool> is_first;
    std::ranges::find_if(process.heard, of_aggregate)->each_input(event, [&](const Input& input) {
        if (!is_first) {
            is_first = Workspace::of(tx).begin_once(
                caused_by(
                    *event.metadata,
                    {.command_id = reaction_id(process.own, event), .correlation = event.id, .causation = event.id}),
                "react");
        }
        if (*is_first) Reacting{tx, process, consumer, input, context}.run();
    });
}

void fire(const ProcessType& process, Transaction& tx, const std::string& consumer, const std::string& id,
          const TimerRow& timer) {
    RecordedEvent event;
    event.stream = stream_name(process.own, timer.instance);
    event.id = id;
    event.time = timer.due;
    event.event = {.type = timer.type, .schema = timer.schema, .data = timer.data};
    event.metadata = std::make_shared<const Metadata>(Workspace::of(tx).metadata());
    const EventContext context{event};
    process.each_timer(event, [&](const Input& input) { Reacting{tx, process, consumer, input, context}.run(); });
}

}  // namespace

std::string reaction_id(const AggregateType& process, const RecordedEvent& event) {
    constexpr std::size_t bytes_max = 200;  // of a command id
    std::string id = process_name(process) + ":" + event.id;
    if (id.size() <= bytes_max) return id;
    // A long stream's name is left out, and the rest still tells: the slot's write id, and where it is.
    const std::size_t end = event.id.find(':');
    return process_name(process) + ":" + event.id.substr(0, end) + ":" + fingerprint(event.stream, "react", "") + ":" +
           std::to_string(event.index);
}

std::string process_name(const AggregateType& process) {
    return "$process-" + std::string{process.named.name};
}

Consumer consumer_of(ProcessType process, const ProcessOptions& options) {
    Consumer consumer{.name = process_name(process.own),
                      .filter = {},
                      .start_at = options.start_at,
                      .options = {.batch_max = 100,  // each event is a transaction of its own
                                  .poll_interval = options.poll_interval,
                                  .on_poison = options.on_poison,
                                  .parked_max = options.parked_max,
                                  .partitions = options.partitions},
                      .project = {},
                      .handle = {}};
    for (const ProcessType::Heard& heard : process.heard)
        consumer.filter.aggregates.emplace(heard.aggregate.named.name);
    const auto shared = std::make_shared<const ProcessType>(std::move(process));
    consumer.react = [shared](Transaction& tx, const std::string& name, const RecordedEvent& event) {
        detail::react(*shared, tx, name, event);
    };
    if (shared->each_timer != nullptr) {
        consumer.fire = [shared](Transaction& tx, const std::string& name, const std::string& id,
                                 const TimerRow& timer) { detail::fire(*shared, tx, name, id, timer); };
    }
    return consumer;
}

void run(Application& application, ProcessType process, const ProcessOptions& options) {
    ApplicationParts& parts = parts_of(application);
    parts.repository.meet(process.own);
    for (const ProcessType::Heard& heard : process.heard) parts.repository.meet(heard.aggregate);
    parts.begin_command();
    parts.followers->add(application, consumer_of(std::move(process), options));
}

}  // namespace detail
}  // namespace varve
