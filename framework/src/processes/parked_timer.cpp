#include "commands/application_parts.h"
#include "commands/timers.h"

#include <varve/processes/parked_timer.h>

namespace varve {

std::vector<ParkedTimer> parked_timers(Application& application, std::string_view follower) {
    std::vector<ParkedTimer> all;
    for (const std::shared_ptr<detail::Follower>& one : detail::parts_of(application).followers->get(follower)) {
        for (auto& [id, aside] : detail::timers_aside(application, one->name())) {
            all.push_back({.id = id,
                           .instance = std::move(aside.timer.instance),
                           .type = std::move(aside.timer.type),
                           .due = aside.timer.due,
                           .error = std::move(aside.error),
                           .since = aside.since});
        }
    }
    return all;
}

std::size_t retry_timers(Application& application, std::string_view follower) {
    const auto all = detail::parts_of(application).followers->get(follower);
    for (const std::shared_ptr<detail::Follower>& one : all) one->check_is_outside("cannot take up its timers");
    std::size_t fired = 0;
    for (const std::shared_ptr<detail::Follower>& one : all) {
        if (one->consumer().fire) fired += detail::retry_timers(application, one->consumer());
    }
    return fired;
}

bool drop_timer(Application& application, std::string_view follower, std::string_view id) {
    static_cast<void>(detail::parts_of(application).followers->get(follower));
    return detail::drop_timer(application, follower, id);
}

}  // namespace varve
