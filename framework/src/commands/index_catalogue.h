#pragma once

#include "transactions/coordinator.h"

#include <varve/core/shared_mutex.h>
#include <varve/rows/rows.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace varve::detail {

/// Which indexes the rows of each table have, in the store and so for all programs. A program whose struct does not
/// declare one of them, or declares it of another form, would write rows without the right entries: it is refused. It
/// learns of a change when what it knows is older than `known_for`; who makes a change that it must know of waits for
/// the retention, after which no request of an older decision arrives (transactions/options.h).
///
///     item   := name "rows " table; indexes; sorted      in the table `varve`
///     indexes := {"email":{"form":"unique text","whole":true,"build":"0198…"}, …}      (JSON)
///     sorted  := 1 if a row's key has two parts, 0 if one
///
/// An index that is dropped is of the form "dropped" until its entries are gone. `build` is a new id whenever an index
/// begins to be another one, empty if it is whole since the table's first use: what stood here never stands here again,
/// but for {}, so no late request takes effect on a later build.
///
/// Threads: all methods may be called from any thread. Errors: those of the store.
class IndexCatalogue {
  public:
    struct State {
        std::string form;        ///< form_of_index, or `dropped`
        bool whole = false;      ///< every row that there is has its entries
        std::string build = {};  ///< since when it has this form
        bool operator==(const State&) const = default;
    };
    using States = std::map<std::string, State>;  ///< by field
    static constexpr std::string_view dropped = "dropped";

    IndexCatalogue(transactions::Coordinator& coordinator, Duration known_for)
        : coordinator_(coordinator), known_for_(known_for) {}

    /// Before the first row is read or written here. Of a table that is used for the first time by anybody, and has no
    /// rows, the indexes are whole. False: it could not be noted, since the store takes no writes now.
    [[nodiscard]] bool meet(const RowTable& table);
    /// ConfigError if this program would write rows without the right entries. The store is asked until then.
    void check_writer(const RowTable& table, SteadyTime until);
    /// ConfigError if the index cannot answer.
    void check_query(const RowTable& table, std::size_t index, SteadyTime until = SteadyTime::max());
    /// As they are now.
    States read(const RowTable& table, SteadyTime until = SteadyTime::max());
    /// Makes of the states what `change` says; what they are then.
    States change(const RowTable& table, const std::function<void(States&)>& change);

  private:
    /// The steady clock may stand still while the machine sleeps, the wall clock may be set.
    struct Moment {
        SteadyTime steady;
        Time wall;
    };
    struct Known {
        States states;
        Moment since;
    };
    Moment moment() const;
    std::optional<store::Item> item(const store::Key& key, SteadyTime until) const;
    void learn(const RowTable& table, Known known);
    bool know(const RowTable& table, const std::function<bool(const States&)>& is_fine) const;

    transactions::Coordinator& coordinator_;
    const Duration known_for_;
    mutable SharedMutex mutex_;
    std::map<std::string, Known, std::less<>> known_ VARVE_GUARDED_BY(mutex_);  // by table
};

/// All that rows were ever kept in, whoever did so. CorruptionError naming an item that does not say how.
std::vector<store::TableSchema> tables_of_rows(store::ItemStore& store);

}  // namespace varve::detail
