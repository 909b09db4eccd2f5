// Commands over a network that does what it likes: each happens exactly once, or never, or is told to be in doubt.

#pragma once

#include "support/account.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/seeded_random.h>

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace varve::on_servers {

using namespace account;

/// How often an account was paid from.
struct Payments {
    static constexpr std::string_view table = "payments";
    std::int64_t count = 0;
};

constexpr int accounts = 9;
constexpr int threads = 3;
constexpr std::int64_t start_cents = 1'000'000;

inline std::string id_of(std::uint64_t i) {
    return std::to_string(i % accounts);
}

/// Deposits, some under an id, and transfers, some with a row.
enum class Work { deposit, deposit_once, transfer, transfer_with_row };

struct Told {
    enum class What { done, nothing, in_doubt } what;
    TransactionHandle handle = {};  ///< to ask for what became of it
    std::string why = {};           ///< nothing was done
};

struct Command {
    Work work;
    std::string name;
    std::string from;
    std::string to;
    Told told;
};

/// Executes commands until enough has been done to them.
class Worker {
  public:
    Worker(Application& bank, std::function<bool()> is_enough, std::uint64_t seed)
        : bank_(bank), is_enough_(std::move(is_enough)), random_(seed), seed_(seed) {}

    void run() {
        constexpr int commands_max = 5'000;
        for (int i = 0; i < commands_max && !is_enough_(); ++i) {
            const std::uint64_t from = random_.next() % accounts;
            Command command{.work = static_cast<Work>(random_.next() % 4),
                            .name = std::to_string(seed_) + "." + std::to_string(i),
                            .from = id_of(from),
                            .to = id_of(from + 1 + random_.next() % (accounts - 1)),
                            .told = {}};
            command.told = execute(command);
            commands.push_back(std::move(command));
        }
    }

    std::vector<Command> commands;

  private:
    Told execute(const Command& command) {
        constexpr int tries_max = 100;
        for (int i = 0;; ++i) {
            try {
                EXPECT_TRUE(attempt(command)) << command.name;
                return {.what = Told::What::done};
            } catch (const InDoubtError& error) {
                // Under its id a command may be repeated.
                if (command.work != Work::deposit_once || i == tries_max)
                    return {.what = Told::What::in_doubt, .handle = error.handle()};
            } catch (const Error& error) {
                EXPECT_TRUE(error.kind() == ErrorKind::conflict || error.kind() == ErrorKind::unavailable)
                    << error.what();
                // What was in doubt before may have been done then.
                if (i > 0) return {.what = Told::What::in_doubt};
                return {.what = Told::What::nothing, .why = error.what()};
            }
        }
    }

    Outcome attempt(const Command& command) {
        CommandOptions options{.correlation = command.name};
        if (command.work == Work::deposit_once) options.command_id = command.name;
        if (command.work == Work::deposit || command.work == Work::deposit_once)
            return bank_.execute<Account>(command.to, Deposit{1}, options);
        return bank_.transact(
            [&](Transaction& tx) {
                tx.execute<Account>(command.from, Withdraw{1});
                tx.execute<Account>(command.to, Deposit{1});
                if (command.work == Work::transfer_with_row)
                    tx.rows<Payments>().update(command.from, [](Payments& row) { ++row.count; });
            },
            options);
    }

    Application& bank_;
    const std::function<bool()> is_enough_;
    testing::SeededRandom random_;
    const std::uint64_t seed_;
};

/// How often a command's events are in each account, as a client sees it that no fault disturbs.
inline std::map<std::string, std::map<std::string, int>> found_in(Application& bank) {
    std::map<std::string, std::map<std::string, int>> found;
    for (int i = 0; i < accounts; ++i) {
        for (const RecordedEvent& event : bank.history<Account>(id_of(i)).events)
            ++found[event.metadata->correlation][id_of(i)];
    }
    return found;
}

inline std::map<std::string, int> events_of(const Command& command) {
    if (command.work == Work::deposit || command.work == Work::deposit_once) return {{command.to, 1}};
    return {{command.from, 1}, {command.to, 1}};
}

/// VARVE_SEED, or 1.
inline std::uint64_t seed() {
    const char* text = std::getenv("VARVE_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

/// How a run of the suite FaultyNetwork is repeated.
inline std::string replay() {
    const std::string number = std::to_string(seed());
    return "seed=" + number + " replay: VARVE_SEED=" + number + " tests/run FaultyNetwork";
}

/// What happens to the request of this number, of `kinds` faults of which 0 is none and the last one costs a client's
/// whole patience: so it comes only once in `silent_every`. The seed and the number decide, whichever thread asks.
inline std::size_t drawn_fault(std::size_t number, std::size_t kinds, std::size_t opening, std::size_t silent_every) {
    if (number < opening) return 0;
    if (number % silent_every == silent_every / 2) return kinds - 1;
    testing::SeededRandom random{seed() * 1'000'003 + number};
    if (!random.chance(0.25)) return 0;
    return 1 + random.next() % (kinds - 2);
}

/// Opens the accounts, by a client that no fault disturbs.
inline void open_accounts(Application& clean) {
    for (int i = 0; i < accounts; ++i) ASSERT_TRUE(clean.execute<Account>(id_of(i), Deposit{start_cents}));
    clean.rows<Payments>();
}

/// Runs workers on threads until `is_enough`; they execute on `bank`.
inline std::deque<Worker> run_workers(Application& bank, const std::function<bool()>& is_enough, std::uint64_t seed) {
    std::deque<Worker> workers;
    for (int i = 0; i < threads; ++i)
        workers.emplace_back(bank, is_enough, seed * threads + static_cast<std::uint64_t>(i));
    std::vector<std::jthread> running;
    for (Worker& worker : workers) running.emplace_back([&worker] { worker.run(); });
    running.clear();
    return workers;
}

/// What the commands were told is true of what is found by a client that no fault disturbs.
inline void expect_told_truly(Application& clean, const std::deque<Worker>& workers) {
    std::map<Told::What, int> told;
    std::map<std::string, std::int64_t> payments;
    std::map<const Command*, transactions::Verdict> verdicts;
    for (const Worker& worker : workers) {
        for (const Command& command : worker.commands) {
            if (!command.told.handle.empty()) verdicts[&command] = clean.resolve(command.told.handle);
        }
    }
    const auto found = found_in(clean);
    for (const Worker& worker : workers) {
        for (const Command& command : worker.commands) {
            ++told[command.told.what];
            const auto events = found.find(command.name);
            const bool there = events != found.end();
            if (there) {
                EXPECT_EQ(events->second, events_of(command)) << command.name;
                if (command.work == Work::transfer_with_row) ++payments[command.from];
            }
            if (command.told.what != Told::What::in_doubt) {
                EXPECT_EQ(there, command.told.what == Told::What::done)
                    << command.name << " (work " << static_cast<int>(command.work) << "): " << command.told.why;
            }
            if (const auto verdict = verdicts.find(&command); verdict != verdicts.end()) {
                EXPECT_NE(verdict->second, transactions::Verdict::undecided) << command.name;
                EXPECT_EQ(there, verdict->second == transactions::Verdict::committed) << command.name;
            }
        }
    }
    for (int i = 0; i < accounts; ++i) {
        const auto row = clean.rows<Payments>().get(id_of(i));
        EXPECT_EQ(row ? row->count : 0, payments[id_of(i)]) << id_of(i);
    }
    std::cout << told[Told::What::done] << " commands done, " << told[Told::What::nothing] << " not, "
              << told[Told::What::in_doubt] << " in doubt\n";
    EXPECT_GT(told[Told::What::done], told[Told::What::nothing] + told[Told::What::in_doubt]);
}

}  // namespace varve::on_servers
