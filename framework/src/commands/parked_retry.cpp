#include "commands/parked_retry.h"

#include "commands/checkpoint.h"
#include "core/what_was_thrown.h"

#include <algorithm>
#include <utility>

namespace varve::detail {

namespace {

feed::Filter only(const std::string& stream, feed::Filter filter) {
    filter.stream = stream;
    return filter;
}

}  // namespace

ParkedRetry::ParkedRetry(Application& application, const Consumer& consumer, std::string stream)
    : application_(application),
      consumer_(consumer),
      feed_(application.store()),
      key_(consumer.name, std::move(stream)),
      filter_(only(key_.sort, consumer.filter)) {}

bool ParkedRetry::run() {
    const std::optional<ParkedRow> row = application_.rows<ParkedRow>().get(key_);
    if (!row) return true;
    stored_ = row->position;
    done_ = static_cast<store::Position>(stored_);
    for (;;) {
        const Result result = step();
        if (result != Result::again) return result == Result::is_live;
    }
}

feed::Batch ParkedRetry::read(store::Position goal) const {
    feed::Batch batch = feed_.read(done_, consumer_.options.batch_max, filter_);
    std::vector<RecordedEvent>& events = batch.events;
    if (one_by_one_ && !events.empty() && events.front().position < batch.end) {
        batch.end = events.front().position;
        batch.is_last = false;
    }
    const store::Position last = std::min(batch.end, goal);
    std::erase_if(events, [last](const RecordedEvent& event) { return event.position > last; });
    return batch;
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
    std::int64_t moved_to = stored_;
    const auto body = [&](Transaction& tx) {
        result = Result::again;
        const RowsInTransaction<ParkedRow> rows = tx.rows<ParkedRow>();
        std::optional<ParkedRow> row = rows.get(key_);
        if (!row || row->position != stored_) {  // somebody else is at it
            result = row ? Result::stays_aside : Result::is_live;
            return;
        }
        std::optional<Checkpoint> checkpoint;
        if (is_near) {  // what the follower has noted meanwhile, too
            checkpoint = tx.rows<Checkpoint>().get(consumer_.name).value_or(Checkpoint{});
            goal = static_cast<store::Position>(checkpoint->position);
            batch = read(goal);
        }
        const std::vector<RecordedEvent>& events = batch.events;
        if (consumer_.handle && !events.empty()) consumer_.handle(events);
        const std::size_t taken = consumer_.project_some(tx, events, application_.store().capabilities());
        const bool is_all = taken == events.size();
        if (checkpoint && is_all && (batch.is_last || batch.end >= goal)) {
            rows.erase(key_);
            --checkpoint->parked;
            ++checkpoint->retries;
            tx.rows<Checkpoint>().put(consumer_.name, *checkpoint);
            result = Result::is_live;
            return;
        }
        row->position = static_cast<std::int64_t>(is_all ? std::min(batch.end, goal) : events[taken - 1].position);
        moved_to = row->position;
        rows.put(key_, *row);
    };
    try {
        application_.transact(body).value();
    } catch (...) {
        return failed(batch);
    }
    stored_ = moved_to;
    done_ = std::max(done_, static_cast<store::Position>(stored_));
    return result;
}

ParkedRetry::Result ParkedRetry::failed(const feed::Batch& batch) {
    if (may_pass(std::current_exception()) || batch.events.empty()) throw;
    const RecordedEvent& first = batch.events.front();
    if (first.position != batch.events.back().position) {
        one_by_one_ = true;  // which of them it is
        return Result::again;
    }
    const std::string error = what_was_thrown();
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<ParkedRow> rows = tx.rows<ParkedRow>();
        std::optional<ParkedRow> row = rows.get(key_);
        if (!row || row->position != stored_) return;
        row->position = static_cast<std::int64_t>(first.position) - 1;
        row->version = first.version;
        row->type = first.event.type;
        row->error = error;
        rows.put(key_, *row);
    };
    application_.transact(body).value();
    return Result::stays_aside;
}

}  // namespace varve::detail
