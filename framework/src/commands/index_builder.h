#pragma once

#include "commands/workspace.h"

#include <varve/commands/application.h>
#include <varve/rows/rows.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace varve::detail {

/// Makes the indexes that the store has of a read model those that its struct declares: Application::build_indexes.
///
///     IndexBuilder{application, table}.build(OldPrograms::may_run);
///
/// It may be stopped at any point and begun again, also by several programs of one struct at once. Where those of two
/// structs build, the one that announced last goes on. Threads: one at a time.
class IndexBuilder {
  public:
    IndexBuilder(Application& application, const RowTable& table);

    /// How many entries were missing or wrong. Errors: those of Application::build_indexes.
    std::size_t build(OldPrograms old);

  private:
    /// Whether there are changes that other programs have to learn of.
    bool announce();
    /// ConfigError if another program has announced something else since.
    void check_announced(const IndexCatalogue::States& states) const;
    std::size_t add_missing();
    std::size_t erase_from(const std::string& field,
                           const std::function<void(Workspace&, const std::vector<StoredRow>&)>& erase);
    void set_built();
    /// How many entries the transaction has changed.
    std::size_t changed(const std::function<void(Workspace&)>& body);

    Application& application_;
    ApplicationParts& parts_;
    const RowTable& table_;
    IndexCatalogue::States announced_;
};

}  // namespace varve::detail
