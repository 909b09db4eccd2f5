#pragma once

#include <varve/store/item_store.h>
#include <varve/testing/passing_store.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace varve::protocol {

/// Stands directly before the store and keeps account of what really happened there, whatever the processes were told:
/// the judge of the protocol's tests. Knows the stored forms, but none of the code that decides.
///
/// Threads: all methods may be called from any thread; writes go one at a time.
class Ledger final : public testing::PassingStore {
  public:
    using PassingStore::PassingStore;

    /// That a write id became the committed content of an item, visible or behind a claim.
    struct Effect {
        store::Key key;
        std::uint64_t at;  ///< when it came into place: the number of the write
        std::string rev;   ///< the write id
        std::string over;  ///< the write id before it, as of `origin`; empty: there was none
    };
    /// In the order in which they came into place.
    const std::vector<Effect>& effects() const { return effects_; }
    /// The write ids that an item has had, in order.
    std::vector<std::string> revisions(const store::Key& key) const;
    /// A row may get a revision without any new content. The one that brought its content; empty: none.
    std::string origin(const std::string& revision) const;

    struct Commit {
        std::uint64_t at;               ///< the number of the write that decided it
        std::vector<store::Key> items;  ///< all that it writes, in order
    };
    /// By transaction: single writes too.
    const std::map<std::string, Commit>& commits() const { return commits_; }

    /// Q1 for every commit: each of its items got its write id exactly once; and no item got another one's. Q3: no
    /// claim and nothing of one is left in `tables`. Each line is one violation.
    std::vector<std::string> violations_at_rest(const std::vector<std::string>& tables);

    /// Committed slots that were written again. Only where the processes see no order of changes there may be any.
    const std::vector<std::string>& written_again() const { return written_again_; }

    /// Those that hold rows, among all that somebody has asked for.
    std::vector<std::string> row_tables() const;
    /// All items of the tables as they stand.
    std::vector<store::Record> contents(const std::vector<std::string>& tables);

    std::uint64_t writes_applied() const { return applied_; }

    void ensure_table(const store::TableSchema& schema) override;
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override;
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override;

  private:
    void enter(const store::Write& write, const std::optional<store::Item>& before, bool atomic);

    void enter_done(const std::string& tx);

    mutable std::mutex mutex_;
    std::set<std::string> tables_;
    std::uint64_t applied_ = 0;
    std::vector<Effect> effects_;
    std::map<std::string, Commit> commits_;
    std::map<std::string, std::string> origins_;
    std::vector<std::string> early_;
    std::vector<std::string> written_again_;
    std::set<std::pair<std::string, store::Key>> reserved_;                             // by transaction
    std::map<std::string, std::map<std::int64_t, std::vector<store::Key>>> continued_;  // by transaction, by slot
};

}  // namespace varve::protocol
