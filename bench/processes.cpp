#include "account.h"
#include "figures.h"

#include <varve/processes/process.h>
#include <varve/processes/schedule.h>
#include <varve/store/open.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

struct Credited {
    std::int64_t cents = 0;
};

/// For each deposit it gives a command, and records an event of its own.
struct GiveBonus {
    static constexpr std::string_view name = "bonus";
    using Event = std::variant<Credited>;
    using ListensTo = varve::EventsOf<Account>;

    std::int64_t cents = 0;

    void apply(const Credited& e) { cents += e.cents; }
    static std::optional<std::string> on(const Deposited&, const varve::EventContext& c) {
        return std::string{c.aggregate_id()};
    }
    void react(const Deposited& e, varve::Reaction& r) const {
        r.execute<Account>(r.input().aggregate_id(), Withdraw{1});
        r.record(Credited{e.cents});
    }
};

/// A command each, by one thread.
double deposit(varve::Application& bank, int count) {
    return count / seconds([&] {
               for (int i = 0; i < count; ++i) bank.execute<Account>(std::to_string(i % accounts), Deposit{1}).value();
           });
}

Figure react(const Plan& plan, const std::string& name, const std::string& url, int events) {
    Figure figure{
        .name = name + "_reactions", .unit = "reactions/s", .raw = "the commands that cause them, one thread"};
    if (!plan.wants(figure.name)) return figure;
    varve::Application bank{varve::open(url), {.sweep = false}};
    figure.raw_rate = deposit(bank, events);
    figure.rate = events / seconds([&] {
                      varve::run<GiveBonus>(bank);
                      if (!bank.wait_for(varve::process_name<GiveBonus>(), {}, std::chrono::minutes{10}))
                          throw std::runtime_error("it does not react");
                  });
    std::int64_t credited = 0;
    for (int id = 0; id < accounts; ++id) credited += bank.load<GiveBonus>(std::to_string(id)).state.cents;
    if (credited != events) throw std::runtime_error("it has missed events, or reacted to some twice");
    return figure;
}

void sleep(varve::Application& bank, varve::Duration time) {
    bank.runtime().clock.get().sleep_for(time);
}

/// Commands that are all due already; `waiting`: besides so many that are not.
Figure fire(const Plan& plan, const std::string& name, const std::string& url, int timers, int waiting) {
    Figure figure{.name = name + "_timers_fired" + (waiting > 0 ? "_beside_" + std::to_string(waiting) : ""),
                  .unit = "timers/s",
                  .raw = "such commands at once, one thread"};
    if (!plan.wants(figure.name)) return figure;
    varve::Application bank{varve::open(url), {.sweep = false}};
    figure.raw_rate = deposit(bank, timers);
    const auto set = [&](int count, varve::Duration due_in) {
        for (int first = 0; first < count; first += 100) {
            bank.transact([&](varve::Transaction& tx) {
                    for (int i = first; i < first + 100; ++i)
                        varve::schedule<Account>(tx, std::to_string(i % accounts), Deposit{1}, tx.now() + due_in);
                })
                .value();
        }
    };
    set(waiting, std::chrono::hours{48});
    set(timers, varve::Duration{0});
    const auto deposited = [&] {
        std::int64_t sum = 0;
        for (int id = 0; id < accounts; ++id) sum += bank.load<Account>(std::to_string(id)).state.balance;
        return sum;
    };
    figure.rate = timers / seconds([&] {
                      varve::run_scheduled<Account, Deposit>(bank);
                      while (deposited() < 2 * timers) sleep(bank, std::chrono::milliseconds{1});
                  });
    return figure;
}

struct Asked {
    std::int64_t after_us = 0;
};
struct Ask {
    std::int64_t after_us = 0;
};
struct Clerk {
    static constexpr std::string_view name = "clerk";
    using Event = std::variant<Asked>;
    void apply(const Asked&) {}
    varve::Decision<Event> decide(const Ask& c) const { return Asked{c.after_us}; }
};
struct Rings {};
struct Late {
    std::int64_t us = 0;
};
/// Notes how late its timers are.
struct Alarm {
    static constexpr std::string_view name = "alarm";
    using Event = std::variant<Late>;
    using ListensTo = varve::EventsOf<Clerk>;
    using Timers = std::variant<Rings>;

    std::vector<double> late_ms = {};

    void apply(const Late& e) { late_ms.push_back(static_cast<double>(e.us) / 1e3); }
    static std::optional<std::string> on(const Asked&, const varve::EventContext&) { return "a"; }
    void react(const Asked& e, varve::Reaction& r) const { r.at(r.now() + varve::Duration{e.after_us}, Rings{}); }
    void react(const Rings&, varve::Reaction& r) const { r.record(Late{(r.now() - r.input().time()).count()}); }
};

/// How late a timer is that is set 10 to 60 ms ahead: the 99th of a hundred.
Figure lateness(const Plan& plan, const std::string& name, const std::string& url) {
    constexpr std::size_t timers = 200;
    Figure figure{.name = name + "_timer_late_p99", .unit = "ms", .raw = "a thread that sleeps so long"};
    if (!plan.wants(figure.name)) return figure;
    varve::Application bank{varve::open(url), {.sweep = false}};
    varve::Clock& clock = bank.runtime().clock;
    varve::run<Alarm>(bank);
    std::vector<double> slept;
    for (std::size_t i = 0; i < timers; ++i) {
        const std::int64_t after_us = 10'000 + static_cast<std::int64_t>(i * 37 % 50) * 1000;
        bank.execute<Clerk>("c", Ask{after_us}).value();
        const varve::SteadyTime before = clock.steady_now();
        clock.sleep_for(varve::Duration{after_us});
        slept.push_back(static_cast<double>((clock.steady_now() - before).count() - after_us) / 1e3);
    }
    std::vector<double> late;
    while (late.size() < timers) {
        sleep(bank, std::chrono::milliseconds{10});
        late = bank.load<Alarm>("a").state.late_ms;
    }
    std::ranges::sort(late);
    std::ranges::sort(slept);
    figure.rate = late[timers * 99 / 100];
    figure.raw_rate = slept[timers * 99 / 100];
    return figure;
}

}  // namespace

std::vector<Figure> processes(const Plan& plan) {
    const auto file = [&](const char* name) { return "sqlite:" + (plan.folder / name).string(); };
    std::vector<Figure> figures;
    figures.push_back(react(plan, "memory", "memory:", 20'000));
    figures.push_back(react(plan, "sqlite", file("react.db"), 5'000));
    figures.push_back(fire(plan, "memory", "memory:", 20'000, 0));
    figures.push_back(fire(plan, "memory", "memory:", 20'000, 1'000'000));
    figures.push_back(fire(plan, "sqlite", file("fire.db"), 5'000, 0));
    figures.push_back(lateness(plan, "memory", "memory:"));
    figures.push_back(lateness(plan, "sqlite", file("late.db")));
    std::erase_if(figures, [&](const Figure& figure) { return !plan.wants(figure.name); });
    return figures;
}

}  // namespace bench
