#include "commands/follower.h"

#include "commands/advance.h"
#include "commands/application_parts.h"
#include "commands/failures.h"
#include "commands/parked_retry.h"
#include "core/planted_faults.h"

#include <varve/commands/application.h>
#include <varve/core/error.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace varve {

const char* to_string(FollowerStatus::State state) noexcept {
    switch (state) {
        case FollowerStatus::State::elsewhere: return "elsewhere";
        case FollowerStatus::State::catching_up: return "catching up";
        case FollowerStatus::State::live: return "live";
        case FollowerStatus::State::building: return "building";
        case FollowerStatus::State::stopped: return "stopped";
    }
    return "unknown";
}

}  // namespace varve

namespace varve::detail {
namespace {

constexpr Duration retry_after = std::chrono::seconds{1};
constexpr Duration away_for = std::chrono::seconds{2};
/// After a failure so many slots are taken one by one, before a whole batch is tried again.
constexpr store::Position one_by_one_max = 500;

Consumer checked(Consumer consumer) {
    consumer.check();
    return consumer;
}

std::string without_full_stop(std::string text) {
    if (text.ends_with('.')) text.pop_back();
    return text;
}

}  // namespace

void throw_no_effects_here() {
    throw InvalidError(
        "a projection that follows has no effects: nobody waits for the transaction that it runs in; let the command, "
        "or an inline projection, cause them");
}

Follower::Follower(Application& application, std::atomic<int>& idle, Consumer consumer)
    : application_(application),
      idle_count_(idle),
      consumer_(checked(std::move(consumer))),
      feed_(parts_of(application).coordinator.store()) {
    if (consumer_.fire) timers_.emplace(application_, consumer_);
    if (consumer_.after > 0) {
        const store::Position end = feed_.end();
        if (consumer_.after > end) {
            throw ConfigError("the follower '" + consumer_.name + "' cannot begin: it is to take what comes after " +
                              std::to_string(consumer_.after) + ", and the events end at " + std::to_string(end));
        }
    }
}

void Follower::start() {
    loop_ = BackgroundLoop{
        application_.runtime(),
        {.thread = "varve-follow", .work = "the follower '" + consumer_.name + "'", .retry_after = retry_after},
        [this](const std::stop_token& stop) { return turn(stop); }};
}

void Follower::end() {
    loop_ = {};
    {
        const MutexLock lock{handling_};
        has_ended_ = true;
    }
    be_idle(false);
    lock_.reset();
    set(State::elsewhere);
}

void Follower::be_idle(bool idle) noexcept {
    if (idle_.exchange(idle) != idle) idle_count_ += idle ? 1 : -1;
}

bool Follower::is_here() const {
    const MutexLock lock{mutex_};
    return state_ == State::catching_up || state_ == State::live;
}

bool Follower::is_elsewhere() const {
    const MutexLock lock{mutex_};
    return state_ == State::elsewhere;
}

void Follower::wake() noexcept {
    if (!idle_) return;
    be_idle(false);
    loop_.wake();
}

std::optional<Duration> Follower::turn(const std::stop_token& stop) {
    thread_ = std::this_thread::get_id();
    {
        const MutexLock lock{mutex_};
        if (state_ == State::stopped) return std::nullopt;
    }
    try {
        return own(stop) ? follow(stop) : consumer_.options.poll_interval;
    } catch (const TimerFailed& failed) {
        give_up(failed.what());
        return std::nullopt;
    } catch (...) {
        if (may_pass(std::current_exception())) throw;
        give_up("where it cannot read on: " + storable_cause());
        return std::nullopt;
    }
}

std::optional<Duration> Follower::follow(const std::stop_token& stop) {
    const GoesOn goes_on = [&] { return !stop.stop_requested() && !(lock_ && (lock_->is_lost() || gives_way_)); };
    while (!stop.stop_requested()) {
        if (lock_ && (lock_->is_lost() || gives_way_)) {
            be_idle(false);
            rest_ = {};
            lock_.reset();
            set(State::elsewhere);
            return gives_way_.exchange(false) ? away_for : Duration::zero();
        }
        if (consumer_.pace) {
            const Duration wait = consumer_.pace(seen_, checkpoint_.events);
            if (wait > Duration::zero()) return wait;
        }
        if (consumer_.deliverer) {
            const Duration wait = prepare_to_deliver(goes_on);
            if (wait > Duration::zero()) return std::min(wait, consumer_.options.poll_interval);
        }
        be_idle(true);  // before it looks: who commits after that wakes it
        if (!consumer_.hears) {
            reached(feed_.end(), State::live);
            return pause_until_timers(application_.runtime().clock.get().now(), goes_on);
        }
        const Time before = application_.runtime().clock.get().now();
        const bool careful = seen_ < one_by_one_until_;
        feed::Batch batch = std::exchange(rest_, {});
        if (batch.events.empty())
            batch = feed_.read(seen_, careful ? 1 : consumer_.options.batch_max, consumer_.filter);
        if (!batch.events.empty()) {
            be_idle(false);
            // What is set aside is noted as seen: that is all it costs.
            if (!parked_.empty())
                std::erase_if(batch.events, [&](const auto& event) { return parked_.contains(event.stream); });
            try {
                consumer_.deliverer ? deliver(batch, goes_on) : take(batch);
            } catch (...) {
                failed(batch);
                const MutexLock lock{mutex_};
                if (state_ == State::stopped) return std::nullopt;
            }
            if (checkpoint_.last) pause_until_timers(*checkpoint_.last, goes_on);
            continue;
        }
        delivering_.waits = false;
        seen_ = planted(PlantedFault::who_finds_nothing_takes_the_end_for_seen) ? feed_.end() : batch.end;
        const store::Position unsaved = seen_ - static_cast<store::Position>(checkpoint_.position);
        if (unsaved > consumer_.options.batch_max) commit(batch);  // so that the next owner need not read it again
        if (!batch.is_last) {
            reached(seen_, State::catching_up);
            continue;
        }
        reached(seen_, State::live);
        return pause_until_timers(before, goes_on);
    }
    return Duration::zero();
}

Duration Follower::pause_until_timers(Time seen, const GoesOn& goes_on) {
    const Duration pause = consumer_.options.poll_interval;
    return timers_ ? std::min(pause, timers_->fire(seen, goes_on)) : pause;
}

bool Follower::own(const std::stop_token& stop) {
    if (lock_ || began_) return true;
    std::optional<Lock> lock;
    if (!consumer_.ephemeral) {
        // Who waits in its queue asks the store far more often than an owner does.
        const Duration wait = queues_up_.exchange(false) ? queue_time_max : Duration::zero();
        lock = application_.locks().try_acquire(lock_name(), {.wait = wait, .on_lost = {}, .stop = stop});
        if (!lock) return false;
        gives_way_ = false;
    }
    const std::optional<Checkpoint> found = stored();
    const store::Position before = seen_;
    delivering_ = {};
    if (timers_) timers_->look_anew();
    if (consumer_.react && !timers_ && has_timers(application_, consumer_.name)) {
        try_to_log(application_.runtime().log, LogLevel::error, [&] {
            return "the follower '" + consumer_.name +
                   "' has timers that wait, and this program's process has none: they do not fire until one with its "
                   "Timers runs it";
        });
    }
    be_at(found.value_or(Checkpoint{}));
    if (before > 0 && planted(PlantedFault::a_new_owner_goes_on_from_where_it_was_before)) seen_ = before;
    if (seen_ > 0 && planted(PlantedFault::a_new_owner_takes_what_lies_at_the_checkpoint_again)) --seen_;
    const store::Position end = feed_.end();
    checkpoint_.check("its checkpoint", end);
    if (!found || planted(PlantedFault::a_subscription_begins_at_the_end_with_each_owner)) begin(end);
    began_ = consumer_.ephemeral;
    lock_ = std::move(lock);
    reached(seen_, State::catching_up);
    const SteadyTime now = application_.runtime().clock.get().steady_now();
    const MutexLock owning{mutex_};
    rate_.begin(now);
    return true;
}

void Follower::begin(store::Position end) {
    const bool at_the_end = consumer_.start_at == StartAt::end;
    const store::Position first = at_the_end ? end : consumer_.after;
    Checkpoint begun;
    begun.position = static_cast<std::int64_t>(first);
    Checkpoint checkpoint = begun;
    // An end that was not noted, also that of no events, would be another one for the next owner. What a handler does
    // cannot be undone: so that others who split it otherwise do not begin, it is noted before. Whoever was here first
    // has begun: another end would leave out what it has not handed over.
    const auto body = [&](Transaction& tx) {
        std::optional<Checkpoint> found = checkpoint_of(tx, consumer_);
        if (planted(PlantedFault::a_subscription_begins_at_the_end_with_each_owner)) found.reset();
        checkpoint = found.value_or(begun);
        if (!found) tx.rows<Checkpoint>().put(consumer_.name, checkpoint);
    };
    const bool is_noted = !consumer_.ephemeral && (first > 0 || at_the_end || !consumer_.project);
    if (is_noted) own_transaction(application_, body).value();
    be_at(std::move(checkpoint));
}

void Follower::take(feed::Batch& batch) {
    const bool is_noted = planted(PlantedFault::a_subscription_is_noted_before_it_is_handed_over);
    if (is_noted) {
        feed::Batch noted = batch;
        commit(noted);
    }
    if (consumer_.handle && !batch.events.empty() && !hand_over(batch.events)) return;
    if (!is_noted) commit(batch);
    reached(seen_, State::catching_up);
}

bool Follower::hand_over(std::span<const RecordedEvent> events) {
    return run_handler([&] { consumer_.handle(events); });
}

bool Follower::run_handler(const std::function<void()>& work) {
    struct Handling {
        std::atomic<std::thread::id>& by;
        explicit Handling(std::atomic<std::thread::id>& by_whom) : by(by_whom) { by = std::this_thread::get_id(); }
        ~Handling() { by = std::thread::id{}; }
    };
    const MutexLock lock{handling_};
    if (has_ended_) return false;
    const Handling handling{handles_};
    work();
    return true;
}

bool Follower::commit(feed::Batch& batch, const std::vector<Aside>& aside) {
    Advance advance = detail::advance(application_, consumer_, checkpoint_, batch, aside, likely_);
    if (!advance.is_own) {
        be_at(std::move(advance.checkpoint));
        if (planted(PlantedFault::who_finds_the_checkpoint_elsewhere_goes_on_from_its_own_batch)) seen_ = batch.end;
        return false;
    }
    checkpoint_ = std::move(advance.checkpoint);
    seen_ = static_cast<store::Position>(checkpoint_.position);
    for (const Aside& one : aside) {
        parked_.insert(one.stream);
        delivering_.retries.insert_or_assign(one.stream, retry_of(one.row, 1, Duration::zero()));
    }
    if (!aside.empty()) look_anew();
    std::erase_if(batch.events, [&](const RecordedEvent& event) { return event.position <= seen_; });
    rest_ = {.events = std::move(batch.events), .end = batch.end, .is_last = batch.is_last};
    const bool is_first = rows_.empty();
    const std::vector<store::Key> before = std::exchange(rows_, std::move(advance.rows));
    if (timers_) timers_->look_for(rows_);
    likely_.clear();
    std::ranges::set_intersection(is_first ? rows_ : before, rows_, std::back_inserter(likely_));
    return true;
}

void Follower::be_at(Checkpoint checkpoint) {
    Streams parked;
    std::map<std::string, Retry> retries;
    for (const auto& [stream, row] : read_parked(checkpoint)) {
        parked.insert(stream);
        if (!consumer_.deliverer) continue;
        const auto known = delivering_.retries.find(stream);
        const bool is_known = known != delivering_.retries.end();
        retries.emplace(stream, is_known ? known->second : retry_of(row, 1, Duration::zero()));
    }
    delivering_.retries = std::move(retries);
    look_anew();
    parked_ = std::move(parked);
    checkpoint_ = std::move(checkpoint);
    seen_ = static_cast<store::Position>(checkpoint_.position);
    rest_ = {};
}

void Follower::be_at_after_retry(const std::string& stream, Checkpoint checkpoint) {
    const bool is_all = checkpoint.position == checkpoint_.position && checkpoint.retries == checkpoint_.retries + 1 &&
                        checkpoint.parked == checkpoint_.parked - 1;
    if (!is_all) {
        be_at(std::move(checkpoint));
        return;
    }
    parked_.erase(stream);
    delivering_.retries.erase(stream);
    look_anew();
    rest_ = {};  // without what this stream has there
    checkpoint_ = std::move(checkpoint);
}

std::map<std::string, ParkedRow> Follower::read_parked(const Checkpoint& checkpoint) const {
    std::map<std::string, ParkedRow> streams;
    if (checkpoint.parked == 0) return streams;
    for (RowOf<ParkedRow>& row : application_.rows<ParkedRow>().range({.partition = consumer_.name}))
        streams.emplace(std::move(row.key.sort), std::move(row.value));
    return streams;
}

bool Follower::park(const feed::Batch& batch, const std::string& error) {
    if (parked_.size() >= consumer_.options.parked_max) return false;
    const RecordedEvent& event = batch.events.front();
    Checkpoint after;
    bool is_where_it_was = false;
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<Checkpoint> checkpoints = tx.rows<Checkpoint>();
        after = checkpoint_of(tx, consumer_).value_or(Checkpoint{});
        is_where_it_was = after.is_as(checkpoint_);
        if (!is_where_it_was) return;
        tx.rows<ParkedRow>().put({consumer_.name, event.stream},
                                 {.position = static_cast<std::int64_t>(event.position) - 1,
                                  .version = event.version,
                                  .type = event.event.type,
                                  .error = error,
                                  .since = tx.now(),
                                  .id = event.id});
        after.position = static_cast<std::int64_t>(batch.end);
        ++after.parked;
        after.error.clear();
        checkpoints.put(consumer_.name, after);
    };
    own_transaction(application_, body).value();
    be_at(std::move(after));
    if (!is_where_it_was) return true;
    reached(seen_, State::catching_up);
    try_to_log(application_.runtime().log, LogLevel::error, [&] {
        return "the follower '" + consumer_.name + "' has set a stream aside at " + described(event) + ": " +
               without_full_stop(error) + ". It goes on with the others; call retry_parked when it is mended";
    });
    return true;
}

