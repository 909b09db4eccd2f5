#include "commands/application_parts.h"
#include "commands/failures.h"
#include "commands/follower.h"
#include "commands/parked_retry.h"
#include "core/planted_faults.h"

#include <varve/commands/application.h>
#include <varve/core/error.h>

#include <algorithm>
#include <utility>

namespace varve::detail {
namespace {

constexpr std::size_t passed_by_max = 10'000;
constexpr std::size_t pieces_behind_max = 200;
constexpr std::size_t retries_in_a_round_max = 3;
constexpr Duration round_time_max = std::chrono::seconds{1};

std::string name_of(const std::string& type, Version version, const std::string& stream) {
    return "the effect " + type + ", version " + std::to_string(version) + " of stream '" + stream + "',";
}

/// What is to be said of a stream at this effect, which has failed. `before`: what was said. `counts`: it failed while
/// others got through.
ParkedRow row_of(const RecordedEvent& effect, const Deliverer::Failure& failure, const ParkedRow& before, bool counts,
                 unsigned attempts_max) {
    const bool is_the_same = effect.id == before.id;
    const std::int64_t attempts = (is_the_same ? before.attempts : 0) + (counts ? 1 : 0);
    return {.position = static_cast<std::int64_t>(effect.position) - 1,
            .version = effect.version,
            .type = effect.event.type,
            .error = failure.why,
            .since = before.since,
            .id = effect.id,
            .index = static_cast<std::int64_t>(effect.index),
            .attempts = attempts,
            .given_up = failure.for_ever || (is_the_same && before.given_up) || attempts >= std::int64_t{attempts_max}};
}

/// To go on there.
ParkedRow row_of(const RecordedEvent& effect, const ParkedRow& before) {
    ParkedRow row = before;
    row.version = effect.version;
    row.type = effect.event.type;
    row.index = static_cast<std::int64_t>(effect.index);
    if (effect.id == before.id) return row;
    row.error.clear();
    row.id.clear();
    row.attempts = 0;
    row.given_up = false;
    return row;
}

}  // namespace

void Follower::deliver(feed::Batch& batch, const GoesOn& goes_on) {
    std::vector<RecordedEvent>& effects = batch.events;
    const std::size_t count = effects.size();
    if (delivering_.waits) look_behind(batch, goes_on);
    const auto call = [&](const std::function<void()>& work) {
        bool is_called = false;
        run_handler([&] {
            if (!goes_on()) return;
            work();
            is_called = true;
        });
        return is_called;
    };
    Deliverer::Pass pass = consumer_.deliverer->run(effects, count, delivering_.delivered, call);
    effects.erase(effects.begin() + static_cast<std::ptrdiff_t>(count), effects.end());
    delivering_.waits = pass.is_silent;
    if (!pass.is_silent) look_anew();

    const std::size_t room = consumer_.options.parked_max - std::min(consumer_.options.parked_max, parked_.size());
    std::erase_if(pass.aside, [&](const auto& one) { return one.first >= count; });
    const bool has_room = pass.aside.size() <= room;
    if (!has_room) pass.aside.erase(pass.aside.begin() + static_cast<std::ptrdiff_t>(room), pass.aside.end());
    Streams failing;
    for (const auto& [i, failure] : pass.aside) failing.insert(effects[i].stream);
    // Whole slots are noted. One of which a part is delivered comes again, and `delivered` has that part.
    const auto is_open = [&](const RecordedEvent& effect) {
        return !delivering_.delivered.contains(effect.id) && !failing.contains(effect.stream) &&
               !planted(PlantedFault::an_effect_that_failed_is_taken_for_delivered);
    };
    const auto left = std::ranges::find_if(effects, is_open);
    feed::Batch rest{.events = {}, .end = batch.end, .is_last = batch.is_last};
    if (left != effects.end()) batch.end = left->position - 1;
    std::vector<Aside> aside;
    for (const auto& [i, failure] : pass.aside) {
        if (effects[i].position > batch.end) continue;
        aside.push_back({.stream = effects[i].stream,
                         .row = row_of(effects[i], failure, {}, true, consumer_.deliverer->options().attempts_max)});
    }
    const auto cut = std::ranges::upper_bound(effects, batch.end, {}, &RecordedEvent::position);
    if (pass.is_paced) rest.events.assign(cut, effects.end());  // else there may be others by then
    effects.erase(cut, effects.end());
    std::erase_if(effects, [&](const auto& effect) { return !delivering_.delivered.contains(effect.id); });

    const bool is_where_it_was = batch.end <= seen_ || commit(batch, aside);
    std::erase_if(delivering_.delivered, [&](const auto& one) { return one.second <= seen_; });
    hold(has_room);
    if (!is_where_it_was) return;
    rest_ = std::move(rest);
    for (const Aside& one : aside) tell_of(one);
    reached(seen_, State::catching_up);
}

void Follower::look_behind(feed::Batch& batch, const GoesOn& goes_on) try {
    Delivering& my = delivering_;
    // Effects of a stream are delivered in order: what has others in front of it is no first one.
    const auto passes_by = [&](const RecordedEvent& effect) {
        return !my.delivered.contains(effect.id) && my.passed_by.insert(effect.stream).second;
    };
    std::ranges::for_each(batch.events, passes_by);
    for (std::size_t pieces = 0; pieces < pieces_behind_max && goes_on(); ++pieces) {
        if (my.behind < batch.end || my.passed_by.size() > passed_by_max) {
            look_anew();
            my.behind = batch.end;
            std::ranges::for_each(batch.events, passes_by);
        }
        feed::Batch behind = feed_.read(my.behind, consumer_.options.batch_max, consumer_.filter);
        my.behind = behind.is_last ? 0 : behind.end;
        for (RecordedEvent& effect : behind.events) {
            if (passes_by(effect) && !parked_.contains(effect.stream)) batch.events.push_back(std::move(effect));
        }
        if (behind.is_last || !behind.events.empty()) return;
    }
} catch (const CorruptionError&) {
    look_anew();  // it is said when everything before it is delivered
}

void Follower::look_anew() noexcept {
    delivering_.behind = 0;
    delivering_.passed_by.clear();
}

void Follower::hold(bool has_room) {
    Delivering& my = delivering_;
    my.without_room = has_room ? 0 : my.without_room + 1;
    if (has_room) return;
    my.held_until = application_.runtime().clock.get().until(consumer_.deliverer->wait_after(my.without_room));
    if (my.without_room > 1) return;
    try_to_log(application_.runtime().log, LogLevel::error, [&] {
        return "the follower '" + consumer_.name + "' waits, since " + std::to_string(consumer_.options.parked_max) +
               " streams of effects are aside, and DeliverOptions::parked_max allows no more; call retry_parked when "
               "the receiver is mended";
    });
}

Duration Follower::prepare_to_deliver(const GoesOn& goes_on) {
    if (!delivering_.waits && !delivering_.retries.empty()) retry_effects(goes_on);
    const SteadyTime now = application_.runtime().clock.get().steady_now();
    return std::max(Duration::zero(), std::chrono::duration_cast<Duration>(delivering_.held_until - now));
}

void Follower::tell_of(const Aside& aside) const {
    const ParkedRow& row = aside.row;
    try_to_log(application_.runtime().log, row.given_up ? LogLevel::error : LogLevel::warning, [&] {
        return name_of(row.type, row.version, aside.stream) +
               (row.given_up ? " was not delivered, and is not tried again by itself; its stream is aside until "
                               "retry_parked or drop_effect: "
                             : " was not delivered; its stream is aside, and is tried again: ") +
               row.error;
    });
}

Follower::Retry Follower::retry_of(const ParkedRow& row, std::uint64_t failures, Duration at_least) const {
    const Deliverer& deliverer = *consumer_.deliverer;
    // What is given up is looked at now and then: somebody may have taken it up.
    const Duration wait = row.given_up ? deliverer.options().retry_max : deliverer.wait_after(failures);
    return {.due = application_.runtime().clock.get().until(std::max(wait, at_least)),
            .answers = deliverer.answers(),
            .failures = failures};
}

void Follower::retry_effects(const GoesOn& goes_on) {
    Deliverer& deliverer = *consumer_.deliverer;
    Delivering& my = delivering_;
    const SteadyTime now = application_.runtime().clock.get().steady_now();
    if (now < my.next_round) return;
    std::vector<std::pair<SteadyTime, std::string>> due;
    for (const auto& [stream, retry] : my.retries) {
        if (retry.due <= now) due.emplace_back(retry.due, stream);
    }
    std::ranges::sort(due);
    if (due.size() > retries_in_a_round_max) due.resize(retries_in_a_round_max);
    const std::uint64_t answers = deliverer.answers();
    bool has_failed = false;
    Clock& clock = application_.runtime().clock;
    const SteadyTime end = clock.until(round_time_max);
    const GoesOn may_go_on = [&] {
        return goes_on() && deliverer.silence() == Duration::zero() && clock.steady_now() < end;
    };
    for (const auto& [when, stream] : due) {
        if (!may_go_on() || deliverer.until_place() > Duration::zero()) break;
        has_failed |= retry_effect(stream, may_go_on);
    }
    // Nobody knows whether that is the receiver's fault. New effects are tried all the same.
    const bool is_silent = has_failed && deliverer.answers() == answers;
    my.silent_rounds = is_silent ? my.silent_rounds + 1 : 0;
    if (is_silent) my.next_round = application_.runtime().clock.get().until(deliverer.wait_after(my.silent_rounds));
}

bool Follower::retry_effect(const std::string& stream, const GoesOn& goes_on) {
    Delivering& my = delivering_;
    const auto retry = my.retries.find(stream);
    if (retry == my.retries.end()) return false;
    const std::optional<ParkedRow> row = application_.rows<ParkedRow>().get({consumer_.name, stream});
    if (!row) {  // somebody else has taken it up
        be_at(stored().value_or(Checkpoint{}));
        return false;
    }
    if (row->given_up) {
        retry->second = retry_of(*row, 1, Duration::zero());
        return false;
    }
    const bool counts = consumer_.deliverer->answers() > retry->second.answers;
    const Retried retried = retry_aside(stream, *row, counts, goes_on);
    if (retried.is_live) {
        be_at_after_retry(stream, stored().value_or(Checkpoint{}));
        return false;
    }
    if (!retried.failure) return false;  // it was stopped, and is due as before
    const ParkedRow now = application_.rows<ParkedRow>().get({consumer_.name, stream}).value_or(*row);
    retry->second = retry_of(now, now.id == row->id ? retry->second.failures + 1 : 1, retried.failure->after);
    if (now.given_up) tell_of({.stream = stream, .row = now});
    return true;
}

Follower::Retried Follower::retry_aside(const std::string& stream, const ParkedRow& row, bool counts,
                                        const GoesOn& goes_on) {
    Deliverer& deliverer = *consumer_.deliverer;
    Retried retried;
    const auto hand_over = [&](std::span<const RecordedEvent> effects) {
        for (const RecordedEvent& effect : effects) {
            if (effect.version == row.version && static_cast<std::int64_t>(effect.index) < row.index) continue;
            bool is_tried = false;
            if (deliverer.take_place() == Duration::zero()) {
                run_handler([&] {
                    if (!goes_on()) return;
                    retried.failure = deliverer.try_one(effect);
                    is_tried = true;
                });
            }
            if (!is_tried) throw NotDelivered{row_of(effect, row)};
            if (!retried.failure) continue;
            throw NotDelivered{row_of(effect, *retried.failure, row, counts, deliverer.options().attempts_max)};
        }
        return true;
    };
    retried.is_live = ParkedRetry{application_, consumer_, hand_over, stream}.run(goes_on, row);
    return retried;
}

bool Follower::retry_aside_now(const std::string& stream) {
    const std::optional<ParkedRow> row = application_.rows<ParkedRow>().get({consumer_.name, stream});
    if (!row) return true;
    const GoesOn when_it_may = [this] {
        Clock& clock = application_.runtime().clock;
        for (;;) {
            const Duration wait = consumer_.deliverer->until_place();
            if (wait == Duration::zero()) return true;
            clock.sleep_for(wait);
        }
    };
    return retry_aside(stream, *row, false, when_it_may).is_live;
}

bool Follower::drop_parked(std::string_view id) {
    if (id.empty()) return false;  // as the row says of one that nobody has tried
    const std::vector<ParkedStream> streams = parked();
    const auto found = std::ranges::find(streams, id, &ParkedStream::id);
    if (found == streams.end()) return false;
    bool is_dropped = false;
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<ParkedRow> rows = tx.rows<ParkedRow>();
        const RowKey key{consumer_.name, found->stream};
        std::optional<ParkedRow> row = rows.get(key);
        is_dropped = row && row->id == id;
        if (!is_dropped) return;
        ++row->index;
        row->id.clear();
        row->attempts = 0;
        row->given_up = false;
        rows.put(key, *row);
    };
    own_transaction(application_, body).value();
    if (!is_dropped) return false;
    try_to_log(application_.runtime().log, LogLevel::warning, [&] {
        return name_of(found->type, found->version, found->stream) + " was dropped, and is not delivered any more";
    });
    retry_aside_now(found->stream);
    return true;
}

}  // namespace varve::detail
