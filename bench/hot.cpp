#include "account.h"
#include "delayed_store.h"
#include "figures.h"
#include "streams.h"

#include <varve/aggregates/cache_metrics.h>
#include <varve/locks/locks.h>
#include <varve/store/item_store.h>

#include <algorithm>
#include <array>
#include <deque>
#include <future>
#include <thread>

#include <malloc.h>

namespace bench {
namespace {

using namespace std::chrono_literals;
using varve::store::ItemStore;

constexpr unsigned submitters = 32;

/// An account with a snapshot now and then.
struct Counted {
    static constexpr std::string_view name = "counted";
    static constexpr varve::SnapshotPolicy snapshots{.every_slots = 1000};
    using Event = std::variant<Deposited>;

    std::int64_t balance = 0;

    void apply(const Deposited& e) { balance += e.cents; }
    varve::Decision<Event> decide(const Deposit& c) const { return Deposited{c.cents}; }
};

/// Each caller waits for each of its commands.
double by_callers(const Plan& plan, varve::Application& bank) {
    return rate(plan, submitters, [&](unsigned, long) { return bank.execute<Account>("hot", Deposit{1}) ? 1 : 0; });
}

/// Each submitter has some commands on their way.
double by_submitters(const Plan& plan, varve::Application& bank) {
    constexpr std::size_t window = 16;
    std::vector<std::deque<std::future<varve::Outcome>>> sent(submitters);
    return rate(plan, submitters, [&](unsigned thread, long) {
        auto& mine = sent[thread];
        mine.push_back(bank.submit<Account>("hot", Deposit{1}));
        if (mine.size() < window) return 0;
        const varve::Outcome outcome = mine.front().get();
        mine.pop_front();
        return outcome ? 1 : 0;
    });
}

/// Load, decide, write on condition, and again: what there is without a lane.
double by_retrying(const Plan& plan, varve::Application& bank) {
    return rate(plan, submitters, [&](unsigned, long) {
        try {
            return bank.transact([](varve::Transaction& tx) { tx.execute<Account>("hot", Deposit{1}); }) ? 1 : 0;
        } catch (const varve::ConflictError&) {
            return 0;
        }
    });
}

void hot(const Plan& plan, std::vector<Figure>& figures, const std::string& store_name,
         const std::function<std::shared_ptr<ItemStore>()>& open) {
    for (const bool waits : {true, false}) {
        Figure figure{.name = store_name + "_hot_account_32_" + (waits ? "callers" : "submitters"),
                      .unit = "commands/s",
                      .raw = "the plain retry loop: transact by as many threads on the same store"};
        if (!plan.wants(figure.name)) continue;
        measure(
            figure,
            [&] {
                varve::Application bank{open(), {.sweep = false}};
                return waits ? by_callers(plan, bank) : by_submitters(plan, bank);
            },
            [&] {
                varve::Application bank{open(), {.sweep = false}};
                return by_retrying(plan, bank);
            });
        figures.push_back(std::move(figure));
    }
}

/// Two processes on one hot account: what the one gets that gets less, beside the other.
void fairness(const Plan& plan, std::vector<Figure>& figures, bool locked) {
    Figure figure{.name = std::string{"delayed_hot_account_2_processes"} + (locked ? "_with_a_lock" : ""),
                  .unit = "commands/s",
                  .raw = "of the process that got more; the ratio is the share of the other"};
    if (!plan.wants(figure.name)) return;
    const auto store = std::make_shared<DelayedStore>(varve::open("memory:"), 5ms);
    varve::Application one{store, {.sweep = false}};
    varve::Application two{store, {.sweep = false}};
    std::array<std::atomic<long>, 2> done{};
    const double total = rate(plan, 16, [&](unsigned thread, long) {
        varve::Application& bank = thread % 2 == 0 ? one : two;
        try {
            std::optional<varve::Lock> lock;
            if (locked) lock = bank.locks().acquire("hot");
            for (int i = 0; i < 10; ++i) {
                if (bank.execute<Account>("hot", Deposit{1})) ++done[thread % 2];
            }
        } catch (const varve::ConflictError&) {
        }
        return 10;
    });
    const auto all = static_cast<double>(done[0] + done[1]);
    const auto least = static_cast<double>(std::min(done[0], done[1]));
    figure.rate = all > 0 ? total * least / all : 0;
    figure.raw_rate = all > 0 ? total * (all - least) / all : 0;
    figures.push_back(std::move(figure));
}

/// Command rate over many aggregates, each known already.
void over_aggregates(const Plan& plan, std::vector<Figure>& figures, long count) {
    Figure figure{.name = "memory_commands_over_" + std::to_string(count) + "_aggregates",
                  .unit = "commands/s",
                  .raw = "conditional puts of the next slot of the same streams"};
    if (!plan.wants(figure.name)) return;
    const auto store = varve::open("memory:");
    varve::Application bank{store, {.sweep = false, .cache_bytes_max = 1 << 30}};
    write_streams(*store, "account", 0, count, 1);
    write_streams(*store, "raw", 0, count, 1);
    for (long id = 0; id < count; ++id) static_cast<void>(bank.load<Account>(std::to_string(id)));
    const auto pick = [&](long i) { return static_cast<long>((static_cast<unsigned long>(i) * 2654435761u) % count); };
    std::vector<varve::Version> versions(static_cast<std::size_t>(count), 1);
    long next = 0;
    measure(
        figure,
        [&] {
            return rate(plan, 1, [&](unsigned, long) {
                return bank.execute<Account>(std::to_string(pick(next++)), Deposit{1}) ? 1 : 0;
            });
        },
        [&] {
            return rate(plan, 1, [&](unsigned, long) {
                const long id = pick(next++);
                const varve::store::Write write{
                    varve::transactions::slot_key("raw-" + std::to_string(id),
                                                  ++versions[static_cast<std::size_t>(id)]),
                    varve::store::Put{{{"state", "committed"}, {"events", std::string(150, 'x')}}},
                    !varve::store::item_exists()};
                return std::holds_alternative<varve::store::Applied>(store->write({&write, 1}).front()) ? 1 : 0;
            });
        });
    figures.push_back(std::move(figure));
}

/// Loads by a process that knows nothing yet, and commands by one that does, on a stream of a length.
void over_lengths(const Plan& plan, std::vector<Figure>& figures, long length) {
    const std::string suffix = "_on_a_stream_of_" + std::to_string(length);
    Figure loads{.name = "memory_first_loads_with_snapshot" + suffix, .unit = "loads/s", .raw = "reads of one item"};
    Figure commands{.name = "memory_commands" + suffix, .unit = "commands/s", .raw = "as above"};
    if (!plan.wants(loads.name) && !plan.wants(commands.name)) return;
    const auto store = varve::open("memory:");
    write_streams(*store, "counted", 0, 1, length);
    varve::Application bank{store, {.sweep = false}};
    static_cast<void>(bank.load<Counted>("0"));
    static_cast<void>(bank.execute<Counted>("0", Deposit{1}));
    varve::Application forgetful{store, {.sweep = false, .cache_bytes_max = 0}};
    const varve::store::Key key = varve::transactions::slot_key("counted-0", 1);
    const auto raw = [&] {
        return rate(plan, 1, [&](unsigned, long) { return static_cast<int>(store->read({&key, 1}).size()); });
    };
    if (plan.wants(loads.name)) {
        measure(
            loads,
            [&] {
                return rate(plan, 1, [&](unsigned, long) { return forgetful.load<Counted>("0").version > 0 ? 1 : 0; });
            },
            raw);
        figures.push_back(std::move(loads));
    }
    if (plan.wants(commands.name)) {
        measure(
            commands,
            [&] {
                return rate(plan, 1, [&](unsigned, long) { return bank.execute<Counted>("0", Deposit{1}) ? 1 : 0; });
            },
            raw);
        figures.push_back(std::move(commands));
    }
}

void memory_per_aggregate(const Plan& plan, std::vector<Figure>& figures) {
    Figure figure{.name = "cached_aggregate_memory",
                  .unit = "bytes",
                  .raw = "what the cache itself counts for one; the rate is what the allocator gave"};
    if (!plan.wants(figure.name)) return;
    constexpr long count = 100'000;
    const auto store = varve::open("memory:");
    write_streams(*store, "account", 0, count, 1);
    varve::Application bank{store, {.sweep = false, .cache_bytes_max = 1 << 30}};
    const std::size_t before = mallinfo2().uordblks;
    for (long id = 0; id < count; ++id) static_cast<void>(bank.load<Account>(std::to_string(id)));
    figure.rate = static_cast<double>(mallinfo2().uordblks - before) / count;
    figure.raw_rate = static_cast<double>(bank.cache_metrics().bytes) / count;
    figures.push_back(std::move(figure));
}

}  // namespace

std::vector<Figure> hot_aggregates(const Plan& plan) {
    std::vector<Figure> figures;
    int file = 0;
    hot(plan, figures, "sqlite",
        [&] { return varve::open("sqlite:" + (plan.folder / ("hot" + std::to_string(++file) + ".db")).string()); });
    hot(plan, figures, "delayed_5ms", [] { return std::make_shared<DelayedStore>(varve::open("memory:"), 5ms); });
    fairness(plan, figures, false);
    fairness(plan, figures, true);
    for (const long count : {1'000, 10'000, 100'000, 1'000'000}) over_aggregates(plan, figures, count);
    for (const long length : {10, 1'000, 100'000, 1'000'000}) over_lengths(plan, figures, length);
    memory_per_aggregate(plan, figures);
    return figures;
}

}  // namespace bench
