#include "protocol/cluster.h"

#include "commands/application_parts.h"
#include "commands/keeper.h"
#include "commands/timers.h"
#include "feed/sequencer.h"
#include "protocol/clerks.h"
#include "protocol/judge.h"
#include "protocol/ledger.h"
#include "protocol/loose_store.h"
#include "support/coordinator_of.h"
#include "testing/simulated_world.h"
#include "transactions/sweeper.h"
#include "transactions/system_table.h"

#include <varve/commands/follower_status.h>
#include <varve/locks/locks.h>
#include <varve/memory/memory.h>
#include <varve/processes/parked_timer.h>
#include <varve/store/item_store.h>

#include <atomic>
#include <iterator>
#include <optional>

namespace varve::protocol {

using namespace std::chrono_literals;
using testing::FaultCounts;
using testing::RequestInfo;

Settings::Settings(std::uint64_t seed_) : seed(seed_) {
    testing::SeededRandom random{seed * 0x9e3779b97f4a7c15ull + 1};
    const auto pick = [&](auto... values) {
        const std::common_type_t<decltype(values)...> all[] = {values...};
        return all[random.below(sizeof...(values))];
    };
    clients = 2 + random.below(7);
    sweepers = 1 + random.below(4);
    scale.keys = pick(2, 3, 5, 8, 40);
    scale.participants = 1 + random.below(8);
    commands = static_cast<unsigned>(10 + random.below(12));
    think_us_max = pick(0, 1'000, 20'000);
    transactions.lease = pick(Duration{20ms}, Duration{200ms}, Duration{1s}, Duration{5s});
    escalation = {.queue_after = static_cast<unsigned>(1 + random.below(4)),
                  .queue_time_max = pick(Duration{0s}, Duration{20ms}, Duration{500ms}),
                  .reserve_after = static_cast<unsigned>(1 + random.below(6))};

    troubles = testing::Troubles::of_seed(seed);
    no_atomic_writes = pick(0.0, 0.3, 1.0);
    if (random.chance(0.15)) item_bytes_max = 2000;
    // Tombstones may go only where no request arrives later than they.
    if (troubles.faults.any_past_request == 0) transactions.retention = 10min;
    scale.bursts = random.chance(0.3);
    scale.lock_time_to_live = pick(Duration{50ms}, Duration{500ms}, Duration{5s});
    no_changes = random.chance(0.5);
    scale.own_rows = random.chance(0.4);
    atomic_writes_max = pick(SIZE_MAX, SIZE_MAX, std::size_t{10}, std::size_t{4});
    sequencers = no_changes ? 1 + random.below(2) : 0;
    const Followed followed[] = {pick(Followed::folds, Followed::sightings),
                                 pick(Followed::folds, Followed::everything, Followed::deposits, Followed::effects)};
    for (std::uint64_t left = 1 + random.below(4); left > 0; --left) followers.push_back(followed[left % 2]);
    rebuild = pick(0.0, 0.1, 0.3);
    if (item_bytes_max < SIZE_MAX) rebuild = 0;  // a row names all builds that are not emptied yet
    clerks = random.chance(0.4) ? 1 + random.below(2) : 0;
    clerk_partitions = pick(std::size_t{1}, std::size_t{1}, std::size_t{3});
    clerks_are_broken = random.chance(0.3);
    places_are_lost = !clerks_are_broken && random.chance(0.5);
    scale.schedules = clerks > 0;
    shards = pick(1u, 1u, 3u, 8u);
    if (no_changes && random.chance(0.4)) shards_later = shards + pick(1u, 2u, 20u);
    is_checked = random.chance(0.1);
}

namespace {

class Cluster final : testing::detail::SimulatedWorld {
  public:
    explicit Cluster(const Settings& settings)
        : SimulatedWorld(settings.seed, settings.troubles, UINT64_MAX),
          settings_(settings),
          ledger_(std::make_shared<Ledger>(memory::open())),
          store_(std::make_shared<LooseStore>(ledger_, scheduler_, settings.seed + 2)) {
        scheduler_.before_switch = [this] { attribute(); };
    }

