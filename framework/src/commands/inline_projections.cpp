#include "commands/inline_projections.h"

#include <varve/core/error.h>

#include <algorithm>
#include <iterator>

namespace varve::detail {

std::string AggregateProjection::name() const {
    return "the projection " + std::string{projection.cpp_name} + " of " + std::string{aggregate.named.cpp_name};
}

ProjectedEvent projected(const RecordedEvent& recorded, const void* event) {
    return {.aggregate_id = id_of(recorded.stream),
            .version = recorded.version,
            .index = recorded.index,
            .time = recorded.time,
            .metadata = *recorded.metadata,
            .position = recorded.position,
            .event = event};
}

void InlineProjections::add(AggregateProjection projection) {
    if (std::ranges::any_of(of(projection.aggregate), [&](const AggregateProjection* other) {
            return other->projection.type == projection.projection.type;
        })) {
        throw ConfigError(projection.name() +
                          " is registered twice, so each event would count twice; give the second one a type of its "
                          "own if it does something else");
    }
    if (projection.own) {
        if (const AggregateProjection* other = keeper_of(projection.own->type.name)) {
            throw ConfigError(projection.name() + " says that the rows of '" + std::string{projection.own->type.name} +
                              "' are its own (OwnRows), and " + other->name() +
                              " says so too; let one of them keep rows of its own, or take OwnRows away from both");
        }
    }
    const AggregateProjection& added = all_.emplace_back(std::move(projection));
    by_aggregate_[std::string{added.aggregate.named.name}].push_back(&added);
    if (added.own) by_table_.emplace(added.own->type.name, &added);
}

const std::vector<const AggregateProjection*>& InlineProjections::of(const AggregateType& aggregate) const {
    static const std::vector<const AggregateProjection*> none;
    const auto found = by_aggregate_.find(aggregate.named.name);
    return found == by_aggregate_.end() ? none : found->second;
}

std::vector<AggregateProjection> InlineProjections::of_type(const std::type_info& type) const {
    std::vector<AggregateProjection> found;
    std::ranges::copy_if(all_, std::back_inserter(found),
                         [&](const AggregateProjection& one) { return one.projection.type == type; });
    return found;
}

const AggregateProjection* InlineProjections::keeper_of(std::string_view table) const {
    const auto found = by_table_.find(table);
    return found == by_table_.end() ? nullptr : found->second;
}

}  // namespace varve::detail
