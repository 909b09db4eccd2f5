#pragma once

#include <varve/core/runtime.h>
#include <varve/rows/rows.h>
#include <varve/store/item_store.h>

#include <functional>
#include <map>
#include <shared_mutex>
#include <string>

namespace varve::detail {

/// Which indexes the rows of each table have, in the store and so for all programs. A program whose struct does not
/// declare one of them, or declares it of another form, would write rows without the right entries: it is refused. It
/// learns of a change when what it knows is older than `known_for`; who makes a change that it must know of waits for
/// the retention, after which no request of an older decision arrives (transactions/options.h).
///
///     item   := name "rows " table; indexes      in the table `varve`
///     indexes := {"email":{"form":"unique text","whole":true}, …}      (JSON)
///
/// Threads: all methods may be called from any thread. Errors: those of the store.
class IndexCatalogue {
  public:
    struct State {
        std::string form;    ///< form_of_index
        bool whole = false;  ///< every row that there is has its entries
        bool operator==(const State&) const = default;
    };
    using States = std::map<std::string, State>;  ///< by field

    IndexCatalogue(store::ItemStore& store, const Runtime& runtime, Duration known_for)
        : store_(store), runtime_(runtime), known_for_(known_for) {}

    /// Before the first row is read or written here. Of a table that is used for the first time by anybody, and has no
    /// rows, the indexes are whole.
    void meet(const RowTable& table);
    /// ConfigError if this program would write rows without the right entries.
    void check_writer(const RowTable& table);
    /// ConfigError if the index cannot answer.
    void check_query(const RowTable& table, std::size_t index);
    /// Makes of the states what `change` says; what they are then.
    States change(const RowTable& table, const std::function<void(States&)>& change);

  private:
    struct Known {
        States states;
        SteadyTime since;
    };
    States read(const RowTable& table);
    void learn(const RowTable& table, Known known);
    bool know(const RowTable& table, const std::function<bool(const States&)>& is_fine) const;

    store::ItemStore& store_;
    const Runtime runtime_;
    const Duration known_for_;
    mutable std::shared_mutex mutex_;
    std::map<std::string, Known, std::less<>> known_;  // by table; guarded by mutex_
};

}  // namespace varve::detail
