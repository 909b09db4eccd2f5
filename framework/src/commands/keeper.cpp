#include "commands/keeper.h"

#include "commands/application_parts.h"
#include "commands/build_swap.h"
#include "commands/pace.h"
#include "commands/rows_in_memory.h"
#include "commands/workspace.h"
#include "core/planted_faults.h"
#include "transactions/slot.h"

#include <varve/commands/application.h>
#include <varve/core/error.h>

#include <algorithm>
#include <new>
#include <utility>

namespace varve::detail {

namespace {

constexpr Duration look_again_after = std::chrono::seconds{1};
constexpr std::int64_t not_known = 0;  // so that no follower runs
constexpr Duration look_for_the_end_after = std::chrono::milliseconds{200};
constexpr Duration pause_of_emptying = std::chrono::milliseconds{20};

Consumer checked(Consumer consumer) {
    consumer.check();
    if (is_name_of_build(consumer.name)) {
        throw ConfigError("the follower '" + consumer.name +
                          "' cannot begin: names that end in '@' and a number are those of rebuilds");
    }
    return consumer;
}

}  // namespace

Keeper::Keeper(Application& application, std::atomic<int>& idle, Consumer consumer)
    : application_(application),
      idle_(idle),
      consumer_(checked(std::move(consumer))),
      is_projection_(static_cast<bool>(consumer_.project)) {
    if (!is_projection_) {
        arrange({});
        return;
    }
    try {
        Builds builds = parts_of(application_).builds(consumer_.name);
        if (consumer_.version < builds.live.version) {
            throw ConfigError("the follower '" + consumer_.name +
                              "' cannot begin: " + refused_version(consumer_.name, consumer_.version, builds));
        }
        if (wants_build(builds)) {
            begin(false);
            builds = parts_of(application_).builds(consumer_.name);
        }
        arrange(builds);
    } catch (...) {
        if (!may_pass(std::current_exception())) throw;
        arrange({.live = {.number = 1, .version = not_known}});  // the first turn that the store answers says which
    }
}

void Keeper::start() {
    const MutexLock lock{mutex_};
    for (const Kept* one : {&live_, &next_}) {
        if (one->follower && one->build.version == consumer_.version) one->follower->start();
    }
    if (!is_projection_) return;
    loop_ = BackgroundLoop{
        application_.runtime(),
        {.thread = "varve-keep", .work = "the follower '" + consumer_.name + "'", .retry_after = look_again_after},
        [this](const std::stop_token&) { return turn(); }};
}

void Keeper::end() {
    BackgroundLoop loop;
    {
        const MutexLock lock{mutex_};
        std::swap(loop, loop_);
    }
    loop = {};  // from here on the followers are those that there are
    Kept live;
    Kept next;
    {
        const MutexLock lock{mutex_};
        live = live_;
        next = next_;
    }
    if (live.follower) live.follower->end();
    if (next.follower) next.follower->end();
    emptying_lock_.reset();
}

Duration Keeper::turn() {
    Builds builds = parts_of(application_).builds(consumer_.name);
    if (wants_build(builds)) {
        try {
            begin(false);
        } catch (const ConfigError& error) {
            stopped(error.what());
        }
        builds = parts_of(application_).builds(consumer_.name);
    }
    arrange(builds);
    return empty_some(builds) ? pause_of_emptying : look_again_after;
}

bool Keeper::wants_build(const Builds& builds) const {
    return consumer_.version > builds.live.version && (!builds.next || builds.next->version < consumer_.version);
}

void Keeper::arrange(const Builds& builds) {
    paused_ = builds.paused;
    next_number_ = builds.next ? builds.next->number : 0;
    Kept live;
    Kept next;
    {
        const MutexLock lock{mutex_};
        live = live_;
        next = next_;
    }
    std::vector<std::shared_ptr<Follower>> over;
    if (!live.is(builds.live)) {
        over.push_back(live.follower);
        live = next.is(builds.live) ? std::exchange(next, {}) : kept(builds.live);
    }
    if (!builds.next || !next.is(*builds.next)) {
        over.push_back(next.follower);
        next = builds.next ? kept(*builds.next) : Kept{};
    }
    {
        const MutexLock lock{mutex_};
        live_ = live;
        next_ = next;
    }
    for (const std::shared_ptr<Follower>& one : over) {
        if (one) one->end();
    }
    if (consumer_.version < builds.live.version)
        stopped("the follower '" + consumer_.name +
                "' has stopped: " + refused_version(consumer_.name, consumer_.version, builds));
}

void Keeper::stopped(const std::string& why) {
    {
        const MutexLock lock{mutex_};
        if (std::exchange(error_, why) == why) return;
    }
    try_to_log(application_.runtime().log, LogLevel::error, [&] { return why; });
}

Keeper::Kept Keeper::kept(const Build& build) {
    Kept kept{.build = build, .follower = std::make_shared<Follower>(application_, idle_, consumer_of(build))};
    bool runs = false;
    {
        const MutexLock lock{mutex_};
        runs = loop_.is_running();
    }
    if (runs && build.version == consumer_.version) kept.follower->start();
    return kept;
}

Consumer Keeper::live_consumer() {
    if (!is_projection_) {
        throw InvalidError("'" + consumer_.name + "' is a subscription: what it has done lies outside of the store");
    }
    const Build live = parts_of(application_).builds(consumer_.name).live;
    if (live.version != consumer_.version) {
        throw ConfigError("the rows of '" + consumer_.name + "' are those of version " + std::to_string(live.version) +
                          ", and this program has version " + std::to_string(consumer_.version) +
                          "; ask a program of that version");
    }
    return consumer_of(live);
}

Consumer Keeper::consumer_of(const Build& build) {
    Consumer consumer = consumer_;
    if (!is_projection_) return consumer;
    consumer.name = build_name(consumer_.name, build.number);
    consumer.build = BuildOf{.follower = consumer_.name, .number = build.number, .version = consumer_.version};
    if (next_number_ != build.number) return consumer;

    const std::size_t rate = consumer.options.rebuild_events_per_second_max;
    if (rate > 0) consumer.options.batch_max = std::min(consumer.options.batch_max, rate);
    const auto shared = std::make_shared<const Consumer>(consumer);
    struct Seen {
        Pace pace;
        std::optional<store::Position> from = {};
        std::optional<std::int64_t> events_before = {};
        SteadyTime looks_at = {};  // whether it may be live
    };
    const auto seen = std::make_shared<Seen>(Seen{.pace = Pace{rate}});
    consumer.pace = [this, seen, shared, number = build.number](store::Position at, std::int64_t events) {
        if (next_number_ != number) return Duration::zero();  // it is live
        if (paused_) return look_again_after;
        const SteadyTime now = application_.runtime().clock.get().steady_now();
        if (now >= seen->looks_at) {
            seen->looks_at = now + look_for_the_end_after;
            if (is_near(at, *shared) && swap(*shared)) return Duration::zero();
        }
        if (!seen->from) seen->from = at;
        if (!seen->events_before) seen->events_before = events;
        const auto slots = at > *seen->from ? at - *seen->from : 0;
        const auto taken = static_cast<std::uint64_t>(std::max<std::int64_t>(events - *seen->events_before, 0));
        return seen->pace.wait(std::max<std::uint64_t>(slots, taken), now);
    };
    return consumer;
}

bool Keeper::is_near(store::Position at, const Consumer& next) const {
    const std::shared_ptr<Follower> live = follower(consumer_.name);
    const Checkpoint reached = application_.rows<Checkpoint>().get(live->name()).value_or(Checkpoint{});
    return static_cast<store::Position>(reached.position) <= at + next.options.batch_max ||
           planted(PlantedFault::a_build_becomes_live_that_is_behind);
}

bool Keeper::swap(const Consumer& next) {
    try {
        if (!try_to_swap(application_, next)) return false;
    } catch (...) {
        if (may_pass(std::current_exception())) throw;
        return false;  // at an event that the follower will meet, too
    }
    next_number_ = 0;
    wake_loop();
    return true;
}

void Keeper::check_that_it_keeps() const {
    constexpr std::size_t bytes_max = std::size_t{16} << 20;
    const feed::Batch some = feed::Feed{application_.store()}.read(0, consumer_.options.batch_max, consumer_.filter);
    const auto body = [&](Transaction& tx) {
        RowsInMemory memory{bytes_max};
        {
            const Workspace::OnOtherRows elsewhere{Workspace::of(tx), memory};
            try {
                for (const RecordedEvent& event : some.events) consumer_.project(tx, event);
            } catch (const std::bad_alloc&) {
                throw;
            } catch (const std::exception&) {  // the follower will say so where it meets it
            }
        }
        for (const auto& [name, table] : memory.tables()) {
            if (table.is_written && table.type->kept_by != consumer_.name)
                throw_not_kept(*table.type, {.follower = consumer_.name, .number = 1, .version = consumer_.version});
        }
    };
    application_.transact(body).value();
}

void Keeper::begin(bool anew) {
    const auto has_begun = [&] { return application_.rows<Checkpoint>().get(consumer_.name).has_value(); };
    if (anew || has_begun()) check_that_it_keeps();
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<Builds> rows = tx.rows<Builds>();
        const std::optional<Builds> found = rows.get(consumer_.name);
        Builds builds = found.value_or(Builds{});
        if (consumer_.version < builds.live.version) {
            throw ConfigError("the follower '" + consumer_.name +
                              "' cannot be rebuilt: " + refused_version(consumer_.name, consumer_.version, builds));
        }
        if (builds.next && builds.next->version >= consumer_.version) return;
        if (!anew && builds.live.version == consumer_.version) return;
        if (!anew && !found && !tx.rows<Checkpoint>().get(consumer_.name)) {
            builds.live.version = consumer_.version;  // nothing is there to be rebuilt
        } else {
            builds.begin(consumer_.version, tx.now());
        }
        rows.put(consumer_.name, builds);
    };
    application_.transact(body).value();
}

