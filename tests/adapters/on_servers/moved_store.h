// A store that moves to a server, and from there to another store.

#pragma once

#include "support/account.h"

#include <varve/events/event_store.h>
#include <varve/operations/archive.h>
#include <varve/operations/check.h>
#include <varve/operations/copy.h>
#include <varve/store/item_store.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace varve::on_servers {

using namespace account;

/// Events that a subscription has been handed, of an application that goes on where another one was.
class Watcher {
  public:
    explicit Watcher(Application& bank) : bank_(bank) {
        bank.subscribe("watch", [this](std::span<const RecordedEvent> events) { seen_ += events.size(); });
    }
    std::size_t seen() {
        EXPECT_TRUE(bank_.wait_for("watch", {}, std::chrono::seconds{60}));
        return seen_;
    }

  private:
    Application& bank_;
    std::atomic<std::size_t> seen_ = 0;
};

inline void fill(Application& bank) {
    bank.project<Account, ProjectBalance>();
    for (int i = 0; i < 30; ++i)
        bank.execute<Account>("customer-" + std::to_string(i % 7), Deposit{10}, {.command_id = "c" + std::to_string(i)})
            .value();
}

/// All of it is there: events with their ids, rows, command ids, and where the subscription was.
inline void expect_to_go_on(const std::shared_ptr<store::ItemStore>& store, const Stream& was, std::size_t seen_since) {
    Application bank{store};
    bank.project<Account, ProjectBalance>();
    const Stream is = bank.history<Account>("customer-1");
    ASSERT_EQ(is.events.size(), was.events.size());
    for (std::size_t i = 0; i < is.events.size(); ++i) EXPECT_EQ(is.events[i].id, was.events[i].id);
    EXPECT_EQ(bank.rows<Balance>().get("customer-1"), (Balance{50}));
    EXPECT_TRUE(bank.execute<Account>("customer-1", Deposit{10}, {.command_id = "c1"}).value().repeated);
    EXPECT_TRUE(operations::check(bank).holds());
    Watcher watcher{bank};
    EXPECT_EQ(watcher.seen(), seen_since) << "events came once more, or were left out";
}

inline void expect_a_store_to_move_to(const std::shared_ptr<store::ItemStore>& server) {
    const auto old = open("memory:");
    Stream was;
    {
        Application bank{old};
        fill(bank);
        Watcher watcher{bank};
        EXPECT_EQ(watcher.seen(), 30u);
        was = bank.history<Account>("customer-1");
    }
    {
        Application bank{old};
        bank.project<Account, ProjectBalance>();
        bank.execute<Account>("customer-2", Deposit{10}).value();
    }
    const operations::Copied copied = operations::copy_store(*old, *server);
    EXPECT_TRUE(copied.differences.empty());
    ASSERT_TRUE(copied.moved.is_complete);
    expect_to_go_on(server, was, 1);

    std::stringstream file;
    ASSERT_TRUE(operations::export_store(*server, file).is_complete);
    const auto young = open("memory:");
    ASSERT_TRUE(operations::import_store(file, *young).is_complete);
    expect_to_go_on(young, was, 0);
}

}  // namespace varve::on_servers
