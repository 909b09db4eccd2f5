#pragma once

#include "announcer.h"
#include "pool.h"
#include "round.h"

#include <varve/core/mutex.h>
#include <varve/store/commit_queue.h>
#include <varve/store/item_store.h>
#include <varve/store/write_request.h>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace varve::postgres {

/// Runs all writes of a store, grouped by a CommitQueue. A group is one transaction and one round trip: it locks its
/// tables, carries out its writes, and commits. Requests that write to the same item come one after the other, in
/// rounds.
///
/// One group is on its way while the next one fills, and a second one follows at once: it waits at the server for the
/// first, and not for the network.
///
/// Threads: any.
class Writer {
  public:
    /// `space`: the quoted name of the schema. `options` and `announcer` must outlive it.
    Writer(const Options& options, std::string space, Announcer& announcer);

    std::vector<store::WriteAnswer> write(std::span<const PreparedWrite> writes);
    store::AtomicAnswer write_atomically(std::span<const PreparedWrite> writes);

  private:
    struct Request : store::WriteRequest {
        using WriteRequest::WriteRequest;
        std::span<const PreparedWrite> writes;
        bool is_answered = false;
        /// Unless it is answered.
        void fail(const Failure& failure) noexcept;
    };
    /// Requests that are carried out by one statement.
    struct Members {
        Round round = {};
        std::vector<Request*> requests = {};
    };

    // These run in the leader's thread.
    void commit(store::CommitQueue::Group& group) noexcept;
    void run_each(std::span<Request* const> requests) noexcept;
    /// The group in rounds.
    static std::vector<Members> rounds_of(std::span<Request* const> requests);
    /// As often as it takes; what the world does to it is in the outcome.
    Outcome run(std::span<const Members> rounds);
    void run(std::span<Request* const> requests);
    void answer(const Members& members, const Result& refused);
    const std::string& statement(std::span<const Table* const> tables);

    const Options& options_;
    const std::string space_;
    const std::string lock_;
    Announcer& announcer_;
    Pool connections_;

    Mutex mutex_;
    std::map<std::vector<const Table*>, std::string> statements_ VARVE_GUARDED_BY(mutex_);

    store::CommitQueue queue_;
};

/// As store::parse_item, with an error that names the item.
store::Item parse_stored(const store::Key& key, std::string_view text);

}  // namespace varve::postgres