void Follower::failed(const feed::Batch& batch) {
    const std::exception_ptr failure = std::current_exception();
    if (planted(PlantedFault::a_batch_that_failed_is_taken_for_done)) seen_ = batch.end;
    if (may_pass(failure)) std::rethrow_exception(failure);
    if (batch.events.empty()) {
        give_up("where it cannot note what it has seen: " + storable_cause());
        return;
    }
    const RecordedEvent& first = batch.events.front();
    if (first.position != batch.events.back().position || first.position < batch.end) {
        one_by_one_until_ = std::min(batch.end, seen_ + one_by_one_max);  // which of them it is
        return;
    }
    if (planted(PlantedFault::poison_is_skipped)) {
        seen_ = batch.end;
        return;
    }
    std::string error = storable_cause();
    if (consumer_.options.on_poison == FollowOptions::OnPoison::park) {
        if (park(batch, error)) return;
        error += "; " + std::to_string(parked_.size()) + " streams are set aside already, and " +
                 consumer_.options_name() + "::parked_max allows no more";
    }
    give_up("at " + described(first) + ": " + error);
}

void Follower::note(const std::string& error) {
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<Checkpoint> checkpoints = tx.rows<Checkpoint>();
        std::optional<Checkpoint> checkpoint = checkpoint_of(tx, consumer_);
        if (!checkpoint && lock_) checkpoint.emplace();  // else it would not begin at the end any more
        if (!checkpoint || checkpoint->position != checkpoint_.position) return;
        checkpoint->error = error;
        checkpoints.put(consumer_.name, *checkpoint);
    };
    try {
        own_transaction(application_, body).value();
    } catch (const std::exception& unsaved) {
        try_to_log(application_.runtime().log, LogLevel::warning, [&] {
            return "why the follower '" + consumer_.name + "' has stopped could not be saved: " + unsaved.what();
        });
    }
}

