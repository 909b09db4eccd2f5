#include "account.h"
#include "figures.h"

#include <varve/commands/follower_status.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

struct Total {
    static constexpr std::string_view table = "totals";
    std::int64_t cents = 0;
    std::int64_t events = 0;
};
/// One row for each account.
struct SumUp {
    static constexpr std::string_view name = "totals";
    void operator()(const Deposited& e, varve::ProjectionContext& context) const {
        context.rows<Total>().update(context.aggregate_id(), [&](Total& row) {
            row.cents += e.cents;
            ++row.events;
        });
    }
};

/// A follower that finds `slots` slots of one event each, over 100 accounts.
Figure catch_up(const Plan& plan, const std::string& name, const std::string& url, int slots) {
    constexpr int accounts = 100;
    Figure figure{.name = name + "_catch_up_over_" + std::to_string(slots) + "_events",
                  .unit = "events/s",
                  .raw = "the same slots read as changes, not decoded"};
    if (!plan.wants(figure.name)) return figure;
    const auto store = varve::open(url);
    varve::Application bank{store, {.sweep = false}};
    for (int first = 0; first < slots; first += accounts) {
        const auto outcome = bank.transact([&](varve::Transaction& tx) {
            for (int id = 0; id < accounts; ++id) tx.append<Account>(std::to_string(id), {Deposited{1}});
        });
        if (!outcome) throw std::runtime_error("a deposit was rejected");
    }
    figure.rate = slots / seconds([&] {
                      bank.follow<Account>(SumUp{});
                      if (!bank.wait_for<SumUp>({}, std::chrono::minutes{10}))
                          throw std::runtime_error("the follower did not catch up");
                  });
    std::int64_t events = 0;
    for (const auto& row : bank.rows<Total>().all()) events += row.value.events;
    if (events != slots) throw std::runtime_error("the follower has missed events, or counted some twice");
    figure.raw_rate = slots / seconds([&] {
                          varve::store::Position at = 0;
                          for (auto changes = store->changes("events", at, 500); !changes.empty();
                               changes = store->changes("events", at, 500)) {
                              at = changes.back().position;
                          }
                      });
    return figure;
}

struct KeptTotal {
    static constexpr std::string_view table = "kept_totals";
    static constexpr std::string_view kept_by = "kept_totals";
    std::int64_t cents = 0;
    std::int64_t events = 0;
};
struct KeepTotals {
    static constexpr std::string_view name = "kept_totals";
    void operator()(const Deposited& e, varve::ProjectionContext& context) const {
        context.rows<KeptTotal>().update(context.aggregate_id(), [&](KeptTotal& row) {
            row.cents += e.cents;
            ++row.events;
        });
    }
};

/// A rebuild beside the live rows, of as many events in slots of one.
Figure rebuild(const Plan& plan, const std::string& name, const std::string& url, int slots) {
    constexpr int accounts = 100;
    Figure figure{.name = name + "_rebuild_over_" + std::to_string(slots) + "_events",
                  .unit = "events/s",
                  .raw = "the same events taken for the first time"};
    if (!plan.wants(figure.name)) return figure;
    varve::Application bank{varve::open(url), {.sweep = false}};
    for (int first = 0; first < slots; first += accounts) {
        const auto outcome = bank.transact([&](varve::Transaction& tx) {
            for (int id = 0; id < accounts; ++id) tx.append<Account>(std::to_string(id), {Deposited{1}});
        });
        if (!outcome) throw std::runtime_error("a deposit was rejected");
    }
    figure.raw_rate = slots / seconds([&] {
                          bank.follow<Account>(KeepTotals{});
                          if (!bank.wait_for<KeepTotals>({}, std::chrono::minutes{10}))
                              throw std::runtime_error("the follower did not catch up");
                      });
    figure.rate = slots / seconds([&] {
                      bank.rebuild<KeepTotals>();
                      while (bank.followers().front().build == 1)
                          std::this_thread::sleep_for(std::chrono::milliseconds{5});
                  });
    std::int64_t events = 0;
    for (const auto& row : bank.rows<KeptTotal>().all()) events += row.value.events;
    if (events != slots) throw std::runtime_error("the rebuild has missed events, or counted some twice");
    return figure;
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
        if (!one.wait_for<SumUp>(receipt, std::chrono::minutes{1})) throw std::runtime_error("nobody follows");
    };
    if (owner) {
        owner->follow<Account>(SumUp{});
        wait(*owner, {});
    }
    bank.follow<Account>(SumUp{});
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

}  // namespace

std::vector<Figure> following(const Plan& plan) {
    std::vector<Figure> figures;
    for (const int slots : {10'000, 100'000, 1'000'000}) figures.push_back(catch_up(plan, "memory", "memory:", slots));
    figures.push_back(rebuild(plan, "memory", "memory:", 1'000'000));
    for (const int slots : {10'000, 100'000}) {
        const auto file = plan.folder / ("follow_" + std::to_string(slots) + ".db");
        figures.push_back(catch_up(plan, "sqlite", "sqlite:" + file.string(), slots));
    }
    figures.push_back(lag(plan, "memory", "memory:", false));
    for (const bool across : {false, true}) {
        const auto file = plan.folder / (across ? "lag_across.db" : "lag.db");
        figures.push_back(lag(plan, "sqlite", "sqlite:" + file.string(), across));
    }
    std::erase_if(figures, [&](const Figure& figure) { return !plan.wants(figure.name); });
    return figures;
}

}  // namespace bench
