#pragma once

#include "commands/application_parts.h"
#include "commands/build.h"
#include "commands/index_catalogue.h"
#include "transactions/slot.h"

#include <varve/operations/check.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace varve::operations {

// How a check tells what is broken from what is on its way, while others write:
//
//  C1 What never changes back is read in the right order. A slot's predecessor was committed before it, so it is read
//     after it; so are the participants of a primary that is committed, and all that a row was made from.
//  C2 What changes together is compared at one moment (CheckRun::at_one_moment): images are read until two rounds
//     agree.
//  C3 What does not hold still in some rounds is not known to be broken, and is left out.

/// One check of one store: what it looks at, and what it has found.
///
/// Threads: belongs to one.
class CheckRun {
  public:
    CheckRun(Application& application, const CheckOptions& options)
        : application(application), parts(detail::parts_of(application)), store(*parts.store), options(options) {}

    /// Of an item that breaks a rule in several ways the first one is told.
    void find(std::string rule, const store::Key& item, std::string what) {
        find(std::move(rule), store::to_string(item), std::move(what));
    }
    void find(std::string rule, std::string item, std::string what);
    /// False: it is to end, and is not complete.
    bool goes_on();
    void tell(std::string_view looks_at) const;
    CheckReport end() &&;

    /// All items of a table, a page at a time, as long as it goes on. `look` gets each page.
    void each_page(const std::string& table, const std::function<void(std::vector<store::Record>&)>& look);

    /// Images of rows as they stood together, through claims; nullopt: they did not hold still, or one of them cannot
    /// be read.
    std::optional<std::vector<transactions::Image>> at_one_moment(std::span<const store::Key> rows);
    /// The committed image of one row; an absent one where it cannot be read.
    transactions::Image image(const store::Key& row);
    void count(std::size_t items) { items_ += items; }
    std::optional<store::Item> item(const store::Key& key) { return store.read({&key, 1}).front(); }
    /// Whether a slot is committed, also by a primary elsewhere. Nullopt: it cannot be read, which is found anyway.
    std::optional<bool> is_committed(const store::Key& slot);

    /// Makes a table known: from here on its items may be read.
    void know(const store::TableSchema& schema);
    /// Whether a table is known. What the table `varve` says of it may be newer than what was read in the beginning.
    bool knows(const std::string& table);
    /// Whether there can be such an item: in a table that is known, with a key as the table's are.
    bool may_be(const store::Key& key);
    /// Reads again what the table `varve` says of a table with rows.
    void learn(const std::string& table);

    Application& application;
    detail::ApplicationParts& parts;
    store::ItemStore& store;
    const CheckOptions& options;
    CheckReport report;

    /// What the table `varve` says of a table with rows.
    struct RowsIn {
        bool sorted = false;
        detail::IndexCatalogue::States indexes = {};
        bool operator==(const RowsIn&) const = default;
    };
    /// CorruptionError for an item that says it in no known form.
    static RowsIn rows_in(const store::Record& record);
    std::map<std::string, RowsIn, std::less<>> catalogue;

  private:
    std::map<std::string, store::TableSchema> tables_;
    std::map<std::pair<std::string, std::string>, std::string> found_;  // by rule and item
    std::size_t items_ = 0;                                             // that were read
    bool has_ended_ = false;
};

/// Runs `look`; false, and a finding, if that meets what cannot be read.
template <class Look>
bool readable(CheckRun& run, const store::Key& key, Look&& look, const char* rule = "unreadable") {
    try {
        look();
        return true;
    } catch (const CorruptionError& error) {
        run.find(rule, key, error.what());
    } catch (const InvalidError& error) {
        run.find(rule, key, error.what());
    }
    return false;
}

/// Claims on slots and rows, judged by their primaries.
class Claims {
  public:
    explicit Claims(CheckRun& run) : run_(run) {}
    /// A claim that was met on `item`. `is_reserved`: the item is held, and it was not said what becomes of it.
    struct Met {
        store::Key item;
        transactions::Claim claim;
        bool is_reserved;
        std::optional<transactions::Epoch> epoch;  ///< of a slot, beneath the claim
    };
    void meet(Met met);
    void judge();

  private:
    void judge(const Met& met, const transactions::Slot& primary);
    bool still_stands(const Met& met);

    CheckRun& run_;
    std::vector<Met> met_;
};

/// All others that a committed transaction wrote; nullopt: a part of the list is missing, which is a finding.
std::optional<std::vector<store::Key>> participants_of(CheckRun& run, const store::Key& primary,
                                                       const transactions::Committed& commit);

// The parts of a check, in the order in which they run.
void check_settings(CheckRun& run);
void check_slots(CheckRun& run);
void check_rows(CheckRun& run);
void check_locks(CheckRun& run);
void check_snapshots(CheckRun& run);
void check_log(CheckRun& run);
void check_projections(CheckRun& run);

/// A page of a table with rows and its indexes: rows that lack an entry, or share the value of a Unique.
void check_entries_of_rows(CheckRun& run, const std::string& table, const std::vector<store::Record>& page);
/// A page of the table of entries: those that have no row.
void check_rows_of_entries(CheckRun& run, const std::vector<store::Record>& page);
/// Whether these rows are being erased, since another build has replaced them.
bool is_being_emptied(CheckRun& run, std::string_view table);
/// A page of rows in a table of a build: those of one that there is not.
void check_left_of_builds(CheckRun& run, const std::string& table, const std::vector<store::Record>& page);
/// All rows that say which builds there are, by follower.
std::map<std::string, detail::Builds> all_builds(CheckRun& run);

/// A page of one of the framework's own tables with rows.
void check_own_rows(CheckRun& run, std::string_view table, const std::vector<store::Record>& page);

}  // namespace varve::operations
