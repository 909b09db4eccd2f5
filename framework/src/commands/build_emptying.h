#pragma once

#include "commands/build.h"

#include <varve/commands/transaction.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace varve::detail {

struct ApplicationParts;

/// Takes away what a replaced build has left: rows, entries of indexes, parked streams, its checkpoints, and at last
/// its place in the Builds row. The tables stay, empty.
///
///     BuildEmptying emptying{parts, "turnover", builds.replaced.front().build};
///     while (emptying.step()) …
///
/// It may be stopped at any step and begun again, also by several at once. Threads: belongs to one. Errors: those of
/// the store.
class BuildEmptying {
  public:
    BuildEmptying(ApplicationParts& parts, std::string follower, Build build);

    /// Takes a few rows. False: nothing is left.
    bool step();
    std::int64_t number() const { return build_.number; }

  private:
    /// Those of its partitions.
    std::vector<std::string> names() const;
    /// Erases these in a transaction of their own, while the Builds row allows that. False: it does not any more.
    bool erase(std::span<const store::Key> keys);
    /// In one transaction with the Builds row. False: it does not name the build any more.
    bool change(const std::function<void(Transaction&, Builds&, ReplacedBuild&)>& change);
    /// Erases the next few of a list; false: it has ended.
    bool step_in(const std::string& table);
    bool step_in(const RowTable& table, const std::string& partition);

    ApplicationParts& parts_;
    const std::string follower_;
    const Build build_;
    bool began_ = false;
    std::vector<std::function<bool()>> left_;  // lists to be emptied, the next one last
    std::optional<std::string> next_;          // where the list goes on
};

}  // namespace varve::detail