    Result run() {
        set_up();
        const Time began = scheduler_.now();
        clients_left_ = settings_.clients;
        begin_troubles();
        Clerk::is_broken = settings_.clerks_are_broken;
        for (std::uint64_t i = 0; i < settings_.clients; ++i) scheduler_.spawn([this, i] { client(i); });
        for (std::uint64_t i = 0; i < settings_.sweepers; ++i) {
            scheduler_.spawn([this] { processes("a sweeper", [this](Process& process) { sweep(process); }); });
        }
        for (std::uint64_t i = 0; i < settings_.sequencers; ++i) {
            scheduler_.spawn(
                [this] { processes("a sequencer", [this](Process& process) { put_in_order_beside(process); }); });
        }
        for (const Followed followed : settings_.followers) {
            scheduler_.spawn([this, followed] {
                processes("a follower", [this, followed](Process& process) { follow(process, followed); });
            });
        }
        for (std::uint64_t i = 0; i < settings_.clerks; ++i) {
            scheduler_.spawn([this] { processes("a clerk", [this](Process& process) { keep_books(process); }); });
        }
        if (settings_.is_checked) {
            scheduler_.spawn(
                [this] { processes("a checker", [this](Process& process) { look_for_damage(process); }); });
        }
        scheduler_.run();
        result_.stops = settings_.troubles.kill > 0;
        if (!scheduler_.halted()) end_quietly();
        if (scheduler_.halted()) result_.violations.push_back("it does not come to an end");
        for (std::string& line : result_.record.violations) result_.violations.push_back(std::move(line));
        result_.faults = network_.counts();
        result_.requests = result_.faults.requests;
        result_.simulated = scheduler_.now() - began;
        result_.trace = scheduler_.trace();
        return std::move(result_);
    }

  private:
    std::unique_ptr<Process> start() {
        return SimulatedWorld::start(
            store_, {.item_bytes_max = settings_.item_bytes_max,
                     .atomic_writes_max = random_.chance(settings_.no_atomic_writes) ? 0 : settings_.atomic_writes_max,
                     .no_changes = settings_.no_changes});
    }

    ApplicationOptions options(Process& process, std::optional<unsigned> shards = {}) {
        transactions::Options transactions = settings_.transactions;
        if (process.random.chance(0.5)) transactions.strategy = transactions::Strategy::protocol;
        return in(process, {.escalation = settings_.escalation,
                            .transactions = transactions,
                            .sweep = false,
                            .feed_shards = shards,
                            .locks = {.time_to_live = settings_.scale.lock_time_to_live, .heartbeat_thread = false}});
    }

    double meet(const RequestInfo& request) override {
        attribute();
        Doing& doing = doing_[scheduler_.self()];
        if (request.moment == RequestInfo::Moment::before) {
            doing.step = classify(request, doing.last_write);
            if (!request.writes.empty()) doing.last_write = doing.step;
        }
        if (scheduler_.steps() > settings_.steps_max || scheduler_.now() > limit_) scheduler_.halt();
        // Most requests are the sweepers' reads; it is the others that matter.
        return doing.step == ProtocolStep::changes ? 0.1 : doing.step == ProtocolStep::read ? 0.3 : 6;
    }
    void note_kill() override {
        ++result_.record.stopped;
        result_.cells.hit(doing_[scheduler_.self()].step, Cells::stopped);
    }
    void note_pause() override { result_.cells.hit(doing_[scheduler_.self()].step, Cells::paused); }

    /// What the network has done since it was last asked, it did to the request of whoever has run since.
    void attribute() {
        const FaultCounts counts = network_.counts();
        const auto doing = doing_.find(scheduler_.self());
        if (doing != doing_.end()) result_.cells.hit(doing->second.step, counted_, counts);
        counted_ = counts;
    }

    void set_up() {
        for (const auto& schema : {transactions::events_table(), transactions::system_table()}) {
            ledger_->ensure_table(schema);
        }
        scheduler_.spawn([this] {
            const auto process = start();
            Application application{process->store, options(*process, settings_.shards)};
            Workload::use_tables(application, settings_.scale);
            use_following_tables(application);
            Workload::set_up(application, settings_.scale);
        });
        scheduler_.run();
    }

    Workload workload_of(Application& application, Process& process, std::uint64_t seat) {
        Workload::use_tables(application, settings_.scale);
        const Workload::Shared shared{.scale = settings_.scale,
                                      .record = result_.record,
                                      .moment = [this] { return ++moments_; },
                                      .next_operation = [this] { return ++operations_; },
                                      .sleep = [this](Duration time) { scheduler_.sleep(time); }};
        return Workload{application, shared, process.random, static_cast<std::int64_t>(seat)};
    }

