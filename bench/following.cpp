#include "account.h"
#include "delayed_store.h"
#include "feed/sequencer.h"
#include "figures.h"
#include "transactions/coordinator.h"

#include <varve/commands/delivery.h>
#include <varve/commands/follower_status.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace bench {
namespace {

struct Total {
    static constexpr std::string_view table = "totals";
    std::int64_t cents = 0;
    std::int64_t events = 0;
};
/// The same, and they can be made anew.
struct KeptTotal {
    static constexpr std::string_view table = "kept_totals";
    static constexpr std::string_view kept_by = "kept_totals";
    std::int64_t cents = 0;
    std::int64_t events = 0;
};
/// One row for each account.
template <class Row>
struct SumUp {
    static constexpr std::string_view name = Row::table;
    void operator()(const Deposited& e, varve::ProjectionContext& context) const {
        context.rows<Row>().update(context.aggregate_id(), [&](Row& row) {
            row.cents += e.cents;
            ++row.events;
        });
    }
};

/// So many slots of one event each, over all accounts.
void fill(varve::Application& bank, int slots) {
    for (int first = 0; first < slots; first += accounts) {
        const auto outcome = bank.transact([&](varve::Transaction& tx) {
            for (int id = 0; id < accounts; ++id) tx.append<Account>(std::to_string(id), {Deposited{1}});
        });
        if (!outcome) throw std::runtime_error("a deposit was rejected");
    }
}

template <class Row>
void follow(varve::Application& bank) {
    bank.follow<Account>(SumUp<Row>{});
    if (!bank.wait_for<SumUp<Row>>({}, std::chrono::minutes{10}))
        throw std::runtime_error("the follower did not catch up");
}

template <class Row>
void check(varve::Application& bank, int slots) {
    std::int64_t events = 0;
    for (const auto& row : bank.rows<Row>().all()) events += row.value.events;
    if (events != slots) throw std::runtime_error("the follower has missed events, or counted some twice");
}

/// What there is to be read at least.
double read_slots(varve::store::ItemStore& store, int slots) {
    return slots / seconds([&] {
               if (!store.capabilities().ordered_changes) {
                   std::vector<varve::store::Key> keys;
                   for (int i = 0; i < slots; ++i) {
                       keys.push_back({"events", "account-" + std::to_string(i % accounts), 1 + i / accounts});
                       if (keys.size() < 100 && i + 1 < slots) continue;
                       if (!store.read(std::exchange(keys, {})).back()) throw std::runtime_error("a slot is missing");
                   }
                   return;
               }
               varve::store::Position at = 0;
               for (auto changes = store.changes("events", at, 500); !changes.empty();
                    changes = store.changes("events", at, 500)) {
                   at = changes.back().position;
               }
           });
}

using Open = std::function<std::shared_ptr<varve::store::ItemStore>()>;

/// A follower that finds `slots` slots.
Figure catch_up(const Plan& plan, const std::string& name, int slots, const Open& open) {
    Figure figure{.name = name + "_catch_up_over_" + std::to_string(slots) + "_events",
                  .unit = "events/s",
                  .raw = "the same slots read, not decoded"};
    if (!plan.wants(figure.name)) return figure;
    const std::shared_ptr<varve::store::ItemStore> store = open();
    varve::Application bank{store, {.sweep = !store->capabilities().ordered_changes}};
    fill(bank, slots);
    if (!store->capabilities().ordered_changes) {  // until all are in the log, which is not what is measured
        bank.subscribe("watch", [](auto) {});
        if (!bank.wait_for("watch", {}, std::chrono::minutes{10}))
            throw std::runtime_error("nobody puts them in order");
        bank.unfollow("watch");
    }
    figure.rate = slots / seconds([&] { follow<Total>(bank); });
    check<Total>(bank, slots);
    figure.raw_rate = read_slots(*store, slots);
    return figure;
}

void rebuild(varve::Application& bank) {
    const std::int64_t before = bank.followers().front().build;
    bank.rebuild<SumUp<KeptTotal>>();
    while (bank.followers().front().build == before) std::this_thread::sleep_for(std::chrono::milliseconds{5});
}

/// A rebuild beside the live rows, and what memory that takes beside a hundredth of it.
void add_rebuild(const Plan& plan, const std::string& name, const std::string& url, int slots,
                 std::vector<Figure>& figures) {
    Figure figure{.name = name + "_rebuild_over_" + std::to_string(slots) + "_events",
                  .unit = "events/s",
                  .raw = "the same events taken for the first time"};
    Figure memory{.name = name + "_memory_of_a_rebuild_over_" + std::to_string(slots) + "_events",
                  .unit = "MB at peak",
                  .raw = "that of one over a hundredth of them"};
    if (!plan.wants(figure.name) && !plan.wants(memory.name)) return;
    varve::Application bank{varve::open(url), {.sweep = false}};
    fill(bank, slots / 100);
    follow<KeptTotal>(bank);
    rebuild(bank);
    memory.raw_rate = megabytes_at_peak([&] { rebuild(bank); });
    bank.unfollow(std::string{KeptTotal::table});
    fill(bank, slots - slots / 100);
    figure.raw_rate = (slots - slots / 100) / seconds([&] { follow<KeptTotal>(bank); });
    memory.rate = megabytes_at_peak([&] { figure.rate = slots / seconds([&] { rebuild(bank); }); });
    check<KeptTotal>(bank, slots);
    figures.push_back(figure);
    figures.push_back(memory);
}

/// How long after its acknowledgement a deposit stands in the row: the 99th of a hundred. `across`: it is another
/// application that follows, as another process would.
Figure lag(const Plan& plan, const std::string& name, const std::string& url, bool across) {
    constexpr std::size_t deposits = 200;
    Figure figure{.name = name + (across ? "_lag_across_applications" : "_lag") + "_p99",
                  .unit = "ms",
                  .raw = "how long such a deposit itself takes, the 99th of a hundred"};
    if (!plan.wants(figure.name)) return figure;
    varve::Application bank{varve::open(url), {.sweep = false}};
    const auto owner =
        across ? std::make_unique<varve::Application>(varve::open(url), varve::ApplicationOptions{.sweep = false})
               : nullptr;
    const auto wait = [&](varve::Application& one, const varve::Receipt& receipt) {
        if (!one.wait_for<SumUp<Total>>(receipt, std::chrono::minutes{1})) throw std::runtime_error("nobody follows");
    };
    if (owner) {
        owner->follow<Account>(SumUp<Total>{});
        wait(*owner, owner->execute<Account>("first", Deposit{1}).value());
    }
    bank.follow<Account>(SumUp<Total>{});
    wait(bank, bank.execute<Account>("warm", Deposit{1}).value());
    std::vector<double> lags;
    std::vector<double> commands;
    for (std::size_t i = 0; i < deposits; ++i) {
        varve::Receipt receipt;
        commands.push_back(1e3 * seconds([&] { receipt = bank.execute<Account>("a", Deposit{1}).value(); }));
        lags.push_back(1e3 * seconds([&] { wait(bank, receipt); }));
    }
    std::ranges::sort(lags);
    std::ranges::sort(commands);
    figure.rate = lags[deposits * 99 / 100];
    figure.raw_rate = commands[deposits * 99 / 100];
    return figure;
}

/// Keeps no order of changes, and writes nothing atomically, as DynamoDB.
struct UnorderedStore final : DelayedStore {
    using DelayedStore::DelayedStore;
    varve::store::Capabilities capabilities() const override {
        varve::store::Capabilities less = DelayedStore::capabilities();
        less.ordered_changes = false;
        less.atomic_writes_max = 0;
        less.item_bytes_max = 400 << 10;
        return less;
    }
};

/// How fast a sequencer puts in order what stands in so many shards: one slot of each of 10,000 streams.
double put_in_order(unsigned shards) {
    constexpr int slots = 10'000;
    const std::shared_ptr<varve::store::ItemStore> memory = varve::open("memory:");
    {
        varve::Application bank{std::make_shared<UnorderedStore>(memory, std::chrono::microseconds{0}),
                                {.sweep = false, .feed_shards = shards}};
        for (int id = 0; id < slots; ++id) bank.append<Account>(std::to_string(id), {Deposited{1}}).value();
    }
    UnorderedStore far_away{memory, std::chrono::milliseconds{5}};
    const auto executor = varve::make_thread_executor(1, {});
    varve::transactions::Coordinator coordinator{far_away, {}, *executor, {}, shards};
    varve::feed::Sequencer sequencer{coordinator};
    const double taken = seconds([&] {
        while (sequencer.round()) {
        }
    });
    if (sequencer.logged() != slots) throw std::runtime_error("some were not put in order");
    return slots / taken;
}

Figure put_in_order_in(const Plan& plan, unsigned shards) {
    Figure figure{.name = "delayed_5ms_put_in_order_in_" + std::to_string(shards) + "_shards",
                  .unit = "commits/s",
                  .raw = "the same in one shard"};
    if (plan.wants(figure.name))
        measure(
            figure, [&] { return put_in_order(shards); }, [] { return put_in_order(1); });
    return figure;
}

struct Receipt {
    std::string to;
    std::int64_t cents = 0;
};

/// Effects that are there already, each of the stream of one of 50 accounts, to a function that takes them.
Figure deliver(const Plan& plan, const std::string& name, const std::string& url) {
    constexpr int effects = 20'000;
    Figure figure{
        .name = name + "_effects_delivered", .unit = "effects/s", .raw = "the commands that cause them, one thread"};
    if (!plan.wants(figure.name)) return figure;
    varve::Application bank{varve::open(url), {.sweep = false}};
    figure.raw_rate = effects / seconds([&] {
                          for (int i = 0; i < effects; ++i) {
                              bank.transact([&](varve::Transaction& tx) {
                                      tx.execute<Account>(std::to_string(i % accounts), Deposit{1});
                                      tx.effect(Receipt{"alice", 1});
                                  })
                                  .value();
                          }
                      });
    std::atomic<int> got = 0;
    figure.rate = effects / seconds([&] {
                      varve::deliver<Receipt>(bank, [&](const Receipt&) { ++got; });
                      if (!bank.wait_for(varve::delivery_name<Receipt>(), {}, std::chrono::minutes{10}))
                          throw std::runtime_error("they are not delivered");
                  });
    if (got != effects) throw std::runtime_error("some were not delivered, or more than once");
    return figure;
}

}  // namespace

