#pragma once

#include "support/lending.h"
#include "support/temporary_folder.h"
#include "support/unordered_store.h"

#include <varve/commands/delivery.h>
#include <varve/commands/parked_stream.h>
#include <varve/commands/stream_list.h>
#include <varve/events/event_store.h>
#include <varve/locks/locks.h>
#include <varve/operations/archive.h>
#include <varve/rows/indexes.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/quiet_log.h>
#include <varve/testing/seeded_random.h>
#include <varve/varve.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

/// What the tests of moving share: stores of each kind, and one that has something of everything in it.
namespace varve::operations {

using namespace std::chrono_literals;
constexpr Duration patience = std::chrono::seconds{30};
using Texts = std::vector<std::string>;

struct Paid {
    std::string by;
    std::int64_t cents = 0;
};
struct Pay {
    std::string by;
    std::int64_t cents = 0;
};
struct Slip {  // an effect
    std::string to;
};

struct Till {
    static constexpr std::string_view name = "till";
    static constexpr SnapshotPolicy snapshots{.every_slots = 3};
    using Event = std::variant<Paid>;
    std::int64_t cents = 0;
    void apply(const Paid& e) { cents += e.cents; }
    Decision<Event> decide(const Pay& c) const { return Decision<Event>{Paid{c.by, c.cents}}.effect(Slip{c.by}); }
};

struct Customer {
    static constexpr std::string_view table = "customers";
    std::string email;
    std::int64_t cents = 0;
    using Indexes = varve::Indexes<Unique<&Customer::email>, Index<&Customer::cents>>;
    bool operator==(const Customer&) const = default;
};

struct KeepCustomers {
    void operator()(const Paid& e, ProjectionContext& context) const {
        context.rows<Customer>().update(e.by, [&](Customer& row) {
            row.email = e.by + "@example.org";
            row.cents += e.cents;
        });
    }
};

struct Total {
    static constexpr std::string_view table = "totals";
    static constexpr std::string_view kept_by = "totals";
    std::int64_t payments = 0;
    bool operator==(const Total&) const = default;
};

/// Sets aside whoever pays 13.
struct KeepTotals {
    static constexpr std::string_view name = "totals";
    static constexpr int version = 1;
    void operator()(const Paid& e, ProjectionContext& context) const {
        if (e.cents == 13) throw std::runtime_error("13 is bad luck");
        context.rows<Total>().update("all", [](Total& row) { ++row.payments; });
    }
};

/// A network without faults, for stores that hide what they can do.
struct World {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    testing::SeededRandom random{1};
    testing::Network network{{clock, random}};

    std::shared_ptr<testing::FaultyStore> hidden(std::shared_ptr<store::ItemStore> store,
                                                 const testing::Disguise& disguise) {
        return std::make_shared<testing::FaultyStore>(std::move(store), network, disguise);
    }
};

/// A store of one kind, that may be opened again.
struct AStore {
    std::string kind;
    std::shared_ptr<TemporaryFolder> folder = {};
    std::shared_ptr<World> world = std::make_shared<World>();
    std::shared_ptr<store::ItemStore> store = {};

    explicit AStore(std::string of) : kind(std::move(of)) {
        if (kind == "sqlite") {
            folder = std::make_shared<TemporaryFolder>("moving");
            store = open("sqlite:" + (folder->path() / "store.db").string() + "?synchronous=normal");
            return;
        }
        store = open("memory:");
        if (kind == "log") store = world->hidden(store, {.atomic_writes_max = 0, .no_changes = true});
        if (kind == "atomic_log") store = std::make_shared<UnorderedStore>(store);
        if (kind == "one_by_one") store = world->hidden(store, {.atomic_writes_max = 0});
    }
    bool has_log() const { return kind == "log" || kind == "atomic_log"; }
};

inline ApplicationOptions options(ApplicationOptions with = {}) {
    static testing::QuietLog log;
    with.sweep_interval = 10ms;
    with.transactions.lease = 300ms;
    with.scan = {.page_interval = 1ms, .pause = 5ms};
    with.runtime.log = log;
    return with;
}

/// What somebody outside was handed.
struct Handed {
    std::mutex mutex;
    Texts ids;