    /// Commands of one process after another. Every other client ends one in the middle, and the next one raises the
    /// number of shards, while others go on with the old one.
    void client(std::uint64_t seat) {
        const bool raises = settings_.shards_later > 0 && seat % 2 == 0;
        for (unsigned left = settings_.commands; left > 0;) {
            const auto process = start();
            const bool is_later = raises && left <= settings_.commands / 2;
            try {
                Application application{
                    process->store, options(*process, is_later ? std::optional{settings_.shards_later} : std::nullopt)};
                Workload workload = workload_of(application, *process, seat);
                for (const unsigned end = raises && !is_later ? settings_.commands / 2 : 0; left > end;) {
                    --left;
                    workload.one_command();
                    scheduler_.sleep(
                        Duration{static_cast<Duration::rep>(process->random.below(settings_.think_us_max + 1))});
                }
            } catch (const testing::ProcessStopped&) {
            } catch (const UnavailableError&) {
                scheduler_.sleep(100ms);  // it could not even start
            } catch (const std::exception& error) {
                result_.violations.push_back(std::string{"a process ended with: "} + error.what());
            }
        }
        --clients_left_;
    }

    /// One process after another, until the clients are done: each does `work` until it is stopped.
    template <typename Work>
    void processes(const char* who, const Work& work) {
        while (clients_left_ > 0) {
            const auto process = start();
            try {
                work(*process);
            } catch (const testing::ProcessStopped&) {
            } catch (const UnavailableError&) {
                scheduler_.sleep(100ms);
            } catch (const std::exception& error) {
                result_.violations.push_back(std::string{who} + " ended with: " + error.what());
                return;
            }
        }
    }