Figure catch_up_at(const Plan& plan, const std::string& name, int slots, const std::string& url) {
    return catch_up(plan, name, slots, [&] { return varve::open(url); });
}

std::vector<Figure> following(const Plan& plan) {
    std::vector<Figure> figures;
    for (const int slots : {10'000, 100'000, 1'000'000}) {
        figures.push_back(catch_up(plan, "memory", slots, [] { return varve::open("memory:"); }));
    }
    add_rebuild(plan, "memory", "memory:", 1'000'000, figures);
    add_rebuild(plan, "sqlite", "sqlite:" + (plan.folder / "rebuild.db").string(), 1'000'000, figures);
    for (const int slots : {10'000, 100'000}) {
        const auto file = plan.folder / ("follow_" + std::to_string(slots) + ".db");
        figures.push_back(catch_up(plan, "sqlite", slots, [&] { return varve::open("sqlite:" + file.string()); }));
    }
    figures.push_back(catch_up(plan, "delayed_5ms", 10'000, [] {
        return std::make_shared<UnorderedStore>(varve::open("memory:"), std::chrono::milliseconds{5});
    }));
    figures.push_back(lag(plan, "memory", "memory:", false));
    for (const bool across : {false, true}) {
        const auto file = plan.folder / (across ? "lag_across.db" : "lag.db");
        figures.push_back(lag(plan, "sqlite", "sqlite:" + file.string(), across));
    }
    figures.push_back(deliver(plan, "memory", "memory:"));
    figures.push_back(deliver(plan, "sqlite", "sqlite:" + (plan.folder / "deliver.db").string()));
    for (const unsigned shards : {8u, 64u}) figures.push_back(put_in_order_in(plan, shards));
    std::erase_if(figures, [&](const Figure& figure) { return !plan.wants(figure.name); });
    return figures;
}

}  // namespace bench