void Keeper::rebuild() {
    if (!is_projection_) {
        throw InvalidError("'" + consumer_.name +
                           "' is a subscription: what it has done lies outside of the store, and is not made anew");
    }
    begin(true);
    wake_loop();
}

void Keeper::set_paused(bool paused) {
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<Builds> rows = tx.rows<Builds>();
        Builds builds = rows.get(consumer_.name).value_or(Builds{});
        if (!builds.next)
            throw InvalidError("'" + consumer_.name + "' is not being rebuilt, so there is nothing to pause or resume");
        builds.paused = paused;
        rows.put(consumer_.name, builds);
    };
    application_.transact(body).value();
    wake_loop();
}

bool Keeper::empty_some(const Builds& builds) {
    const Time now = application_.runtime().clock.get().now();
    const auto due = std::ranges::find_if(builds.replaced,
                                          [&](const ReplacedBuild& one) { return one.emptying || one.until <= now; });
    if (due == builds.replaced.end()) {
        emptying_.reset();
        emptying_lock_.reset();
        return false;
    }
    if (!emptying_lock_ || emptying_lock_->is_lost()) {
        emptying_.reset();
        emptying_lock_ =
            application_.locks().try_acquire("$follower-" + consumer_.name + ".replaced", {.wait = Duration{0}});
        if (!emptying_lock_) return false;
    }
    if (!emptying_ || emptying_->number() != due->build.number)
        emptying_.emplace(parts_of(application_), consumer_.name, due->build);
    if (!emptying_->step()) emptying_.reset();
    return true;
}

