#include "commands/timers.h"

#include "commands/application_parts.h"
#include "commands/build.h"
#include "commands/caused_by.h"
#include "commands/consumer.h"
#include "commands/failures.h"
#include "commands/workspace.h"
#include "core/planted_faults.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace varve::detail {
namespace {

constexpr Duration minute = std::chrono::minutes{1};
/// Others may set timers, too: so often the store is asked.
Duration time_between_looks(const Consumer& consumer) {
    return consumer.hears ? std::chrono::seconds{1} : consumer.options.poll_interval;
}
constexpr std::size_t id_bytes_max = 200;  // of a command id
constexpr std::size_t page_size = 100;
constexpr std::size_t minute_text_size = std::string_view{"2026-01-31T12:00"}.size();
constexpr std::size_t due_text_size = std::string_view{"2026-01-31T12:00:00.000000Z"}.size();

std::string minute_of(Time time) {
    return to_string(time).substr(0, minute_text_size);
}

std::string bucket_partition(const std::string& consumer, const std::string& minute_text) {
    return consumer + "/" + minute_text;
}

TimerPlace checked_place_in(std::string_view follower, std::string_view id) {
    std::optional<TimerPlace> place = TimerPlace::of(id);
    if (place && is_partition_of(place->consumer, follower)) return *std::move(place);
    throw InvalidError("'" + std::string{id} + "' is no timer of '" + std::string{follower} +
                       "'; give the id that setting it has returned");
}

std::string described(const TimerRow& timer) {
    return "the timer " + timer.type + " of '" + timer.instance + "', due " + to_string(timer.due);
}

/// In a transaction: what it does, and that it is gone.
void fire_in(Transaction& tx, const Consumer& consumer, const TimerPlace& place, const TimerRow& timer) {
    const Metadata before{.correlation = timer.correlation, .headers = timer.headers};
    const bool is_first = Workspace::of(tx).begin_once(
        caused_by(before, {.command_id = place.id(), .causation = timer.causation}), "timer");
    if (is_first) consumer.fire(tx, consumer.name, place.id(), timer);
}

}  // namespace

RowKey TimerPlace::row() const {
    return {bucket_partition(consumer, due_and_unique.substr(0, minute_text_size)), due_and_unique};
}

RowKey TimerPlace::bucket() const {
    return {consumer, due_and_unique.substr(0, minute_text_size)};
}

std::optional<TimerPlace> TimerPlace::of(std::string_view id) {
    const std::size_t unique = id.rfind('/');
    if (unique == std::string_view::npos || unique < due_text_size + 2) return std::nullopt;
    const std::size_t due = unique - due_text_size;
    if (id[due - 1] != '/') return std::nullopt;
    return TimerPlace{.consumer = std::string{id.substr(0, due - 1)}, .due_and_unique = std::string{id.substr(due)}};
}

