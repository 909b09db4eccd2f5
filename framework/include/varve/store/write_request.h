#pragma once

#include <varve/store/adapter.h>
#include <varve/store/commit_queue.h>
#include <varve/store/item_store.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace varve::store {

/// Writes of one call that wait in a CommitQueue, and what becomes of them. For adapters:
///
///     struct Request : store::WriteRequest {
///         using WriteRequest::WriteRequest;
///         std::span<const PreparedWrite> writes;
///     };
///     Request request{writes.size(), store::Batch::independent};
///     queue.run(request);
///     return std::move(request.answers);
///
/// Threads: its caller's until it is queued, then its leader's.
struct WriteRequest : CommitQueue::Request {
    /// Until they are answered its writes are in doubt. Throws std::bad_alloc.
    WriteRequest(std::size_t writes, Batch batch);

    const bool atomic;
    std::vector<WriteAnswer> answers;  ///< unless it is atomic: one per write, all from the beginning
    AtomicAnswer atomic_answer;        ///< if it is
    /// Answers all of it. Without memory for the message it is brief.
    void fail(const Failure& failure) noexcept;
};

/// What an answer is until it is given: in doubt.
Failure unanswered() noexcept;

/// The exception that is being handled, as an answer. `where`: "the SQLite file bank.db". Without memory for more it is
/// brief.
Failure current_failure(std::string_view where) noexcept;

}  // namespace varve::store
