#include "commands/parked_retry.h"

#include "commands/application_parts.h"
#include "commands/checkpoint.h"
#include "commands/failures.h"

#include <algorithm>
#include <utility>

namespace varve::detail {

namespace {

/// What is being handled, if it is one of these.
template <class T>
std::optional<T> caught() {
    try {
        throw;
    } catch (const T& error) {
        return error;
    } catch (...) {
        return std::nullopt;
    }
}

feed::Filter only(const std::string& stream, feed::Filter filter) {
    filter.stream = stream;
    return filter;
}

}  // namespace

ParkedRetry::ParkedRetry(Application& application, const Consumer& consumer, HandOver hand_over, std::string stream)
    : application_(application),
      consumer_(consumer),
      hand_over_(std::move(hand_over)),
      feed_(parts_of(application).coordinator.store()),
      key_(consumer.name, std::move(stream)),
      filter_(only(key_.sort, consumer.filter)) {}

bool ParkedRetry::run(const std::function<bool()>& goes_on, std::optional<ParkedRow> row) {
    if (!row) row = application_.rows<ParkedRow>().get(key_);
    if (!row) return true;
    row_ = std::move(*row);
    done_ = static_cast<store::Position>(row_.position);
    while (goes_on()) {
        const Result result = step();
        if (result != Result::again) return result == Result::is_live;
    }
    if (done_ > static_cast<store::Position>(row_.position)) keep_place();
    return false;
}

void ParkedRetry::keep_place() {
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<ParkedRow> rows = tx.rows<ParkedRow>();
        std::optional<ParkedRow> row = rows.get(key_);
        if (!is_mine(row)) return;
        row->position = static_cast<std::int64_t>(done_);
        rows.put(key_, *row);
    };
    own_transaction(application_, body).value();
}

bool ParkedRetry::is_mine(const std::optional<ParkedRow>& row) const {
    return row && row->position == row_.position && row->index == row_.index && row->id == row_.id;
}

feed::Batch ParkedRetry::read(store::Position goal) {
    if (one_by_one_.empty()) {
        // The row says where the first one is, which may fail again: what is behind it is read when it has not.
        feed::Batch batch = feed_.read(done_, std::min(portion_, consumer_.options.batch_max), filter_);
        portion_ = std::min(portion_ * 8, consumer_.options.batch_max);
        const store::Position last = std::min(batch.end, goal);
        std::erase_if(batch.events, [last](const RecordedEvent& event) { return event.position > last; });
        if (!consumer_.deliverer || batch.events.empty()) return batch;
        one_by_one_ = std::move(batch.events);
    }
    const store::Position end = one_by_one_.front().position;
    const auto next = std::ranges::upper_bound(one_by_one_, end, {}, &RecordedEvent::position);
    return {.events = {one_by_one_.begin(), next}, .end = end, .is_last = false};
}

bool ParkedRetry::has_nothing_between(store::Position after, store::Position goal) const {
    if (after >= goal) return true;
    const feed::Batch batch = feed_.read(after, consumer_.options.batch_max, filter_);
    if (!batch.events.empty()) return batch.events.front().position > goal;
    return batch.is_last || batch.end >= goal;
}

ParkedRetry::Result ParkedRetry::step() {
    const std::optional<Checkpoint> reached = application_.rows<Checkpoint>().get(consumer_.name);
    store::Position goal = reached ? static_cast<store::Position>(reached->position) : 0;
    feed::Batch batch = read(goal);
    const bool is_near = batch.is_last || batch.end >= goal;
    if (batch.events.empty() && !is_near) {
        done_ = batch.end;
        return Result::again;
    }
    auto result = Result::again;
    ParkedRow after = row_;
    const auto body = [&](Transaction& tx) {
        result = Result::again;
        const RowsInTransaction<ParkedRow> rows = tx.rows<ParkedRow>();
        std::optional<ParkedRow> row = rows.get(key_);
        if (!is_mine(row)) {  // somebody else is at it
            result = row ? Result::stays_aside : Result::is_live;
            return;
        }
        std::optional<Checkpoint> checkpoint;
        bool is_all = false;
        if (is_near) {  // what the follower has noted meanwhile, too
            checkpoint = tx.rows<Checkpoint>().get(consumer_.name).value_or(Checkpoint{});
            const auto noted = static_cast<store::Position>(checkpoint->position);
            if (consumer_.hands_over()) {
                is_all = has_nothing_between(std::min(batch.end, goal), noted);
            } else {
                goal = noted;
                batch = read(goal);
                is_all = batch.is_last || batch.end >= goal;
            }
        }
        const std::vector<RecordedEvent>& events = batch.events;
        const std::size_t taken =
            consumer_.project_some(tx, events, parts_of(application_).coordinator.store().capabilities());
        if (is_all && taken == events.size()) {
            rows.erase(key_);
            --checkpoint->parked;
            ++checkpoint->retries;
            tx.rows<Checkpoint>().put(consumer_.name, *checkpoint);
            result = Result::is_live;
            return;
        }
        const store::Position end = taken == events.size() ? std::min(batch.end, goal) : events[taken - 1].position;
        after = {.position = static_cast<std::int64_t>(end),
                 .version = row->version,
                 .type = row->type,
                 .error = row->error,
                 .since = row->since};
        rows.put(key_, after);
    };
    try {
        if (consumer_.hands_over() && !batch.events.empty() && !hand_over_(batch.events)) return Result::stays_aside;
        own_transaction(application_, body).value();
    } catch (...) {
        return failed(batch);
    }
    row_ = std::move(after);
    done_ = std::max(done_, static_cast<store::Position>(row_.position));
    std::erase_if(one_by_one_, [this](const RecordedEvent& event) { return event.position <= done_; });
    return result;
}

ParkedRetry::Result ParkedRetry::failed(const feed::Batch& batch) {
    if (may_pass(std::current_exception()) || batch.events.empty()) throw;
    const RecordedEvent& first = batch.events.front();
    if (first.position != batch.events.back().position) {
        one_by_one_ = batch.events;  // which of them it is
        return Result::again;
    }
    const std::optional<NotDelivered> not_delivered = caught<NotDelivered>();
    ParkedRow failed;
    if (not_delivered) {
        failed = not_delivered->row;
    } else {
        failed = {
            .version = first.version, .type = first.event.type, .error = storable_cause(), .since = {}, .id = first.id};
    }
    failed.position = static_cast<std::int64_t>(first.position) - 1;
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<ParkedRow> rows = tx.rows<ParkedRow>();
        const std::optional<ParkedRow> row = rows.get(key_);
        if (!is_mine(row)) return;
        failed.since = row->since;
        rows.put(key_, failed);
    };
    own_transaction(application_, body).value();
    return Result::stays_aside;
}

}  // namespace varve::detail