std::string set_timer(Transaction& tx, const std::string& consumer, Time due_at, const std::string& instance,
                      EventData timer) {
    using std::chrono::sys_days;
    using std::chrono::year;
    if (due_at < sys_days{year{0} / 1 / 1} || due_at >= sys_days{year{10'000} / 1 / 1}) {
        throw InvalidError("the timer " + timer.type + " of '" + instance +
                           "' is to be due at a time that is none; give it one in the years 0 to 9999");
    }
    const std::string due = to_string(due_at);
    Workspace& work = Workspace::of(tx);
    const TimerPlace place{.consumer = consumer, .due_and_unique = due + "/" + uuid7(work.runtime())};
    if (place.id().size() > id_bytes_max) {
        throw InvalidError("the name '" + consumer + "' is too long to set timers: their ids would have " +
                           std::to_string(place.id().size()) + " bytes, more than the " + std::to_string(id_bytes_max) +
                           " of a command id");
    }
    const RowsInTransaction<TimerBucket> buckets = tx.rows<TimerBucket>();
    if (!buckets.get(place.bucket()) && !planted(PlantedFault::a_timer_is_set_where_nobody_looks))
        buckets.put(place.bucket(), {.first = std::chrono::floor<std::chrono::minutes>(due_at)});
    const Metadata& cause = work.metadata();
    const TimerRow row{.due = due_at,
                       .instance = instance,
                       .type = std::move(timer.type),
                       .schema = timer.schema,
                       .data = std::move(timer.data),
                       .correlation = cause.correlation,
                       .causation = cause.command_id,
                       .headers = caused_by(cause, {}).headers};
    work.insert(row_table<TimerRow>, place.row(), json::encode(row));
    return place.id();
}

bool cancel_timer(Transaction& tx, std::string_view follower, std::string_view id) {
    const TimerPlace place = checked_place_in(follower, id);
    const RowsInTransaction<TimerRow> rows = tx.rows<TimerRow>();
    if (rows.get(place.row())) {
        if (!planted(PlantedFault::a_timer_that_is_cancelled_stays)) rows.erase(place.row());
        return true;
    }
    const RowsInTransaction<TimerAside> aside = tx.rows<TimerAside>();
    if (!aside.get(place.aside())) return false;
    aside.erase(place.aside());
    return true;
}

Duration DueTimers::fire(Time up_to, const std::function<bool()>& goes_on) {
    Clock& clock = application_.runtime().clock;
    up_to = std::min(up_to, clock.now());
    if (planted(PlantedFault::a_timer_fires_before_its_time)) up_to += std::chrono::seconds{1};
    const auto wait = [&] {
        Duration left = std::chrono::duration_cast<Duration>(look_at_ - clock.steady_now());
        if (next_) left = std::min(left, *next_ - clock.now());
        return std::max(left, Duration::zero());
    };
    if (clock.steady_now() < look_at_ && (!next_ || *next_ > up_to)) return wait();
    look_at_ = clock.until(time_between_looks(consumer_));
    next_.reset();
    // The next minute's bucket may begin before the next look.
    const RowRange range{
        .partition = consumer_.name, .first = {}, .last = minute_of(up_to + time_between_looks(consumer_))};
    PageOptions page{.limit = page_size};
    do {
        const RowPage<TimerBucket> buckets = application_.rows<TimerBucket>().range(range, page);
        for (const RowOf<TimerBucket>& bucket : buckets.rows) {
            if (!goes_on()) return Duration::zero();
            fire_bucket(bucket.key.sort, up_to, goes_on);
        }
        page.next = buckets.next;
    } while (!page.next.empty());
    return wait();
}

void DueTimers::fire_bucket(const std::string& minute_text, Time up_to, const std::function<bool()>& goes_on) {
    const Time end = parse_time(minute_text + ":00Z") + minute;
    const RowRange range{.partition = bucket_partition(consumer_.name, minute_text)};
    PageOptions page{.limit = page_size};
    do {
        const RowPage<TimerRow> timers = application_.rows<TimerRow>().range(range, page);
        for (const RowOf<TimerRow>& timer : timers.rows) {
            if (timer.value.due > up_to) {
                next_ = next_ ? std::min(*next_, timer.value.due) : timer.value.due;
                return;
            }
            if (!goes_on()) return;
            fire_one({.consumer = consumer_.name, .due_and_unique = timer.key.sort});
        }
        page.next = timers.next;
    } while (!page.next.empty());
    if (end <= up_to) close(minute_text);
}

void DueTimers::fire_one(const TimerPlace& place) {
    std::vector<store::Key> touched;
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<TimerRow> rows = tx.rows<TimerRow>();
        const std::optional<TimerRow> timer = rows.get(place.row());
        if (!timer) return;                           // it was cancelled, or fired by somebody else
        const bool is_early = tx.now() < timer->due;  // a clock went back
        if (is_early && !planted(PlantedFault::a_timer_fires_before_its_time)) return;
        fire_in(tx, consumer_, place, *timer);
        if (!planted(PlantedFault::a_timer_stays_when_it_fires)) rows.erase(place.row());
        touched.clear();
        for (const auto& [key, row] : Workspace::of(tx).rows()) touched.push_back(key);
    };
    try {
        own_transaction(application_, body).value();
        look_for(touched);
    } catch (...) {
        if (may_pass(std::current_exception())) throw;
        failed(place);
    }
}

void DueTimers::failed(const TimerPlace& place) {
    const std::string error = storable_cause();
    std::optional<TimerRow> timer;
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<TimerRow> rows = tx.rows<TimerRow>();
        timer = rows.get(place.row());
        if (!timer || consumer_.options.on_poison == FollowOptions::OnPoison::stop) return;
        rows.erase(place.row());
        if (planted(PlantedFault::a_timer_that_failed_is_forgotten)) return;
        tx.rows<TimerAside>().put(place.aside(), {.timer = *timer, .error = error, .since = tx.now()});
    };
    own_transaction(application_, body).value();
    if (!timer) return;
    if (consumer_.options.on_poison == FollowOptions::OnPoison::stop)
        throw TimerFailed("at " + described(*timer) + ": " + error);
    try_to_log(application_.runtime().log, LogLevel::error, [&] {
        return "the follower '" + consumer_.name + "' has set " + described(*timer) + ", aside: " + error;
    });
}

