#pragma once

#include "commit_queue.h"
#include "connection.h"
#include "table.h"

#include <varve/store/item_store.h>

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
/// Threads: any.
class Writer {
  public:
    explicit Writer(const Options& options);

    std::vector<store::WriteAnswer> write(std::span<const PreparedWrite> writes);
    store::AtomicAnswer write_atomically(std::span<const PreparedWrite> writes);

  private:
    struct Request : CommitQueue::Request {
        std::span<const PreparedWrite> writes;
        bool atomic;
        std::vector<store::WriteAnswer> answers;  // unless atomic
        store::AtomicAnswer atomic_answer;        // if atomic
        void fail(const Failure& failure);
    };

    struct Positions {
        std::int64_t last = 0;
        bool erased = false;  ///< an item was, so that the table may no longer tell which was the last
    };

    // These run in the leader's thread.
    void commit(CommitQueue::Group& group);
    void run(Request& request);
    store::WriteAnswer run_one(const PreparedWrite& prepared);
    void run_atomically(Request& request);
    std::optional<store::Item> current(const PreparedWrite& prepared);
    /// Writes what `prepared` makes of `current`.
    void apply(const PreparedWrite& prepared, const store::Item* current);
    /// Runs `sql`, a statement of the prepared write's table that stores `text`, and returns whether it stored it.
    bool put(const PreparedWrite& prepared, const std::string& sql, std::string_view text);
    Positions& positions(const Table& table);

    const Options& options_;
    // Belong to the leader:
    Connection connection_;
    std::unordered_map<const Table*, Positions> positions_;  // of the tables written to in this transaction
    CommitQueue queue_;
};

/// Bounds of an item, checked again where an Update makes it grow.
constexpr std::size_t item_bytes_max = std::size_t{8} << 20;

/// As `parse_item`, with an error that names the item.
store::Item parse_stored(const Options& options, const store::Key& key, std::string_view text);

}  // namespace varve::sqlite
