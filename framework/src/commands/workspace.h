#pragma once

#include "aggregates/repository.h"
#include "commands/build.h"
#include "commands/inline_projections.h"
#include "commands/row_tables.h"
#include "rows/index_entries.h"
#include "transactions/reservation.h"

#include <varve/commands/transaction.h>
#include <varve/locks/locks.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace varve::detail {

/// Ends a transaction's body. Not a std::exception, so that a body's `catch (const std::exception&)` lets it through.
struct Rejected {
    Rejection rejection;
};

/// One event, or effect, that has been decided, and by which of the commands.
struct Decided {
    std::size_t command;
    EventData event;
};

/// An aggregate as one attempt sees it.
struct Touched {
    const AggregateType* type;
    std::string id;
    aggregates::Folded seen;
    std::shared_ptr<void> own;  ///< as seen, and this attempt's events so far; null as long as there are none
    std::vector<Decided> events;

    const void* state() const { return own ? own.get() : seen.state.get(); }
    void* own_state() {
        if (!own) own = type->copy(seen.state.get());
        return own.get();
    }
    aggregates::Repository::NewState written(bool settled) const;
};

/// A row as one attempt sees it.
struct TouchedRow {
    transactions::Image seen;
    bool asked = true;  ///< the store, in this attempt; else it is what was last known
    bool written = false;
    std::optional<std::string> data;
};

/// What one attempt of a command has read, relied on and decided. Bodies, handlers and projections see it as a
/// `Transaction`; the command runner makes a plan of it and commits that.
///
///     Workspace workspace{world, tx, since, until, nullptr, Repository::Ask::last_known};
///     workspace.begin_command({});
///     body(workspace.transaction());
///     coordinator.commit(workspace.plan(), tx, since);
///
/// Threads: belongs to one attempt on one thread.
class Workspace final : public RowsOfTransaction {
  public:
    struct World {
        aggregates::Repository& repository;
        transactions::Coordinator& coordinator;
        RowTables& row_tables;
        const InlineProjections& projections;
    };

    /// `reservation` nullptr: decide first, then prepare. `ask`: whether aggregates may be as last known.
    /// `until`: nobody is waited for after that.
    Workspace(const World& world, std::string tx, Time since, SteadyTime until, transactions::Reservation* reservation,
              aggregates::Repository::Ask ask);
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    Transaction& transaction() { return transaction_; }
    static Workspace& of(Transaction& tx) { return tx.workspace_; }
    Time now() const { return now_; }
    Runtime runtime() const { return world_.coordinator.runtime(); }
    /// Of the command that is at work.
    const Metadata& metadata() const { return commands_.back(); }

    // Before and after a command's body.

    /// What is recorded from now on belongs to another command.
    void begin_command(Metadata metadata) { commands_.push_back(std::move(metadata)); }
    /// The same, for what is done once under this command id, for ever. False: it was done before. The body writes
    /// nothing else under that id.
    [[nodiscard]] bool begin_once(Metadata metadata, const std::string& fingerprint);
    void set_rejection(Rejection rejection) { rejection_ = std::move(rejection); }
    /// Makes the entries of all indexes those of the rows as they are now. Rejects a command that would give two rows
    /// one value of a Unique.
    void keep_indexes() { keep_indexes(Uniques::checked); }
    /// What ended the body, also if it caught that.
    std::optional<Rejection> take_rejection() { return std::exchange(rejection_, std::nullopt); }
    /// Whether something is done here that is done once.
    bool has_once() const { return !once_.empty(); }
    /// Events, rows and effects so far.
    std::size_t changes() const { return changes_; }
    /// That these events and effects take in slots, at most.
    std::size_t event_bytes() const { return event_bytes_; }

    // What a body does.

    /// What is read along with an aggregate.
    enum class Also { nothing, own_rows };
    Touched& touch(const AggregateType& type, std::string_view id, Also also = Also::nothing);
    void touch_all(const AggregateType& type, std::span<const std::string> ids, Also also);
    void record(Touched& touched, EventData data, const void* event);
    void add_effect(EventData effect);
    /// Effects go with the events of this one, if it gets any; else with those of whoever gets the first.
    void keep_effects_with(const Touched& touched) { keeps_effects_ = &touched; }
    void fenced_by(const Lock& lock);
    /// The rows that bodies and projections see: its own, or others while an OnOtherRows is there.
    RowsOfTransaction& rows_seen() { return other_rows_ != nullptr ? *other_rows_ : *this; }
    /// What runs meanwhile reads and writes nothing here: neither rows nor effects.
    class OnOtherRows {
      public:
        OnOtherRows(Workspace& workspace, RowsOfTransaction& rows) : workspace_(workspace) {
            workspace_.other_rows_ = &rows;
        }
        ~OnOtherRows() { workspace_.other_rows_ = nullptr; }
        OnOtherRows(const OnOtherRows&) = delete;
        OnOtherRows& operator=(const OnOtherRows&) = delete;

