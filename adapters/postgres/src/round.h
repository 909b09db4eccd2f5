#pragma once

#include "parameters.h"
#include "table.h"

#include <varve/store/item_store.h>

#include <set>
#include <span>
#include <string>
#include <vector>

namespace varve::postgres {

/// Bounds of an item, checked again where an Update makes it grow.
constexpr std::size_t item_bytes_max = std::size_t{8} << 20;

/// A write with what can be found out before it is queued.
struct PreparedWrite {
    const store::Write* write;
    const Table* table;
    std::string text;       ///< what a Put or Update sets
    std::string removed;    ///< what an Update removes, as a JSON array
    std::string condition;  ///< see json_path; empty: it always holds
    bool fits_absent;       ///< the condition holds where there is no item
    bool is_new;            ///< a Put that expects that there is none
};

/// Writes that are carried out by one statement, each judged by what was there before all of them; so no two of them
/// are to the same item. The transaction has locked their tables before, by `lock`.
///
///     Statement judges and writes; it gives a row for each write that was refused: its number, counted from 0 in the
///     order in which they were added, its verdict, and the item as it stood.
class Round {
  public:
    enum class Verdict : int { refused = 1, too_large = 2 };

    /// Whether it has no write to one of the items of `writes` yet.
    bool has_room_for(std::span<const PreparedWrite> writes) const;
    /// `atomic`: all of them or none.
    void add(std::span<const PreparedWrite> writes, bool atomic);

    /// The tables that it writes to, in the order of their names.
    const std::vector<const Table*>& tables() const { return tables_; }
    /// What the statement of these tables is run with.
    Parameters parameters() const;

    /// Whether all of them expect to find no item, in one table: then its `insert` costs far less, and does as well
    /// unless there is one.
    bool is_new() const;
    /// What the `insert` is run with.
    Parameters inserted() const;

  private:
    struct ByKey {
        bool operator()(const store::Key* a, const store::Key* b) const { return *a < *b; }
    };
    struct One {
        const PreparedWrite* write;
        std::int64_t request;
    };
    std::vector<One> writes_;
    std::set<const store::Key*, ByKey> keys_;
    std::vector<const Table*> tables_;
    std::int64_t requests_ = 0;
};

/// The statement for rounds that write to these tables.
std::string round_sql(const std::string& space, std::span<const Table* const> tables);
/// The statement that locks the tables whose names are in the array $1, for the rest of the transaction. It fails in a
/// session that has lost the settings on which all of this rests, as a pooler may give it.
std::string lock_sql(const std::string& space, bool accept_asynchronous_commit);

}  // namespace varve::postgres
