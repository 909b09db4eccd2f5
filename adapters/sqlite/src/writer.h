#pragma once

#include "connection.h"
#include "store_files.h"
#include "table.h"

#include <varve/store/commit_queue.h>
#include <varve/store/item_store.h>
#include <varve/store/write_request.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace varve::sqlite {

/// A write with what can be found out before it is queued.
struct PreparedWrite {
    const store::Write* write;
    const Table* table;
    std::string text;        ///< of a Put: the item as stored
    bool applies_to_absent;  ///< the condition holds where there is no item
};

/// Runs all writes of a store, grouped by a CommitQueue: BEGIN IMMEDIATE, every write of the group one after the other,
/// each seeing those before it, COMMIT.
///
/// The log is moved into the database file by a connection of its own, beside the commits. The log begins anew with a
/// commit that finds all of it moved, and commits add to it all the time; so the last part, which is short, is moved
/// between two groups. Nobody ever waits for readers: while one stays in an old state, the log grows.
///
/// Threads: any.
class Writer {
  public:
    explicit Writer(const Options& options);

    std::vector<store::WriteAnswer> write(std::span<const PreparedWrite> writes);
    store::AtomicAnswer write_atomically(std::span<const PreparedWrite> writes);

    /// Throws CorruptionError if what is under the path is no longer what was opened.
    void check_files() const { files_.check(); }
    Metrics metrics() const;

  private:
    struct Request : store::WriteRequest {
        using WriteRequest::WriteRequest;
        std::span<const PreparedWrite> writes;
    };

    struct Positions {
        std::int64_t last = 0;
        bool erased = false;  ///< an item was, so that the table may no longer tell which was the last
    };

    // These run in the leader's thread.
    void commit(store::CommitQueue::Group& group) noexcept;
    /// Throws what keeps this store from being written at all.
    void make_ready();
    /// Moves the rest of the log, while nobody may add to it. Throws if others held the lock for all of busy_timeout.
    void move_rest();
    static void fail(store::CommitQueue::Group& group, const Failure& failure) noexcept;
    void run(Request& request);
    store::WriteAnswer run_one(const PreparedWrite& prepared);
    void run_atomically(Request& request);
    std::optional<store::Item> current(const PreparedWrite& prepared);
    /// What an Update makes of `current`, as stored; nothing of other writes. It depends on what is there, so that it
    /// cannot be prepared. InvalidError if the item would be too large.
    static std::string updated(const PreparedWrite& prepared, const store::Item* current);
    /// `updated` is of an Update.
    void apply(const PreparedWrite& prepared, std::string_view updated);
    /// Runs `sql`, a statement of the prepared write's table that stores `text`, and returns whether it stored it.
    bool put(const PreparedWrite& prepared, const std::string& sql, std::string_view text);
    Positions& positions(const Table& table);

    std::unique_ptr<Connection> connect() const;

    void tidy() noexcept;
    // Runs beside the leader or in its thread, one at a time.
    /// Moves the log, as far as that goes. False if not all of what was in it could be moved.
    bool checkpoint() noexcept;
    void warn_of_readers(std::int64_t log_bytes) noexcept;

    const Options& options_;
    const std::string where_;  // "the SQLite file bank.db"
    // Belong to the leader:
    std::unique_ptr<Connection> connection_;
    bool is_trusted_ = true;                                 // what connection_ flushed is on the disk
    std::unordered_map<const Table*, Positions> positions_;  // of the tables written to in this transaction
    const StoreFiles files_;

    std::atomic<int> log_pages_ = 0;              // after the last commit
    std::atomic<bool> rest_to_be_moved_ = false;  // between two groups
    std::atomic<bool> checkpoint_runs_ = false;
    // Belong to whoever has set checkpoint_runs_:
    std::unique_ptr<Connection> checkpointer_;
    std::int64_t next_warning_bytes_;

    std::atomic<int> next_checkpoint_pages_;
    std::atomic<std::uint64_t> checkpoints_ = 0;
    std::atomic<std::uint64_t> checkpoints_held_back_ = 0;

    store::CommitQueue queue_;
};

/// Bounds of an item, checked again where an Update makes it grow.
constexpr std::size_t item_bytes_max = std::size_t{8} << 20;

/// As `parse_item`, with an error that names the item.
store::Item parse_stored(const Options& options, const store::Key& key, std::string_view text);

}  // namespace varve::sqlite