    /// In more of a hurry than those it sweeps after.
    void sweep(Process& process) {
        ApplicationOptions aggressive = options(process);
        aggressive.transactions.lease = 1ms;
        Application application{process.store, aggressive};
        std::unique_ptr<transactions::Sweeper> sweeper;
        while (clients_left_ > 0) {
            try {
                if (!sweeper) sweeper = new_sweeper(application);
                sweeper->sweep();
            } catch (const UnavailableError&) {
            }
            scheduler_.sleep(Duration{static_cast<Duration::rep>(process.random.below(300'000))});
        }
    }

    /// Finds nothing broken, whatever the others do.
    void look_for_damage(Process& process) {
        Application application{process.store, options(process)};
        while (clients_left_ > 0 && !process.is_dead()) {
            scheduler_.sleep(Duration{static_cast<Duration::rep>(process.random.below(500'000))});
            try {
                for (std::string& line : judge_by_check(application, Moment::any))
                    result_.violations.push_back("while others write: " + std::move(line));
                ++result_.record.checked;
            } catch (const Error& error) {
                if (!error.retryable() && !error.in_doubt()) throw;
            }
        }
    }

    /// Follows events, as others may under the same name.
    void follow(Process& process, Followed followed) {
        testing::SeededRandom& random = process.random;
        const Duration poll_intervals[] = {20ms, 300ms, 2s};
        const Manner manner{.options = {.batch_max = 1 + random.below(8),
                                        .poll_interval = poll_intervals[random.below(3)],
                                        .replaced_rows_kept_for = random.chance(0.7) ? 0s : 2s},
                            .is_broken = random.chance(0.1),
                            .is_busy = random.chance(0.5) ? 0.2 : 0.0};
        Application application{process.store, options(process)};
        std::atomic<int> idle = 0;
        detail::Keeper keeper{application, idle, consumer(followed, manner, deliveries_, application.runtime())};
        while (clients_left_ > 0) {
            Turn turn{.pause = 1s};
            try {
                if (random.chance(0.05)) evict_follower(application, keeper, random);
                if (followed == Followed::folds && random.chance(settings_.rebuild)) keeper.rebuild();
                turn = take_turns(application, keeper);
                if (turn.is_building && random.chance(0.1)) pause_rebuild(keeper, random.chance(0.5));
                application.locks().beat();
            } catch (const Error& error) {
                if (!error.retryable() && !error.in_doubt()) throw;
            }
            if (!turn.stopped.empty()) {
                ++result_.record.poisoned;
                if (!manner.is_broken) result_.violations.push_back(turn.stopped);
                return;
            }
            scheduler_.sleep(turn.pause);
        }
    }

    /// Runs process managers, timers and what was scheduled, as users do: in the background.
    struct Clerks {
        Clerks(Process& process, ApplicationOptions options, std::size_t partitions, Duration poll_interval)
            : application(process.store, heartbeats(std::move(options))) {
            varve::run<Clerk>(application, {.partitions = partitions, .poll_interval = poll_interval});
            run_scheduled<Tally, Count>(application, {.poll_interval = poll_interval});
        }
        static ApplicationOptions heartbeats(ApplicationOptions options) {
            options.locks.heartbeat_thread = true;
            return options;
        }
        Application application;
    };

    void keep_books(Process& process) {
        testing::SeededRandom& random = process.random;
        const Duration poll_intervals[] = {100ms, 1s, 2s};
        Clerks clerks{process, options(process), settings_.clerk_partitions, poll_intervals[random.below(3)]};
        while (clients_left_ > 0 && !process.is_dead()) {
            scheduler_.sleep(Duration{static_cast<Duration::rep>(random.below(500'000))}, process.death.get_token());
            try {
                if (random.chance(0.1)) evict(clerks.application, random);
                if (settings_.places_are_lost && random.chance(0.1))
                    lose_place(clerks.application, random, settings_.clerk_partitions);
            } catch (const Error& error) {
                if (!error.retryable() && !error.in_doubt()) throw;
            }
        }
    }

    /// Lets another one in while the owner still works.
    static void evict(Application& application, testing::SeededRandom& random) {
        const std::vector<FollowerStatus> all = application.followers();
        const std::string lock = "$follower-" + all[random.below(all.size())].name;
        const locks::Ticket holder = application.locks().inspect(lock).holder.ticket;
        if (holder > 0) application.locks().evict(lock, holder);
    }

    /// Every event is reacted to, and every timer fires.
    void finish_the_books() {
        if (settings_.clerks == 0) return;
        Clerk::is_broken = false;
        const std::unique_ptr<Process> process = start_calmly(store_, {.no_changes = settings_.no_changes});
        Clerks clerks{*process, options(*process), settings_.clerk_partitions, 1s};
        Application& application = clerks.application;
        for (const Time until = scheduler_.now() + 300s;;) {
            scheduler_.sleep(1s);
            const std::vector<FollowerStatus> all = application.followers();
            const auto is_done = [](const FollowerStatus& one) {
                return one.state == FollowerStatus::State::live && one.lag == 0s && one.parked == 0;
            };
            application.retry_parked(process_name<Clerk>());
            retry_timers(application, process_name<Clerk>());
            if (std::ranges::all_of(all, is_done) && application.rows<detail::TimerBucket>().all().to_vector().empty())
                break;
            if (scheduler_.now() < until) continue;
            for (const FollowerStatus& one : all)
                result_.violations.push_back(one.name + " does not come to the end of its events and timers; " +
                                             to_string(one.state) + ", " + std::to_string(one.parked) + " aside; " +
                                             one.error);
            break;
        }
        for (const FollowerStatus& one : application.followers())
            result_.record.reactions += static_cast<std::uint64_t>(one.events);
    }

    /// What came of one turn of each who keeps rows under one name.
    struct Turn {
        Duration pause = 1s;
        bool is_building = false;  ///< they are made anew, or what was replaced is still there
        std::string stopped = {};  ///< why one of them has
    };

    static Turn take_turns(Application& application, detail::Keeper& keeper) {
        Turn turn{.pause = keeper.turn()};
        const detail::Builds builds = detail::parts_of(application).builds(keeper.name());
        turn.is_building = builds.next || !builds.replaced.empty();
        std::vector<std::string> names{keeper.name()};
        if (builds.next) names.push_back(detail::build_name(keeper.name(), builds.next->number));
        for (const std::string& name : names) {
            for (const std::shared_ptr<detail::Follower>& follower : keeper.followers(name)) {
                const std::optional<Duration> pause = follower->turn({});
                if (!pause) turn.stopped = follower->status().error;
                turn.pause = std::min(turn.pause, pause.value_or(0s));
            }
        }
        return turn;
    }

    static void pause_rebuild(detail::Keeper& keeper, bool pause) {
        try {
            keeper.set_paused(pause);
        } catch (const InvalidError&) {  // it has ended meanwhile
        }
    }

    /// Puts slots in order, whatever others do: no lock keeps two apart.
    void put_in_order_beside(Process& process) {
        Application application{process.store, options(process)};
        feed::Sequencer sequencer{coordinator_of(application)};
        while (clients_left_ > 0) {
            try {
                if (sequencer.round()) continue;
            } catch (const Error& error) {
                if (!error.retryable() && !error.in_doubt()) throw;
            }
            scheduler_.sleep(100ms);
        }
    }

    /// What was acknowledged, without anybody's help; what was not and lacks a bell, when scans have passed.
    void put_in_order(Application& application) {
        if (!settings_.no_changes) return;
        feed::Sequencer sequencer{coordinator_of(application)};
        put_in_order(sequencer);
    }

    void put_in_order(feed::Sequencer& sequencer) {
        const Time began = scheduler_.now();
        do {
            while (sequencer.round()) {
            }
            scheduler_.sleep(1s);
            if (scheduler_.now() > began + 120s)
                return result_.violations.push_back("bells that nobody answers stand after 120 s of quiet");
        } while (!ledger_->contents({transactions::bells_table().name}).empty());
    }

    /// Somebody else raises the number of shards, and commits, while this sequencer is at work.
    void put_in_order_what_comes_in_new_shards(Application& application) {
        if (settings_.shards_later == 0) return;
        feed::Sequencer sequencer{coordinator_of(application)};
        while (sequencer.round()) {
        }
        const auto process = start();
        Application raising{process->store, options(*process, settings_.shards_later + 1)};
        Workload workload = workload_of(raising, *process, settings_.clients);
        for (int i = 0; i < 5; ++i) workload.one_command();
        put_in_order(sequencer);
    }

    /// Lets another one in while the owner still works.
    static void evict_follower(Application& application, const detail::Keeper& keeper, testing::SeededRandom& random) {
        const detail::Builds builds = detail::parts_of(application).builds(keeper.name());
        const std::int64_t number = builds.next && random.chance(0.5) ? builds.next->number : builds.live.number;
        const std::string lock = "$follower-" + detail::build_name(keeper.name(), number);
        const locks::Ticket holder = application.locks().inspect(lock).holder.ticket;
        if (holder > 0) application.locks().evict(lock, holder);
    }

    /// Every name once more, by somebody who has no troubles. Rows that can be made anew are, while others list them.
    void follow_to_the_end(Application& application) {
        for (const Followed followed : settings_.followers) {
            std::atomic<int> idle = 0;
            const Manner manner{.options = {.replaced_rows_kept_for = 0s}};
            detail::Keeper keeper{application, idle, consumer(followed, manner, deliveries_, application.runtime())};
            pause_rebuild(keeper, false);
            if (followed == Followed::folds && settings_.rebuild > 0) rebuild_before_readers(keeper);
            const Time until = scheduler_.now() + 300s;
            const auto status = [&] { return keeper.followers(keeper.name()).front()->status(); };
            for (Turn turn{.is_building = true};
                 turn.is_building || status().state != FollowerStatus::State::live || status().parked > 0;) {
                turn = take_turns(application, keeper);
                if (!turn.stopped.empty()) return result_.violations.push_back(turn.stopped);
                if (scheduler_.now() > until) {
                    const FollowerStatus last = status();
                    return result_.violations.push_back(
                        name_of(followed) + " does not come to the end of the events; " + to_string(last.state) +
                        ", at " + std::to_string(last.position) + " of " + std::to_string(last.end) + "; " +
                        last.error);
                }
                scheduler_.sleep(std::min(turn.pause, application.locks().beat()));
            }
            result_.record.followed += static_cast<std::uint64_t>(status().events);
            if (followed == Followed::folds) {
                result_.record.rebuilt +=
                    static_cast<std::uint64_t>(detail::parts_of(application).builds(keeper.name()).live.number - 1);
            }
        }
    }

    void rebuild_before_readers(detail::Keeper& keeper) {
        keeper.rebuild();
        for (int reader = 0; reader < 3; ++reader) {
            scheduler_.spawn([this] {
                const auto process = start();
                Application application{process->store, options(*process)};
                Workload workload = workload_of(application, *process, settings_.clients);
                for (const Time until = scheduler_.now() + 5s; scheduler_.now() < until;) workload.list_folds();
            });
        }
    }

    std::unique_ptr<transactions::Sweeper> new_sweeper(Application& application) const {
        return std::make_unique<transactions::Sweeper>(coordinator_of(application), ledger_->row_tables(),
                                                       transactions::ScanOptions{.page_interval = 0ms, .pause = 0ms});
    }

    std::vector<std::string> all_tables() const {
        std::vector<std::string> tables = ledger_->row_tables();
        tables.emplace_back("events");
        return tables;
    }

    void end_quietly() {
        end_troubles();
        limit_ = Time::max();
        scheduler_.spawn([this] {
            scheduler_.sleep(5s);  // the last burst of throttling ends
            try {
                settle_and_judge();
            } catch (const std::exception& error) {
                result_.violations.push_back(std::string{"nothing can be read at rest: "} + error.what());
            }
        });
        scheduler_.run();
    }

    void settle_and_judge() {
        const std::unique_ptr<Process> process = start_calmly(store_, {.no_changes = settings_.no_changes});
        ApplicationOptions calm = options(*process);
        calm.locks.time_to_live = 5s;  // whoever follows to the end here sends no heartbeat in the middle of a turn
        Application application{process->store, calm};
        Workload::use_tables(application, settings_.scale);
        put_in_order_what_comes_in_new_shards(application);
        put_in_order(application);
        if (settings_.no_changes) {
            for (std::string& line : judge_log(*ledger_, result_.record)) result_.violations.push_back(std::move(line));
        }
        settle(application);
        put_in_order(application);
        finish_the_books();
        put_in_order(application);
        follow_to_the_end(application);
        settle(application);
        for (std::string& line : ledger_->violations_at_rest(all_tables()))
            result_.violations.push_back(std::move(line));
        if (!settings_.no_changes) std::ranges::copy(ledger_->written_again(), std::back_inserter(result_.violations));
        const auto before = lasting_contents();
        const auto again = new_sweeper(application);
        again->sweep();
        scheduler_.sleep(10s);
        again->sweep();
        std::vector<store::Record> changed;
        std::ranges::set_symmetric_difference(before, lasting_contents(), std::back_inserter(changed), {},
                                              &store::Record::key, &store::Record::key);
        for (const store::Record& record : lasting_contents()) {
            if (!std::ranges::binary_search(before, record.key, {}, &store::Record::key)) continue;
            if (*std::ranges::lower_bound(before, record.key, {}, &store::Record::key) != record)
                changed.push_back(record);
        }
        for (const store::Record& record : changed)
            result_.violations.push_back("Q5: recovering again changed " + store::to_string(record.key));
        for (std::string& line : judge_by_check(application, Moment::at_rest))
            result_.violations.push_back(std::move(line));
        for (std::string& line : judge_at_rest(application, *ledger_, result_.record, settings_.scale, moments_ + 1)) {
            result_.violations.push_back(std::move(line));
        }
        for (std::string& line :
             judge_following(application, *ledger_, deliveries_, settings_.followers, settings_.no_changes))
            result_.violations.push_back(std::move(line));
        if (settings_.clerks == 0) return;
        for (std::string& line : judge_clerks(application, *ledger_, result_.record))
            result_.violations.push_back(std::move(line));
    }

    /// Twice: what a scan has settled, only the next one sees as it is.
    void settle(Application& application) {
        for (int scans = 0; scans < 2; ++scans) sweep_all(application);
    }

    void sweep_all(Application& application) {
        const auto sweeper = new_sweeper(application);
        const Time began = scheduler_.now();
        for (;;) {
            const std::size_t left = sweeper->sweep();
            if (left == 0 && sweeper->is_through() && ledger_->violations_at_rest(all_tables()).empty()) return;
            if (scheduler_.now() > began + 120s) {
                if (left > 0)
                    result_.violations.push_back(std::to_string(left) + " are unsettled after 120 s of quiet");
                return;
            }
            scheduler_.sleep(1s);
        }
    }

    /// Without tombstones: these may go at any time after their retention.
    std::vector<store::Record> lasting_contents() const {
        std::vector<store::Record> records = ledger_->contents(all_tables());
        std::erase_if(records, [](const store::Record& record) { return record.item.contains("_expires"); });
        return records;
    }

    /// What each thread is asking the store for.
    struct Doing {
        ProtocolStep step = ProtocolStep::other;
        ProtocolStep last_write = ProtocolStep::other;
    };

    const Settings settings_;
    std::shared_ptr<Ledger> ledger_;
    std::shared_ptr<LooseStore> store_;
    Result result_;
    std::map<Scheduler::Waiter, Doing> doing_;
    Deliveries deliveries_;
    FaultCounts counted_;
    std::uint64_t clients_left_ = 0;
    std::int64_t moments_ = 0;
    std::int64_t operations_ = 0;
    Time limit_ = scheduler_.now() + 4h;
};

}  // namespace

Result simulate(const Settings& settings) {
    return Cluster{settings}.run();
}

}  // namespace varve::protocol