      private:
        Workspace& workspace_;
    };
    /// What runs meanwhile keeps the rows of this build; null: of none.
    class Keeping {
      public:
        Keeping(Workspace& workspace, const BuildOf* build)
            : workspace_(workspace), before_(std::exchange(workspace.keeping_, build)) {}
        ~Keeping() { workspace_.keeping_ = before_; }
        Keeping(const Keeping&) = delete;
        Keeping& operator=(const Keeping&) = delete;

      private:
        Workspace& workspace_;
        const BuildOf* const before_;
    };
    void ensure(const RowTable& table) override { world_.row_tables.ensure(table); }
    std::optional<std::string> read(const RowTable& table, const RowKey& key) override;
    void write(const RowTable& table, const RowKey& key, std::optional<std::string> data) override;
    StoredPage range(const RowTable& table, const RowRange& range, const PageOptions& page) override;
    std::optional<StoredRow> find(const RowTable& table, const IndexRange& entry) override;
    StoredPage indexed(const RowTable& table, const IndexRange& range, const PageOptions& page) override;
    /// A row of a key that nobody else can have: the store is not asked.
    void insert(const RowTable& table, const RowKey& key, std::string data);
    /// Has the rows' entries written if they are missing, though the rows are not.
    void reindex(const RowTable& table, const std::vector<StoredRow>& rows);
    /// Erases those entries of one of the table's indexes that no row has.
    void erase_stale(const RowTable& table, std::size_t index, const std::vector<StoredRow>& entries);
    void erase_entries(const std::vector<StoredRow>& entries);
    /// A row, as it is stored, and nothing that depends on it.
    void erase(const store::Key& key) { set_row(key, std::nullopt); }
    /// Of indexes; how many are not as they were.
    std::size_t entries_changed() const;
    /// Writes the rows that projections keep for the aggregate alone anew, from its events. How many differed.
    std::size_t refold(const AggregateType& type, std::string_view id);

    // What has come of it.

    const std::map<std::string, Touched>& aggregates() const { return aggregates_; }  ///< by stream
    const std::map<store::Key, TouchedRow>& rows() const { return rows_; }
    /// The rows, and the entries of indexes that they may need.
    std::size_t items_at_most() const { return rows_.size() + entries_at_most_; }
    bool is_fenced() const { return !fences_.empty(); }
    /// Whether anybody had to be waited for.
    bool waited() const { return reader_.waited(); }
    /// Whether the store was asked for everything that was read.
    bool asked_for_all() const;
    /// What the body has decided.
    transactions::Plan plan() const;
    /// What it has read, as if it had decided nothing.
    transactions::Plan reads() const;
    /// The names of the lines for what it writes (commands/lines.h); if `all`, for what it only reads too.
    std::set<std::string> lines(bool all) const;
    /// Where the effects of one command will be, if there are any; an empty stream: in the slot that decides.
    std::optional<Receipt::Written> effects_slot(std::size_t command) const;
    /// The slots that the events of one command will be in, by stream.
    std::vector<Receipt::Written> written_by(std::size_t command) const;
    /// LeaseLostError if one of the locks is in other hands. Costs a read.
    void check_fences() const;
    /// What has become of the aggregates by the commit of plan().
    void remember(const transactions::Commit& commit) const;

    /// All of this is going to be touched, most likely: it is read in one round trip.
    void read_ahead(const std::map<std::string, const AggregateType*>& aggregates,
                    const std::map<store::Key, transactions::Image>& rows);
    void read_ahead(std::vector<store::Key> rows);