void Follower::give_up(const std::string& why) {
    const std::string error =
        "the follower '" + consumer_.name + "' has stopped " + without_full_stop(why) +
        ". What it has done so far stays; it goes on from there when it is mended and begins again";
    try_to_log(application_.runtime().log, LogLevel::error, [&] { return error; });
    if (!consumer_.ephemeral) note(error);
    {
        const MutexLock lock{mutex_};
        error_ = error;
    }
    set(State::stopped);
    lock_.reset();
}

void Follower::reached(store::Position position, State state) {
    const SteadyTime now = application_.runtime().clock.get().steady_now();
    {
        const MutexLock lock{mutex_};
        reached_ = position;
        rate_.add(static_cast<std::size_t>(std::max<std::int64_t>(checkpoint_.events - events_, 0)), now);
        events_ = checkpoint_.events;
        last_ = checkpoint_.last;
        parked_count_ = checkpoint_.parked;
        error_.clear();
    }
    set(state);
}

void Follower::set(State state) {
    std::vector<std::stop_source> waiting;
    {
        const MutexLock lock{mutex_};
        state_ = state;
        waiting.swap(waiting_);
    }
    for (std::stop_source& one : waiting) one.request_stop();
}

std::optional<Checkpoint> Follower::stored() const {
    if (consumer_.ephemeral) return std::nullopt;
    return application_.rows<Checkpoint>().get(consumer_.name);
}

