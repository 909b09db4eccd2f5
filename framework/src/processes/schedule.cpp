#include "commands/application_parts.h"
#include "commands/timers.h"
#include "commands/workspace.h"

#include <varve/core/error.h>
#include <varve/processes/schedule.h>

#include <memory>
#include <utility>

namespace varve::detail {

std::string schedule_name(const AggregateType& aggregate) {
    return "$schedule-" + std::string{aggregate.named.name};
}

std::string schedule(Transaction& tx, const AggregateType& aggregate, std::string_view id, EventData command,
                     Time due) {
    static_cast<void>(stream_name(aggregate, id));  // that it can be one is said now, not when it is due
    return set_timer(tx, schedule_name(aggregate), due, std::string{id}, std::move(command));
}

bool cancel_scheduled(Transaction& tx, const AggregateType& aggregate, std::string_view timer) {
    return cancel_timer(tx, schedule_name(aggregate), timer);
}

void run_scheduled(Application& application, const AggregateType& aggregate, ExecuteStored execute,
                   const ScheduleOptions& options) {
    Consumer consumer{.name = schedule_name(aggregate),
                      .filter = {},
                      .options = {.poll_interval = options.poll_interval, .on_poison = FollowOptions::OnPoison::park},
                      .project = {},
                      .hears = false,
                      .handle = {}};
    const bool forgets = options.on_rejection == ScheduleOptions::OnRejection::forget;
    consumer.fire = [&aggregate, forgets, execute = std::move(execute), runtime = application.runtime()](
                        Transaction& tx, const std::string&, const std::string& id, const TimerRow& timer) {
        RecordedEvent command;
        command.stream = stream_name(aggregate, timer.instance);
        command.id = id;
        command.time = timer.due;
        command.event = {.type = timer.type, .schema = timer.schema, .data = timer.data};
        const std::optional<Rejection> rejection = execute(tx, command);
        if (!rejection) return;
        const std::string said = timer.type + " on '" + command.stream + "', scheduled for " + to_string(timer.due) +
                                 ", was rejected with \"" + rejection->code + "\"" +
                                 (rejection->message.empty() ? "" : " (" + rejection->message + ")");
        if (!forgets) throw InvalidError(said);
        try_to_log(runtime.log, LogLevel::info, [&] { return said; });
    };
    ApplicationParts& parts = parts_of(application);
    parts.repository.meet(aggregate);
    parts.begin_command();
    parts.followers->add(application, std::move(consumer));
}

}  // namespace varve::detail
