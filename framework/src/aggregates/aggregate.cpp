#include <varve/aggregates/aggregate.h>
#include <varve/core/error.h>

namespace varve {

std::string stream_name(const AggregateType& type, std::string_view id) {
    const std::string_view name = type.named.name;
    if (name.empty() || name.front() == '$' || name.find('-') != std::string_view::npos) {
        throw InvalidError("an aggregate's name is not empty, does not begin with '$' and has no '-'; '" +
                           std::string{name} + "' does not do");
    }
    if (id.empty()) throw InvalidError("the id of an aggregate '" + std::string{name} + "' is empty");
    return std::string{name} + "-" + std::string{id};
}

std::string_view id_of(std::string_view stream) {
    return stream.substr(stream.find('-') + 1);
}

}  // namespace varve