FollowerStatus Follower::status() const {
    Clock& clock = application_.runtime().clock;
    FollowerStatus status{.name = consumer_.name};
    std::optional<Time> last;
    {
        const MutexLock lock{mutex_};
        status.state = state_;
        status.position = reached_;
        status.events = events_;
        status.parked = parked_count_;
        last = last_;
        if (state_ == State::catching_up || state_ == State::live)
            status.events_per_second = rate_.per_second(clock.steady_now());
        status.error = error_;
    }
    if (status.parked > 0) status.parked = stored().value_or(Checkpoint{}).parked;  // it may have been taken up again
    if (status.state == State::elsewhere) {
        const Checkpoint elsewhere = stored().value_or(Checkpoint{});
        status.parked = elsewhere.parked;
        status.position = static_cast<store::Position>(elsewhere.position);
        status.events = elsewhere.events;
        status.error = elsewhere.error;
        last = elsewhere.last;
    }
    status.end = feed_.end();
    // What comes after it may be nothing that it cares about, such as slots of its own transactions.
    if (!consumer_.hears) status.position = status.end;
    const bool is_near = status.position + consumer_.options.batch_max >= status.end;
    if ((is_near || status.state == State::elsewhere) && has_nothing_left(status.position, status.end)) {
        status.lag = Duration::zero();
    } else if (last) {
        status.lag = std::max(clock.now() - *last, Duration::zero());
    }
    if (!consumer_.ephemeral) status.owner = application_.locks().inspect(lock_name()).holder.owner;
    return status;
}

