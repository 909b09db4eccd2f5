// Commands over a network that loses, repeats, delays and damages what passes: each happens exactly once, or never, or
// is told to be in doubt.

#include "each_server.h"
#include "fault_proxy.h"
#include "support/account.h"

#include <varve/dynamodb/dynamodb.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/seeded_random.h>

#include <algorithm>
#include <deque>
#include <map>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using namespace account;

/// How often an account was paid from.
struct Payments {
    static constexpr std::string_view table = "payments";
    std::int64_t count = 0;
};

constexpr int accounts = 9;
constexpr int threads = 3;
constexpr std::int64_t start_cents = 1'000'000;

std::string id_of(std::uint64_t i) {
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

/// Executes commands until the proxy has done enough to them.
class Worker {
  public:
    Worker(Application& bank, const FaultProxy& proxy, std::size_t faults, std::uint64_t seed)
        : bank_(bank), proxy_(proxy), faults_(faults), random_(seed), seed_(seed) {}

    void run() {
        constexpr int commands_max = 5'000;
        for (int i = 0; i < commands_max && proxy_.faults() < faults_; ++i) {
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
    const FaultProxy& proxy_;
    const std::size_t faults_;
    testing::SeededRandom random_;
    const std::uint64_t seed_;
};

class FaultyNetwork : public ::testing::TestWithParam<LocalServer::Kind> {
  protected:
    static std::uint64_t seed() {
        const char* text = std::getenv("VARVE_SEED");
        return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
    }
    static std::string replay() {
        return "seed=" + std::to_string(seed()) + " replay: VARVE_SEED=" + std::to_string(seed()) +
               " tests/run FaultyNetwork";
    }

    void SetUp() override {
        std::cout << "seed=" << seed() << '\n';
        server_ = server_or_skip(GetParam());
        if (!server_) return;
        proxy_.emplace(server_->port(), FaultProxy::Options{.fault = fault_of});
    }

    /// The seed and a request's number decide, whichever thread asks.
    static Fault fault_of(std::size_t number) {
        constexpr std::size_t opening = 10;
        constexpr std::size_t silent_every = 400;  // costs a client's whole patience
        if (number < opening) return Fault::none;
        if (number % silent_every == silent_every / 2) return Fault::silent;
        testing::SeededRandom random{seed() * 1'000'003 + number};
        if (!random.chance(0.25)) return Fault::none;
        return static_cast<Fault>(1 + random.next() % (fault_kinds - 2));
    }

    std::shared_ptr<store::ItemStore> open_through_proxy() {
        return dynamodb::open({.host = proxy_->address(),
                               .prefix = "bank",
                               .timeout = std::chrono::seconds{1},
                               .runtime = {.clock = clock_}});
    }

    void expect_faults(std::size_t at_least) const {
        EXPECT_GE(proxy_->faults(), at_least);
        for (std::size_t i = 1; i < fault_kinds; ++i)
            EXPECT_GE(proxy_->count(static_cast<Fault>(i)), 2U) << described(static_cast<Fault>(i));
    }

    /// How often a command's events are in each account, as a client sees it that no fault disturbs.
    static std::map<std::string, std::map<std::string, int>> found_in(Application& bank) {
        std::map<std::string, std::map<std::string, int>> found;
        for (int i = 0; i < accounts; ++i) {
            for (const RecordedEvent& event : bank.history<Account>(id_of(i)).events)
                ++found[event.metadata->correlation][id_of(i)];
        }
        return found;
    }

    static std::map<std::string, int> events_of(const Command& command) {
        if (command.work == Work::deposit || command.work == Work::deposit_once) return {{command.to, 1}};
        return {{command.from, 1}, {command.to, 1}};
    }

    testing::SeededRandom random_{seed()};
    testing::ManualClock clock_{testing::ManualClock::Mode::auto_advance};
    std::unique_ptr<LocalServer> server_;
    std::optional<FaultProxy> proxy_;
};

INSTANTIATE_TEST_SUITE_P(Each, FaultyNetwork, each_kind(), name_of_kind);

TEST_P(FaultyNetwork, lets_every_command_happen_exactly_once_or_never_or_be_told_in_doubt) {
    SCOPED_TRACE(replay());
    constexpr std::size_t faults = 500;
    Application clean{varve::open(server_->url("bank"))};
    for (int i = 0; i < accounts; ++i) ASSERT_TRUE(clean.execute<Account>(id_of(i), Deposit{start_cents}));
    clean.rows<Payments>();

    std::deque<Worker> workers;
    {
        // What sweeps and puts events in order waits in this clock, too, and so moves it on for the commands.
        Application bank{
            open_through_proxy(),
            {.retry = {.time_max = std::chrono::hours{1000}},
             .transactions = {.retention = std::chrono::hours{3}, .answer_time_max = std::chrono::hours{1}},
             .runtime = {.clock = clock_}}};
        for (int i = 0; i < threads; ++i)
            workers.emplace_back(bank, *proxy_, faults, seed() * threads + static_cast<std::uint64_t>(i));
        std::vector<std::jthread> running;
        for (Worker& worker : workers) running.emplace_back([&worker] { worker.run(); });
    }
    proxy_->heal();
    expect_faults(faults);

    std::map<Told::What, int> told;
    std::map<std::string, std::int64_t> payments;
    std::map<const Command*, transactions::Verdict> verdicts;
    for (Worker& worker : workers) {
        for (const Command& command : worker.commands) {
            if (!command.told.handle.empty()) verdicts[&command] = clean.resolve(command.told.handle);
        }
    }
    const auto found = found_in(clean);
    for (Worker& worker : workers) {
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
    std::cout << proxy_->requests() << " requests, " << proxy_->faults() << " faults; " << told[Told::What::done]
              << " commands done, " << told[Told::What::nothing] << " not, " << told[Told::What::in_doubt]
              << " in doubt\n";
    EXPECT_GT(told[Told::What::done], told[Told::What::nothing] + told[Told::What::in_doubt]);
}

/// What the port answers is true, whatever the network does; each key is written once.
TEST_P(FaultyNetwork, lets_no_write_be_answered_otherwise_than_it_went) {
    SCOPED_TRACE(replay());
    constexpr std::size_t faults = 300;
    constexpr int writes_max = 10'000;
    const store::TableSchema items{
        .name = "items", .partition_attribute = "p", .sort_attribute = "n", .sort = store::SortType::integer};
    const auto key_of = [](int i) { return store::Key{.table = "items", .partition = "a", .sort = i}; };
    const auto item_of = [](int i) { return store::Item{{"value", i}}; };
    const auto clean = varve::open(server_->url("bank"));
    clean->ensure_table(items);
    const auto store = open_through_proxy();
    store->ensure_table(items);

    enum class Must { be_there, be_absent, be_there_or_not };
    struct Batch {
        int first;
        int count;
        std::vector<Must> must;  ///< of each item
    };
    const auto must = [](const Failure& failure) { return failure.in_doubt ? Must::be_there_or_not : Must::be_absent; };
    std::vector<Batch> batches;
    int in_doubt = 0;
    int next = 0;
    while (proxy_->faults() < faults && next < writes_max) {
        Batch batch{.first = next, .count = 1 + static_cast<int>(random_.next() % 4), .must = {}};
        std::vector<store::Write> writes;
        for (int i = 0; i < batch.count; ++i, ++next)
            writes.push_back({key_of(next), store::Put{item_of(next)}, !store::item_exists()});
        for (const store::WriteAnswer& answer : store->write(writes)) {
            const auto* failure = std::get_if<Failure>(&answer);
            // What is delivered twice may be refused by itself.
            if (const auto* refused = std::get_if<store::Refused>(&answer)) {
                EXPECT_EQ(refused->current, item_of(batch.first + static_cast<int>(batch.must.size())));
            }
            batch.must.push_back(failure != nullptr ? must(*failure) : Must::be_there);
        }
        in_doubt += static_cast<int>(std::ranges::count(batch.must, Must::be_there_or_not));
        batches.push_back(std::move(batch));
        try {
            const int known = static_cast<int>(random_.next() % static_cast<std::uint64_t>(next));
            const store::Key key = key_of(known);
            const auto found = store->read({&key, 1}).at(0);
            if (found) {
                EXPECT_EQ(*found, item_of(known));
            }
            store::Query query{.table = "items", .partition = "a", .first = known, .last = known + 20};
            for (const store::Record& record : store->query(query).records)
                EXPECT_EQ(record.item, item_of(static_cast<int>(std::get<std::int64_t>(record.key.sort))));
        } catch (const UnavailableError&) {
        }
    }
    proxy_->heal();
    expect_faults(faults);
    EXPECT_GT(in_doubt, 0);

    for (const Batch& batch : batches) {
        std::vector<store::Key> keys;
        for (int i = 0; i < batch.count; ++i) keys.push_back(key_of(batch.first + i));
        const auto found = clean->read(keys);
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (batch.must[i] == Must::be_there_or_not) continue;
            EXPECT_EQ(found[i].has_value(), batch.must[i] == Must::be_there) << to_string(keys[i]);
        }
    }
    std::cout << proxy_->requests() << " requests, " << proxy_->faults() << " faults; " << next << " writes, "
              << in_doubt << " of them in doubt\n";
}

}  // namespace
}  // namespace varve::dynamodb
