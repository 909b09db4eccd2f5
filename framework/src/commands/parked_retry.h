#pragma once

#include "commands/consumer.h"
#include "commands/parked_row.h"

#include <varve/commands/application.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace varve::detail {

/// Takes up one stream that a follower has set aside, from where its row says to the follower's checkpoint. The row
/// moves in the transactions that have the effects; the last of them removes it and touches the checkpoint, on which
/// the follower rests its own. So each event takes effect once, whoever else is at work. A handler is called before
/// such a transaction, and gets an event again only if that fails.
///
///     if (!ParkedRetry{application, consumer, {}, "account-alice"}.run()) …  // it is still aside: its row says why
///
/// Threads: belongs to one.
class ParkedRetry {
  public:
    /// Gives events to a subscription's handler. False: that has ended.
    using HandOver = std::function<bool(std::span<const RecordedEvent>)>;

    ParkedRetry(Application& application, const Consumer& consumer, HandOver hand_over, std::string stream);

    /// Whether the follower has it again. Errors: those of the store.
    bool run();

  private:
    enum class Result { again, is_live, stays_aside };

    Result step();
    /// Up to `goal`, and one slot if something has failed.
    feed::Batch read(store::Position goal) const;
    bool has_nothing_between(store::Position after, store::Position goal) const;
    /// What happened while `batch` was taken: passes on what is the world's fault.
    Result failed(const feed::Batch& batch);

    Application& application_;
    const Consumer& consumer_;
    const HandOver hand_over_;
    const feed::Feed feed_;
    const RowKey key_;
    const feed::Filter filter_;
    std::int64_t stored_ = 0;                // the row's position, as it was read or written here
    store::Position done_ = 0;               // ahead of that by what is others'
    std::vector<RecordedEvent> one_by_one_;  // of the batch that has failed, what is left
};

}  // namespace varve::detail
