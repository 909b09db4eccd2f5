#include "commands/application_parts.h"
#include "commands/deliverer.h"

#include <varve/commands/delivery.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace varve::detail {

void deliver(Application& application, const std::string& name, std::string_view type,
             std::function<void(const Delivery&)> handle, const DeliverOptions& options) {
    const auto deliverer = std::make_shared<Deliverer>(application.runtime(), type, std::move(handle), options);
    ApplicationParts& parts = parts_of(application);
    parts.begin_command();
    parts.followers->add(application, consumer_of(name, deliverer));
}

bool drop_effect(Application& application, std::string_view name, std::string_view id) {
    const std::vector<std::shared_ptr<Follower>> all = parts_of(application).followers->get(name);
    for (const std::shared_ptr<Follower>& one : all) one->check_is_outside("cannot drop what it has set aside");
    return std::ranges::any_of(all, [&](const std::shared_ptr<Follower>& one) { return one->drop_parked(id); });
}

}  // namespace varve::detail
