#pragma once

#include "commands/consumer.h"
#include "commands/parked_row.h"

#include <varve/commands/application.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace varve::detail {

/// Thrown by a handler of effects that goes no further: what the stream's row is to say.
struct NotDelivered : std::runtime_error {
    explicit NotDelivered(ParkedRow row_) : std::runtime_error("an effect was not delivered"), row(std::move(row_)) {}
    ParkedRow row;
};

/// Takes up one stream that a follower has set aside, from where its row says to the follower's checkpoint. The row
/// moves in the transactions that have the effects; the last of them removes it and touches the checkpoint, on which
/// the follower rests its own. So each event takes effect once, whoever else is at work. A handler is called before
/// such a transaction, and gets an event again only if that fails.
///
///     if (!ParkedRetry{application, consumer, {}, "account-alice"}.run(goes_on)) …  // its row says why
///
/// Threads: belongs to one.
class ParkedRetry {
  public:
    /// Gives events to a subscription's handler. False: that has ended.
    using HandOver = std::function<bool(std::span<const RecordedEvent>)>;

    ParkedRetry(Application& application, const Consumer& consumer, HandOver hand_over, std::string stream);

    /// Whether the follower has it again. `goes_on`: asked before each step. Errors: those of the store.
    /// `row`: what its caller has read, and rests on; else it is read here.
    bool run(const std::function<bool()>& goes_on, std::optional<ParkedRow> row = {});

  private:
    enum class Result { again, is_live, stays_aside };

    Result step();
    /// So that who takes it up next need not read again what was others'.
    void keep_place();
    /// Whether nobody else has changed it.
    bool is_mine(const std::optional<ParkedRow>& row) const;
    /// Up to `goal`, and one slot if something has failed, or effects are delivered.
    feed::Batch read(store::Position goal);
    bool has_nothing_between(store::Position after, store::Position goal) const;
    /// What happened while `batch` was taken: passes on what is the world's fault.
    Result failed(const feed::Batch& batch);

    Application& application_;
    const Consumer& consumer_;
    const HandOver hand_over_;
    const feed::Feed feed_;
    const RowKey key_;
    const feed::Filter filter_;
    ParkedRow row_;                          // as it was read or written here
    store::Position done_ = 0;               // ahead of that by what is others'
    std::size_t portion_ = 1;                // slots to read next, at most
    std::vector<RecordedEvent> one_by_one_;  // what is left of a batch that has failed, or of effects
};

}  // namespace varve::detail