    void operator()(std::span<const RecordedEvent> events) {
        const std::lock_guard lock{mutex};
        for (const RecordedEvent& event : events) ids.push_back(event.id);
    }
    Texts all() {
        const std::lock_guard lock{mutex};
        return ids;
    }
};

inline std::string exported(store::ItemStore& store, const ExportOptions& options = {}) {
    std::ostringstream file;
    const Moved moved = export_store(store, file, options);
    EXPECT_TRUE(moved.is_complete);
    EXPECT_EQ(moved.bytes, file.str().size());
    return file.str();
}

/// When all that applications have left is settled: by one that is there for a lease.
inline std::string exported_when_quiet(store::ItemStore& store) {
    const std::shared_ptr<store::ItemStore> shared{&store, [](auto*) {}};
    auto settles = std::make_unique<Application>(shared, options());
    for (int i = 0;; ++i) {
        try {
            static_cast<void>(exported(store));
            settles.reset();
            return exported(store);
        } catch (const ConflictError& error) {
            if (i == 300) throw;
            if (!settles) settles = std::make_unique<Application>(shared, options());
        }
        std::this_thread::sleep_for(50ms);
    }
}

inline Moved import_text(const std::string& text, store::ItemStore& store, const ImportOptions& options = {}) {
    std::istringstream file{text};
    return import_store(file, store, options);
}

/// Without the line's number and sum, which depend on what is before, and the header.
inline Texts members(const std::string& text) {
    Texts lines;
    std::istringstream file{text};
    for (std::string line; std::getline(file, line);) {
        const std::size_t begin = line.find(',') + 1;
        line = line.substr(begin, line.rfind(",\"sum\":") - begin);
        if (!line.starts_with("\"header\"") && !line.starts_with("\"feed\"")) lines.push_back(line);
    }
    return lines;
}
/// Slots in their order, and all the rest in any.
inline std::pair<Texts, Texts> sections(const std::string& text) {
    std::pair<Texts, Texts> sections;
    for (std::string& line : members(text))
        (line.starts_with("\"slot\"") ? sections.first : sections.second).push_back(std::move(line));
    std::ranges::sort(sections.second);
    return sections;
}

/// All events, in their order.
inline std::vector<RecordedEvent> events_of(const std::shared_ptr<store::ItemStore>& store) {
    Application reader{store, options()};
    std::vector<RecordedEvent> events;
    std::mutex mutex;
    reader.subscribe("reads_all",
                     [&](std::span<const RecordedEvent> some) {
                         const std::lock_guard lock{mutex};
                         events.insert(events.end(), some.begin(), some.end());
                     },
                     {.ephemeral = true});
    EXPECT_TRUE(reader.wait_for("reads_all", Receipt{}, patience));
    reader.unfollow("reads_all");
    return events;
}

/// A store in which there is something of everything.
struct Shop {
    Texts handed = {};       // to "search", which has not had all
    Texts slips = {};        // delivered
    locks::Fence fence = 0;  // of "month-end"
    Receipt receipt = {};    // of the command "order-1"

    void fill(const std::shared_ptr<store::ItemStore>& store) {
        {
            Application app{store, options()};
            app.project<Till, KeepCustomers>();
            Handed search;
            app.subscribe("search", std::ref(search));
            std::mutex mutex;
            deliver<Slip>(app, [&](const Slip&, const Delivery& delivery) {
                const std::lock_guard lock{mutex};
                slips.push_back(delivery.effect.id);
            });
            app.follow<Till>(KeepTotals{}, {.on_poison = FollowOptions::OnPoison::park});
            run<lending::Reminder>(app);
            receipt = app.execute<Till>("a", Pay{"ada", 500}, {.command_id = "order-1"}).value();
            for (int i = 0; i < 4; ++i)
                app.execute<Till>("a", Pay{"ada", 100}, {.command_id = "o" + std::to_string(i)}).value();
            app.execute<Till>("unlucky", Pay{"bea", 13}).value();
            app.execute<lending::Book>("dune", lending::Lend{.seconds = 3600 * 24 * 365}).value();
            Receipt last = app.execute<lending::Book>("emma", lending::Lend{.seconds = 0}).value();
            EXPECT_TRUE(app.wait_for("$process-reminder", last, patience));
            while (app.load<lending::Reminder>("emma").state.reminded.empty()) std::this_thread::sleep_for(10ms);
            last = app.transact(
                          [](Transaction& tx) {
                              tx.execute<Till>("c", Pay{"cor", 7});
                          },
                          {.correlation = "talk", .headers = {{"who", "me"}}})
                       .value();
            EXPECT_TRUE(app.wait_for("search", last, patience));
            EXPECT_TRUE(app.wait_for(delivery_name<Slip>(), last, patience));
            EXPECT_TRUE(app.wait_for<KeepTotals>(last, patience));
            app.unfollow("search");
            handed = search.all();
            for (int i = 0; i < 2; ++i) {
                Locks locks{store};
                fence = locks.acquire("month-end").fence();
            }
            static_cast<void>(app.streams(""));
        }
        ApplicationOptions by_protocol = options();
        by_protocol.transactions.strategy = transactions::Strategy::protocol;
        Application late{store, by_protocol};  // what it commits nobody follows yet
        late.project<Till, KeepCustomers>();
        for (int i = 0; i < 3; ++i) {
            late.transact(
                    [](Transaction& tx) {
                        tx.execute<Till>("c", Pay{"cor", 1});
                        tx.execute<Till>("d", Pay{"dan", 2});
                    },
                    {.command_id = "both-" + std::to_string(i)})
                .value();
        }
        late.transact([](Transaction& tx) { tx.rows<Customer>().put("gone", {"gone@example.org", 1}); }).value();
        late.transact([](Transaction& tx) { tx.rows<Customer>().erase("gone"); }).value();
    }

