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

Consumer checked_whole(Consumer consumer) {
    consumer.check();
    if (is_name_of_build(consumer.name)) {
        throw ConfigError("the follower '" + consumer.name +
                          "' cannot begin: names that end in '@' and a number are those of rebuilds");
    }
    if (is_name_of_partition(consumer.name)) {
        throw ConfigError("the follower '" + consumer.name +
                          "' cannot begin: names that end in '#' and a number are those of partitions");
    }
    return consumer;
}

std::string why_it_has_no_rows(const Consumer& consumer) {
    return "'" + consumer.name +
           (consumer.hands_over() ? "' is a subscription: what it has done lies outside of the store"
                                  : "' is a process: what it has done is in other aggregates' events");
}

}  // namespace

Keeper::Keeper(Application& application, std::atomic<int>& idle, Consumer consumer)
    : application_(application),
      idle_(idle),
      consumer_(checked_whole(std::move(consumer))),
      is_projection_(static_cast<bool>(consumer_.project)) {
    if (consumer_.ephemeral) {
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
        has_looked_ = true;
        arrange(builds);
    } catch (...) {
        if (!may_pass(std::current_exception())) throw;
        arrange({.live = {.number = 1, .version = not_known}});  // the first turn that the store answers says which
    }
}

void Keeper::start() {
    const MutexLock lock{mutex_};
    for (const Kept* one : {&live_, &next_}) {
        if (one->build.version != consumer_.version) continue;
        for (const std::shared_ptr<Follower>& follower : one->followers) follower->start();
    }
    const bool has_no_builds = !is_projection_ && consumer_.options.partitions == 1;
    if (consumer_.ephemeral || (has_no_builds && has_looked_)) return;
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
    stop_soon();
    for (const Kept* one : {&live, &next}) {
        for (const std::shared_ptr<Follower>& follower : one->followers) follower->end();
    }
    emptying_lock_.reset();
}

void Keeper::stop_soon() noexcept {
    const MutexLock lock{mutex_};
    for (const Kept* one : {&live_, &next_}) {
        for (const std::shared_ptr<Follower>& follower : one->followers) follower->stop_soon();
    }
}

Duration Keeper::turn() {
    Builds builds = parts_of(application_).builds(consumer_.name);
    if (wants_build(builds)) {
        try {
            begin(false);
        } catch (const ConfigError& error) {
            stopped(error.what());
            if (!has_looked_ && consumer_.version == builds.live.version) return look_again_after;
        }
        builds = parts_of(application_).builds(consumer_.name);
    }
    has_looked_ = true;
    arrange(builds);
    share();
    return empty_some(builds) ? pause_of_emptying : look_again_after;
}

void Keeper::share() {
    Kept live;
    Kept next;
    {
        const MutexLock lock{mutex_};
        live = live_;
        next = next_;
    }
    if (live.build.version == consumer_.version) sharing_of_live_.step(live.followers);
    if (next.build.version == consumer_.version) sharing_of_next_.step(next.followers);
}

bool Keeper::wants_build(const Builds& builds) const {
    const std::int64_t next_version = builds.next ? builds.next->version : 0;
    if (consumer_.version > builds.live.version) return next_version < consumer_.version;
    // Another number than that of others is a wish when it begins; else two programs would go back and forth for ever.
    if (has_looked_ || consumer_.version < builds.live.version || next_version > consumer_.version) return false;
    const auto wanted = static_cast<std::int64_t>(consumer_.options.partitions);
    const bool is_next = next_version == consumer_.version && builds.next->partitions == wanted;
    return builds.live.partitions != wanted && !is_next;
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
        over = live.followers;
        live = next.is(builds.live) ? std::exchange(next, {}) : kept(builds.live);
    }
    if (!builds.next || !next.is(*builds.next)) {
        over.insert(over.end(), next.followers.begin(), next.followers.end());
        next = builds.next ? kept(*builds.next) : Kept{};
    }
    {
        const MutexLock lock{mutex_};
        live_ = live;
        next_ = next;
    }
    for (const std::shared_ptr<Follower>& one : over) one->end();
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
    Kept kept{.build = build, .followers = {}};
    for (Consumer& one : consumers_of(build))
        kept.followers.push_back(std::make_shared<Follower>(application_, idle_, std::move(one)));
    bool runs = false;
    {
        const MutexLock lock{mutex_};
        runs = loop_.is_running();
    }
    if (runs && build.version == consumer_.version) {
        for (const std::shared_ptr<Follower>& one : kept.followers) one->start();
    }
    return kept;
}

Consumer Keeper::live_consumer() {
    if (!is_projection_) {
        throw InvalidError(why_it_has_no_rows(consumer_));
    }
    const Build live = parts_of(application_).builds(consumer_.name).live;
    if (live.version != consumer_.version) {
        throw ConfigError("the rows of '" + consumer_.name + "' are those of version " + std::to_string(live.version) +
                          ", and this program has version " + std::to_string(consumer_.version) +
                          "; ask a program of that version");
    }
    return consumer_of(live);
}

