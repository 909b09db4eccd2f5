#pragma once

#include <varve/commands/projection.h>

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

namespace varve::detail {

/// The inline projections of an application.
///
/// Threads: all `add` come before the first command.
class InlineProjections {
  public:
    /// ConfigError for a second projection of this type, and for rows that another one keeps.
    void add(AggregateProjection projection);
    const std::vector<const AggregateProjection*>& of(const AggregateType& aggregate) const;
    /// One type may be there for several aggregates.
    std::vector<AggregateProjection> of_type(const std::type_info& type) const;
    const std::deque<AggregateProjection>& all() const { return all_; }
    /// Whose own the rows of a table are; nullptr: nobody's.
    const AggregateProjection* keeper_of(std::string_view table) const;

  private:
    std::deque<AggregateProjection> all_;
    std::map<std::string, std::vector<const AggregateProjection*>, std::less<>> by_aggregate_;
    std::map<std::string, const AggregateProjection*, std::less<>> by_table_;
};

}  // namespace varve::detail