    /// In a store that it was moved to all goes on where it was.
    void goes_on(const std::shared_ptr<store::ItemStore>& store) const {
        Texts all;
        for (const RecordedEvent& event : events_of(store)) all.push_back(event.id);
        Application app{store, options()};
        app.project<Till, KeepCustomers>();
        EXPECT_EQ(app.execute<Till>("a", Pay{"ada", 500}, {.command_id = "order-1"}).value().written, receipt.written);
        EXPECT_EQ(app.rows<Customer>().find<&Customer::email>("ada@example.org")->value,
                  (Customer{"ada@example.org", 900}));
        EXPECT_FALSE(app.rows<Customer>().get("gone"));
        const Outcome taken = app.transact([](Transaction& tx) {
            tx.rows<Customer>().put("eve", {"ada@example.org", 1});
        });
        EXPECT_FALSE(taken) << "the address is somebody else's";
        EXPECT_TRUE(app.transact([](Transaction& tx) { tx.rows<Customer>().put("gus", {"gone@example.org", 1}); }));

        Handed search;
        app.subscribe("search", std::ref(search));
        EXPECT_TRUE(app.wait_for("search", Receipt{}, patience));
        Texts both = handed;
        for (std::string& id : search.all()) both.push_back(std::move(id));
        EXPECT_EQ(both, all) << "each event once, in their order";
        EXPECT_LT(handed.size(), all.size());

        std::mutex mutex;
        Texts more = slips;
        deliver<Slip>(app, [&](const Slip&, const Delivery& delivery) {
            const std::lock_guard lock{mutex};
            more.push_back(delivery.effect.id);
        });
        run<lending::Reminder>(app);
        app.follow<Till>(KeepTotals{}, {.on_poison = FollowOptions::OnPoison::park});
        EXPECT_TRUE(app.wait_for(delivery_name<Slip>(), Receipt{}, patience));
        EXPECT_TRUE(app.wait_for("$process-reminder", Receipt{}, patience));
        const Receipt last = app.execute<Till>("a", Pay{"ada", 1}).value();
        EXPECT_TRUE(app.wait_for(delivery_name<Slip>(), last, patience));
        EXPECT_TRUE(app.wait_for<KeepTotals>(last, patience));
        {
            const std::lock_guard lock{mutex};
            std::ranges::sort(more);
            EXPECT_EQ(std::ranges::adjacent_find(more), more.end()) << "none is delivered twice";
            EXPECT_EQ(more.size(), 14u);
        }
        EXPECT_EQ(app.rows<Total>().get("all")->payments, 13);
        EXPECT_EQ(app.parked("totals").size(), 1u);
        EXPECT_EQ(app.load<lending::Reminder>("emma").state.reminded.size(), 1u) << "no timer fires twice";
        EXPECT_FALSE(app.load<lending::Reminder>("dune").state.timer.empty());
        EXPECT_EQ(app.load<Till>("a").state.cents, 901);
        EXPECT_EQ(app.load<Till>("a").version, 6);
        EXPECT_GE(app.streams("").streams.size(), 7u);
        Locks locks{store};
        EXPECT_GT(locks.acquire("month-end").fence(), fence);
    }
};

}  // namespace varve::operations