bool Follower::has_nothing_left(store::Position after, store::Position end) const try {
    constexpr std::size_t slots_at_a_time = 100;
    // What an owner has no use for, it saves now and then only.
    for (store::Position at = after; at < end;) {
        const feed::Batch batch = feed_.read(at, slots_at_a_time, consumer_.filter);
        if (!batch.events.empty()) return batch.events.front().position > end;
        if (batch.is_last) return true;
        at = batch.end;
    }
    return true;
} catch (const CorruptionError&) {
    return false;  // who keeps it will stop there, and say so
}

bool Follower::wait(store::Position end, SteadyTime until) const {
    constexpr Duration look_again_after = std::chrono::milliseconds{20};
    check_is_outside("cannot be waited for");
    Clock& clock = application_.runtime().clock;
    for (std::stop_source moved{std::nostopstate};;) {
        bool is_here = true;
        {
            const MutexLock lock{mutex_};
            if (state_ == State::stopped) return reached_ >= end;
            is_here = state_ != State::elsewhere;
            if (is_here && reached_ >= end) return true;
            if (is_here && (!moved.stop_possible() || moved.stop_requested())) {
                moved = std::stop_source{};
                waiting_.push_back(moved);
            }
        }
        if (!is_here) {
            const auto position = static_cast<store::Position>(stored().value_or(Checkpoint{}).position);
            if (has_nothing_left(position, end)) return true;
        }
        const Duration left = until - clock.steady_now();
        if (left <= Duration::zero()) {
            const MutexLock lock{mutex_};
            std::erase(waiting_, moved);
            return false;
        }
        clock.sleep_for(is_here ? left : std::min(left, look_again_after), moved.get_token());
    }
}

bool Follower::has_parked(const Receipt& receipt) const {
    bool has_any = false;
    {
        const MutexLock lock{mutex_};
        has_any = state_ == State::elsewhere || parked_count_ > 0;
    }
    if (!has_any) return false;
    const std::map<std::string, ParkedRow> parked = read_parked(stored().value_or(Checkpoint{}));
    if (receipt.transaction.empty()) return !parked.empty();
    return std::ranges::any_of(slots_of(receipt), [&](const auto& one) { return parked.contains(one.stream); });
}

std::vector<ParkedStream> Follower::parked() const {
    std::vector<ParkedStream> streams;
    for (RowOf<ParkedRow>& row : application_.rows<ParkedRow>().range({.partition = consumer_.name})) {
        streams.push_back({.stream = std::move(row.key.sort),
                           .version = row.value.version,
                           .type = std::move(row.value.type),
                           .error = std::move(row.value.error),
                           .since = row.value.since,
                           .id = std::move(row.value.id),
                           .attempts = row.value.attempts,
                           .given_up = row.value.given_up});
    }
    return streams;
}

std::size_t Follower::retry_parked() {
    const auto hand_over = [this](std::span<const RecordedEvent> events) { return this->hand_over(events); };
    std::size_t live = 0;
    for (const ParkedStream& one : parked()) {
        const bool is_live = consumer_.deliverer
                                 ? retry_aside_now(one.stream)
                                 : ParkedRetry{application_, consumer_, hand_over, one.stream}.run([] { return true; });
        if (is_live) ++live;
    }
    return live;
}

void Follower::check_is_outside(const char* what) const {
    if (!runs_this_thread()) return;
    throw InvalidError("the follower '" + consumer_.name + "' " + what +
                       " from its own handler; do it from another thread");
}

}  // namespace varve::detail