Consumer Keeper::consumer_of(const Build& build) const {
    Consumer consumer = consumer_;
    if (consumer_.ephemeral) return consumer;
    consumer.name = build_name(consumer_.name, build.number);
    consumer.build = BuildOf{.follower = consumer_.name,
                             .number = build.number,
                             .version = consumer_.version,
                             .partitions = build.partitions};
    return consumer;
}

std::vector<Consumer> Keeper::consumers_of(const Build& build) {
    Consumer whole = consumer_of(build);
    if (next_number_ != build.number) return partitions_of(whole);
    const std::size_t rate = whole.options.rebuild_events_per_second_max;
    if (rate > 0) whole.options.batch_max = std::min(whole.options.batch_max, rate);
    const auto shared = std::make_shared<const std::vector<Consumer>>(partitions_of(whole));
    std::vector<Consumer> consumers = *shared;
    for (Consumer& one : consumers) one.pace = pace_of(one, shared);
    return consumers;
}

std::function<Duration(store::Position, std::int64_t)> Keeper::pace_of(
    const Consumer& one, const std::shared_ptr<const std::vector<Consumer>>& all) {
    struct Seen {
        Pace pace;
        std::optional<store::Position> from = {};
        std::optional<std::int64_t> events_before = {};
        SteadyTime looks_at = {};  // whether it may be live
    };
    // Each one has its share of the events, and passes all slots.
    const std::size_t partitions = all->size();
    const std::size_t rate = one.options.rebuild_events_per_second_max;
    const std::size_t rate_of_one = rate == 0 ? 0 : std::max<std::size_t>(rate / partitions, 1);
    const auto seen = std::make_shared<Seen>(Seen{.pace = Pace{rate_of_one}});
    const bool is_first = one.name == all->front().name;
    return [this, seen, all, is_first, number = one.build->number](store::Position at, std::int64_t events) {
        if (next_number_ != number) return Duration::zero();  // it is live
        if (paused_) return look_again_after;
        const SteadyTime now = application_.runtime().clock.get().steady_now();
        if (is_first && now >= seen->looks_at) {
            seen->looks_at = now + look_for_the_end_after;
            if (is_near(at, *all) && swap(*all)) return Duration::zero();
        }
        if (!seen->from) seen->from = at;
        if (!seen->events_before) seen->events_before = events;
        const auto slots = at > *seen->from ? at - *seen->from : 0;
        const auto taken = static_cast<std::uint64_t>(std::max<std::int64_t>(events - *seen->events_before, 0));
        return seen->pace.wait(std::max<std::uint64_t>(slots / all->size(), taken), now);
    };
}

bool Keeper::is_near(store::Position at, const std::vector<Consumer>& next) const {
    const auto place = [&](const std::string& name) {
        const Checkpoint reached = application_.rows<Checkpoint>().get(name).value_or(Checkpoint{});
        return static_cast<store::Position>(reached.position);
    };
    store::Position goal = 0;
    for (const std::shared_ptr<Follower>& live : followers(consumer_.name)) goal = std::max(goal, place(live->name()));
    if (planted(PlantedFault::a_build_becomes_live_that_is_behind)) return true;
    const auto is_near = [&](store::Position position) { return goal <= position + next.front().options.batch_max; };
    return is_near(at) &&
           std::all_of(next.begin() + 1, next.end(), [&](const Consumer& one) { return is_near(place(one.name)); });
}

bool Keeper::swap(const std::vector<Consumer>& next) {
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
    const feed::Batch some =
        feed::Feed{parts_of(application_).coordinator.store()}.read(0, consumer_.options.batch_max, consumer_.filter);
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
    own_transaction(application_, body).value();
}

void Keeper::begin(bool anew) {
    const auto has_begun = [&] {
        return application_.rows<Builds>().get(consumer_.name) || application_.rows<Checkpoint>().get(consumer_.name);
    };
    if (is_projection_ && (anew || has_begun())) {
        try {
            check_that_it_keeps();
        } catch (const ConfigError& error) {
            const Build live = parts_of(application_).builds(consumer_.name).live;
            if (anew || live.version != consumer_.version) throw;
            throw ConfigError("the follower '" + consumer_.name +
                              "' was begun with partitions = " + std::to_string(live.partitions) +
                              ", and this program says " + std::to_string(consumer_.options.partitions) +
                              ", which makes its rows anew. " + error.what());
        }
    }
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<Builds> rows = tx.rows<Builds>();
        const std::optional<Builds> found = rows.get(consumer_.name);
        Builds builds = found.value_or(Builds{});
        if (consumer_.version < builds.live.version) {
            throw ConfigError("the follower '" + consumer_.name +
                              "' cannot be rebuilt: " + refused_version(consumer_.name, consumer_.version, builds));
        }
        const bool is_begun = builds.next && builds.next->version >= consumer_.version;
        if (anew ? is_begun : !wants_build(builds)) return;
        const Build wanted{.number = builds.live.number,
                           .version = consumer_.version,
                           .partitions = static_cast<std::int64_t>(consumer_.options.partitions),
                           .tables = {}};
        if (!anew && !found && !tx.rows<Checkpoint>().get(consumer_.name)) {
            builds.live = wanted;  // nothing is there to be rebuilt
        } else if (is_projection_) {
            builds.begin(wanted, tx.now());
        } else {
            throw_split(*consumer_of(wanted).build, builds);
        }
        rows.put(consumer_.name, builds);
    };
    own_transaction(application_, body).value();
}