  private:
    /// The Builds row of a follower, as far as this attempt goes.
    Builds& builds_of(std::string_view follower);
    /// Where rows of this table are for whoever is at work: in the build that it keeps, else in the live one. `key`: a
    /// row that is going to be read there.
    const RowTable& build_of(const RowTable& table, const RowKey* key = nullptr);
    const RowTable& written_build_of(const RowTable& table, const RowKey& key);
    /// A page of a list in its build.
    StoredPage paged(const RowTable& table, const PageOptions& options,
                     const std::function<StoredPage(const RowTable&, const PageOptions&)>& read);
    aggregates::Repository::Sought seek(const AggregateType& type, const std::string& stream);
    TouchedRow& touch(const store::Key& key);
    void set_row(const store::Key& key, std::optional<std::string> data);
    struct RangeOfRows {
        std::vector<StoredRow> rows;
        std::optional<store::SortKey> stopped_at;
    };
    /// As far as about `limit` rows go.
    RangeOfRows range(const store::Query& query, std::size_t limit);
    void run(const AggregateProjection& projection, const ProjectedEvent& projected);
    /// InvalidError if a projection keeps rows that this one belongs to, or says that it keeps rows, and the other does
    /// not go together with it.
    void check_keeper(const store::Key& key, bool writes) const;
    /// While a command is still deciding, a value may be on its way from one row to another.
    enum class Uniques { not_yet_checked, checked };
    void keep_indexes(Uniques uniques);
    /// The row has been written, and its entries have to follow.
    void note_indexed(const RowTable& table, const store::Key& key);
    struct Entry;
    /// What the rows that were written since the last time claim and leave.
    void claim_entries();
    void follow_claims(const store::Key& key, const Entry& entry);
    void check_unique(const store::Key& key, const Entry& entry);
    [[noreturn]] void reject_not_unique(const RowTable& table, const store::Key& entry, const store::Key& row,
                                        const RowKey& other);
    StoredPage indexed_in(const RowTable& table, const IndexRange& range, const PageOptions& options);
    /// The row that the entry names, if it is the one that has it.
    std::optional<StoredRow> row_of(const RowTable& table, const IndexRange& range, const store::Key& key);
    /// The rows of an aggregate's own, each under the aggregate's id, that are not sorted.
    std::vector<store::Key> own_rows(const AggregateType& type, std::string_view id) const;
    /// What is known of such a row because the aggregate is; nullptr: nothing.
    const transactions::Image* known_row(const store::Key& key) const;
    /// Those that go into this aggregate's slot.
    std::span<const Decided> effects_of(const Touched& touched) const;
    store::Item payload(std::span<const Decided> events, std::span<const Decided> effects) const;
    /// What becomes of them by an atomic commit. Null if there is no memory for it.
    std::shared_ptr<const aggregates::KnownRows> own_rows_after(const Touched& touched,
                                                                const transactions::Commit& commit) const noexcept;
    /// Remembers what becomes of the slots that are pending at the commit (state_cache.h).
    std::function<void(const store::Key& slot)> settling() const;

    const World world_;
    transactions::Reservation* const reservation_;
    transactions::SettledReader reader_;
    const aggregates::Repository::Ask ask_;
    const SteadyTime until_;
    const Time now_;
    Transaction transaction_{*this};
    std::vector<Metadata> commands_;
    struct Once {
        std::size_t command;  ///< of commands_
        transactions::Epoch epoch = 0;
        std::string fingerprint;
    };
    std::vector<Once> once_;
    std::map<std::string, Touched> aggregates_;  // by stream
    std::map<store::Key, TouchedRow> rows_;
    struct Indexed {
        const RowTable* table;
        bool anew = false;                                // all its entries, not only those that change
        std::optional<Entries> before = {};               // of the row as seen
        std::vector<store::Key> claimed = {}, left = {};  // when its entries last followed
    };
    struct Entry {
        const RowTable* table = nullptr;
        std::set<store::Key> claimed_by = {}, left_by = {};  // rows
    };
    std::map<store::Key, Indexed> indexed_;  // of rows_, those written that have indexes
    std::set<store::Key> unfollowed_;        // of indexed_, those written since their entries last followed
    std::map<store::Key, Entry> entries_;    // of rows_, those that follow from them
    std::set<store::Key> claimed_anew_;      // of entries_, those that have not followed these since
    std::set<store::Key> unchecked_;         // of entries_, those that changed since they were last found unique
    std::size_t entries_at_most_ = 0;
    std::vector<transactions::RangeRead> ranges_;
    std::map<store::Key, transactions::RowRead> fences_;  // locks' holders, not read but known from entering
    std::vector<Decided> effects_;
    const Touched* first_ = nullptr;  // of aggregates_, that which got the first event: its slot has the effects
    const Touched* keeps_effects_ = nullptr;
    std::size_t changes_ = 0;
    std::size_t event_bytes_ = 0;
    std::optional<Rejection> rejection_;
    struct Running {
        const AggregateProjection* projection = nullptr;
        std::string_view aggregate_id;
    };
    Running running_;         // the projection that is at work
    bool refolding_ = false;  // its events are those of before
    RowsOfTransaction* other_rows_ = nullptr;
    const BuildOf* keeping_ = nullptr;
    std::map<std::string, Builds, std::less<>> builds_;  // of rows_, decoded
};

}  // namespace varve::detail