void DueTimers::close(const std::string& minute_text) {
    const auto body = [&](Transaction& tx) {
        const RowRange range{.partition = bucket_partition(consumer_.name, minute_text)};
        if (planted(PlantedFault::a_bucket_is_closed_without_a_look_into_it) ||
            tx.rows<TimerRow>().range(range, {.limit = 1}).rows.empty())
            tx.rows<TimerBucket>().erase({consumer_.name, minute_text});
    };
    own_transaction(application_, body).value();
}

void DueTimers::look_for(const std::vector<store::Key>& rows) {
    const std::string own = consumer_.name + "/";
    for (const store::Key& key : rows) {
        if (key.table != TimerRow::table || !key.partition.starts_with(own)) continue;
        const auto* sort = std::get_if<std::string>(&key.sort);
        if (sort == nullptr || sort->size() < due_text_size) continue;
        const Time due = parse_time(std::string_view{*sort}.substr(0, due_text_size));
        next_ = next_ ? std::min(*next_, due) : due;
    }
}

bool has_timers(Application& application, const std::string& consumer) {
    return !application.rows<TimerBucket>().range({.partition = consumer}, {.limit = 1}).rows.empty();
}

std::map<std::string, TimerAside> timers_aside(Application& application, const std::string& consumer) {
    std::map<std::string, TimerAside> all;
    for (RowOf<TimerAside>& row : application.rows<TimerAside>().range({.partition = consumer})) {
        const TimerPlace place{.consumer = consumer, .due_and_unique = std::move(row.key.sort)};
        all.emplace(place.id(), std::move(row.value));
    }
    return all;
}

namespace {

/// Whether it is no longer aside.
bool retry_timer(Application& application, const Consumer& consumer, const TimerPlace& place) {
    bool is_early = false;
    std::string failed;
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<TimerAside> rows = tx.rows<TimerAside>();
        std::optional<TimerAside> aside = rows.get(place.aside());
        is_early = aside && tx.now() < aside->timer.due;  // whoever set it aside has a clock that is ahead
        if (!aside || is_early) return;
        if (failed.empty()) {
            fire_in(tx, consumer, place, aside->timer);
            rows.erase(place.aside());
        } else {
            aside->error = failed;
            rows.put(place.aside(), *aside);
        }
    };
    try {
        own_transaction(application, body).value();
        return !is_early;
    } catch (...) {
        if (may_pass(std::current_exception())) throw;
        failed = storable_cause();
    }
    own_transaction(application, body).value();
    return false;
}

}  // namespace

std::size_t retry_timers(Application& application, const Consumer& consumer) {
    std::size_t fired = 0;
    for (const auto& [id, timer] : timers_aside(application, consumer.name)) {
        if (retry_timer(application, consumer, *TimerPlace::of(id))) ++fired;
    }
    return fired;
}

bool drop_timer(Application& application, std::string_view follower, std::string_view id) {
    const TimerPlace place = checked_place_in(follower, id);
    bool is_dropped = false;
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<TimerAside> rows = tx.rows<TimerAside>();
        is_dropped = rows.get(place.aside()).has_value();
        if (is_dropped) rows.erase(place.aside());
    };
    own_transaction(application, body).value();
    return is_dropped;
}

}  // namespace varve::detail
