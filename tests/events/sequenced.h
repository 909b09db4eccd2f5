#pragma once

#include "feed/feed.h"
#include "feed/sequencer.h"
#include "support/account.h"
#include "support/unordered_store.h"

#include <varve/testing/manual_world.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace varve::feed {

using namespace account;
using namespace std::chrono_literals;
using namespace transactions;

using Places = std::vector<std::string>;

/// "account-alice/3", in the order of the log.
inline Places places(store::ItemStore& store, std::size_t at_a_time = 3) {
    Places places;
    const Feed feed{store};
    store::Position expected = 1;
    for (Batch batch = feed.read(0, at_a_time); !batch.is_last; batch = feed.read(batch.end, at_a_time)) {
        for (const RecordedEvent& event : batch.events) {
            if (event.index > 0) continue;
            EXPECT_EQ(event.position, expected++);
            places.push_back(event.stream + "/" + std::to_string(event.version));
        }
    }
    EXPECT_EQ(feed.end(), expected - 1);
    return places;
}

/// In all shards that there may be.
inline std::size_t standing_bells(store::ItemStore& store) {
    std::size_t bells = 0;
    for (unsigned shard = 0; shard < bell_shards_max; ++shard) bells += store.query(bells_in(shard)).records.size();
    return bells;
}

/// What is committed: the same, in another order.
inline Places committed(store::ItemStore& store) {
    Places slots;
    store::Scan scan{.table = "events"};
    do {
        store::Page page = store.scan(scan);
        for (const store::Record& record : page.records) {
            if (is_internal(record.key.partition) || committed_by(record.item) == nullptr) continue;
            slots.push_back(record.key.partition + "/" + std::to_string(version_of(record.key)));
        }
        scan.next = std::move(page.next);
    } while (scan.next);
    std::ranges::sort(slots);
    return slots;
}

inline void expect_each_once_in_order(store::ItemStore& store) {
    const Places seen = places(store);
    std::map<std::string, Version> last;
    for (const std::string& place : seen) {
        const std::string stream = place.substr(0, place.rfind('/'));
        EXPECT_EQ(place, stream + "/" + std::to_string(++last[stream]));
    }
    Places sorted = seen;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, committed(store));
}

struct Sequenced : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<store::ItemStore> memory = open("memory:");
    std::shared_ptr<store::ItemStore> store = std::make_shared<UnorderedStore>(memory);

    Coordinator coordinator{*store, {.clock = clock}, later, {}, 1};
    Sequencer sequencer{coordinator};

    Sequenced() {
        decide_on_bells(*store, {});
        store->ensure_table(events_table());
        ensure_log_tables(*store);
    }
    void put_in_order() {
        while (sequencer.round()) {
        }
    }
    static Receipt deposit(Application& bank, const std::string& id, const CommandOptions& options = {}) {
        return bank.execute<Account>(id, Deposit{1}, options).value();
    }
    static Receipt deposit_together(Application& bank, const std::vector<std::string>& ids) {
        return bank
            .transact([&](Transaction& tx) {
                for (const std::string& id : ids) tx.execute<Account>(id, Deposit{1});
            })
            .value();
    }
    ApplicationOptions by(Strategy strategy) { return options({.transactions = {.strategy = strategy}}); }
};

}  // namespace varve::feed
