#pragma once

#include "commands/build.h"
#include "commands/index_catalogue.h"
#include "core/named_types.h"

#include <varve/core/shared_mutex.h>
#include <varve/rows/rows.h>
#include <varve/store/item_store.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace varve::detail {

/// The tables of the read models that an application has used so far: each is ensured once.
///
/// Threads: all methods may be called from any thread.
class RowTables {
  public:
    RowTables(transactions::Coordinator& coordinator, Duration indexes_known_for)
        : store_(coordinator.store()), indexes_(coordinator, indexes_known_for) {}

    /// ConfigError if another type's rows are in this table, InvalidError for a name that the framework uses itself;
    /// what ItemStore::ensure_table throws. Takes no lock for a table that was ensured before.
    void ensure(const RowTable& table) {
        if (!types_.knows(table.type)) add(table, Whose::the_users);
    }
    /// Where the rows of one build are (commands/build.h). Lives as long as this.
    const RowTable& of_build(const RowTable& table, std::int64_t number);
    LastSeenBuilds& builds() { return builds_; }
    /// Those that are ensured.
    std::set<std::string, std::less<>> names() const;
    /// What this application keeps in a table; nullptr: it has not used it.
    const RowTable* known(std::string_view name) const;
    /// Ensures those that other programs have used, too: what dead ones have left may be anywhere. Reads the table
    /// `varve`. Errors: those of the store, when all others are ensured; CorruptionError naming an item of `varve`.
    std::set<std::string, std::less<>> names_in_store();
    /// ConfigError if this program would write rows without the entries that its indexes need.
    void check_writer(const RowTable& table, SteadyTime until);
    IndexCatalogue& indexes() { return indexes_; }

  private:
    enum class Whose { the_users, a_build };
    void add(const RowTable& table, Whose whose);

    struct TableOfBuild {
        TableOfBuild(const RowTable& table, std::int64_t number);
        const std::string name;
        const RowTable table;
    };
    store::ItemStore& store_;
    IndexCatalogue indexes_;
    LastSeenBuilds builds_;
    std::map<std::pair<std::string_view, std::int64_t>, TableOfBuild> of_builds_ VARVE_GUARDED_BY(mutex_);
    NamedTypes types_{"read model"};
    mutable SharedMutex mutex_;
    std::set<std::string, std::less<>> names_ VARVE_GUARDED_BY(mutex_);
    std::map<std::string_view, const RowTable*> known_ VARVE_GUARDED_BY(mutex_);
};

}  // namespace varve::detail