void Keeper::rebuild() {
    if (!is_projection_) {
        throw InvalidError(why_it_has_no_rows(consumer_) + ", and is not made anew");
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
    own_transaction(application_, body).value();
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
    for (const Kept* one : {&live_, &next_}) {
        for (const std::shared_ptr<Follower>& follower : one->followers) follower->wake();
    }
}

bool Keeper::runs_this_thread() const {
    const MutexLock lock{mutex_};
    const auto runs_it = [](const std::shared_ptr<Follower>& one) { return one->runs_this_thread(); };
    return std::ranges::any_of(live_.followers, runs_it) || std::ranges::any_of(next_.followers, runs_it);
}

std::vector<std::shared_ptr<Follower>> Keeper::followers(std::string_view name) const {
    const MutexLock lock{mutex_};
    if (name == consumer_.name) return live_.followers;
    for (const Kept* one : {&live_, &next_}) {
        if (!one->followers.empty() && name == build_name(consumer_.name, one->build.number)) return one->followers;
        for (const std::shared_ptr<Follower>& follower : one->followers) {
            if (name == follower->name()) return {follower};
        }
    }
    return {};
}

std::vector<std::shared_ptr<Follower>> Keeper::live_followers(const Receipt& receipt) const {
    std::vector<std::shared_ptr<Follower>> live = followers(consumer_.name);
    const std::vector<Receipt::Written> slots = slots_of(receipt);
    if (slots.empty()) return live;
    std::erase_if(live, [&](const std::shared_ptr<Follower>& one) {
        const feed::Partition& partition = one->consumer().filter.partition;
        return std::ranges::none_of(slots,
                                    [&](const Receipt::Written& written) { return partition.has(written.stream); });
    });
    return live;
}

bool Keeper::wait(const Receipt& receipt, SteadyTime until) const {
    constexpr Duration look_after = std::chrono::milliseconds{100};
    Clock& clock = application_.runtime().clock;
    for (const std::shared_ptr<Follower>& one : followers(consumer_.name))
        one->check_is_outside("cannot be waited for");
    const feed::Feed feed{parts_of(application_).coordinator.store()};
    std::vector<store::Key> slots;
    for (const Receipt::Written& written : slots_of(receipt))
        slots.push_back(transactions::slot_key(written.stream, written.version));
    if (!feed.wait_for(slots, clock, until)) return false;
    const store::Position end = feed.end();
    for (;;) {
        const std::vector<std::shared_ptr<Follower>> live = live_followers(receipt);
        const SteadyTime soon = std::min(until, clock.steady_now() + look_after);
        if (std::ranges::all_of(live, [&](const auto& one) { return one->wait(end, soon); })) return true;
        const SteadyTime now = clock.steady_now();
        const bool is_stopped = now < soon;
        if (now >= until || (is_stopped && live == live_followers(receipt))) return false;
    }
}

bool Keeper::has_parked(const Receipt& receipt) const {
    return std::ranges::any_of(live_followers(receipt), [&](const auto& one) { return one->has_parked(receipt); });
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
    const auto status_of = [&](const Kept& kept, const Follower& one) {
        FollowerStatus status = one.status();
        status.name = consumer_.name;
        status.version = kept.build.version;
        status.build = kept.build.number;
        status.partition = one.consumer().filter.partition.number;
        status.partitions = kept.build.partitions;
        return status;
    };
    for (const std::shared_ptr<Follower>& one : live.followers) {
        FollowerStatus& status = to.emplace_back(status_of(live, *one));
        if (error.empty()) continue;
        status.state = FollowerStatus::State::stopped;
        status.error = error;
    }
    for (const std::shared_ptr<Follower>& one : next.followers) {
        FollowerStatus& status = to.emplace_back(status_of(next, *one));
        if (status.state != FollowerStatus::State::stopped) status.state = FollowerStatus::State::building;
        status.paused = paused_;
        if (status.position == 0 || !status.events_per_second || *status.events_per_second <= 0) continue;
        const double events_in_each = static_cast<double>(status.events) / static_cast<double>(status.position);
        const double left = static_cast<double>(status.end - std::min(status.end, status.position)) * events_in_each;
        status.time_left =
            std::chrono::duration_cast<Duration>(std::chrono::duration<double>{left / *status.events_per_second});
    }
}

}  // namespace varve::detail