void Keeper::wake_loop() {
    const MutexLock lock{mutex_};
    loop_.wake();
}

void Keeper::wake() noexcept {
    const MutexLock lock{mutex_};
    if (live_.follower) live_.follower->wake();
    if (next_.follower) next_.follower->wake();
}

bool Keeper::runs_this_thread() const {
    const MutexLock lock{mutex_};
    return (live_.follower && live_.follower->runs_this_thread()) ||
           (next_.follower && next_.follower->runs_this_thread());
}

std::shared_ptr<Follower> Keeper::follower(std::string_view name) const {
    const MutexLock lock{mutex_};
    if (name == consumer_.name || name == live_.follower->name()) return live_.follower;
    return next_.follower && name == next_.follower->name() ? next_.follower : nullptr;
}

bool Keeper::wait(const Receipt& receipt, SteadyTime until) const {
    constexpr Duration look_after = std::chrono::milliseconds{100};
    Clock& clock = application_.runtime().clock;
    follower(consumer_.name)->check_is_outside("cannot be waited for");
    const feed::Feed feed{application_.store()};
    std::vector<store::Key> slots;
    for (const Receipt::Written& written : receipt.written)
        slots.push_back(transactions::slot_key(written.stream, written.version));
    if (!feed.wait_for(slots, clock, until)) return false;
    const store::Position end = feed.end();
    for (;;) {
        const std::shared_ptr<Follower> live = follower(consumer_.name);
        const SteadyTime soon = std::min(until, clock.steady_now() + look_after);
        if (live->wait(end, soon)) return true;
        const SteadyTime now = clock.steady_now();
        const bool is_stopped = now < soon;
        if (now >= until || (is_stopped && live == follower(consumer_.name))) return false;
    }
}

void Keeper::add_statuses(std::vector<FollowerStatus>& to) const {
    Kept live;
    Kept next;
    std::string error;
    {
        const MutexLock lock{mutex_};
        live = live_;
        next = next_;
        error = error_;
    }
    const auto status_of = [&](const Kept& one) {
        FollowerStatus status = one.follower->status();
        status.name = consumer_.name;
        status.version = one.build.version;
        status.build = one.build.number;
        return status;
    };
    FollowerStatus& of_live = to.emplace_back(status_of(live));
    if (!error.empty()) {
        of_live.state = FollowerStatus::State::stopped;
        of_live.error = error;
    }
    if (!next.follower) return;
    FollowerStatus& of_next = to.emplace_back(status_of(next));
    if (of_next.state != FollowerStatus::State::stopped) of_next.state = FollowerStatus::State::building;
    of_next.paused = paused_;
    if (of_next.position == 0 || !of_next.events_per_second || *of_next.events_per_second <= 0) return;
    const double events_in_each = static_cast<double>(of_next.events) / static_cast<double>(of_next.position);
    const double left = static_cast<double>(of_next.end - std::min(of_next.end, of_next.position)) * events_in_each;
    of_next.time_left =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>{left / *of_next.events_per_second});
}

}  // namespace varve::detail
