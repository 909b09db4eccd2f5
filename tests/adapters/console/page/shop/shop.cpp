// shop STORE STREAMS: makes a store that has something for each view of the page to show, says "ready", and goes on
// writing until its standard input ends.
#include "support/account.h"

#include <varve/commands/delivery.h>
#include <varve/commands/follower_status.h>
#include <varve/commands/parked_stream.h>
#include <varve/events/event_store.h>
#include <varve/locks/locks.h>
#include <varve/processes/schedule.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace varve {
namespace {

using namespace account;
using namespace std::chrono_literals;

struct SendReceipt {
    std::string to;
};

struct Turnover {
    static constexpr std::string_view table = "turnover";
    static constexpr std::string_view kept_by = "turnover";
    std::int64_t cents = 0;
};

/// Cannot take 13.
struct SumUp {
    static constexpr std::string_view name = "turnover";
    void operator()(const Deposited& e, ProjectionContext& context) const {
        if (e.cents == 13) throw std::runtime_error("13 is unlucky <script>window.hacked = 1</script>");
        context.rows<Turnover>().update("all", [&](Turnover& row) { row.cents += e.cents; });
    }
};

std::string account_name(std::size_t i) {
    std::string digits = std::to_string(i);
    return "account-a" + std::string(7 - std::min<std::size_t>(7, digits.size()), '0') + digits;
}

void make_streams(const std::string& url, std::size_t count) {
    constexpr std::size_t at_once = 200;
    Application bank{open(url), {.sweep = false}};
    for (std::size_t first = 0; first < count; first += at_once) {
        bank.transact([&](Transaction& tx) {
                for (std::size_t i = first; i < std::min(count, first + at_once); ++i)
                    tx.append<Account>(account_name(i).substr(8), {Opened{"Owner " + std::to_string(i)}});
            })
            .value();
    }
}

/// Events that have led to each other, as processes make them.
void talk(EventStore& events) {
    std::string cause;
    for (const char* stream : {"order-7", "payment-7", "parcel-7"}) {
        const Appended appended =
            events
                .append(stream, {{"Begun", 1, R"({"for":"alice","cents":4200})"}}, Expected::none(),
                        {.command_id = {}, .correlation = "order-7-talk", .causation = cause})
                .value();
        cause = appended.write_id + ":" + stream + ":0";
        (void)events.append(stream, {{"Noted", 1, R"({"by":"clerk"})"}}, Expected::any(),
                            {.command_id = {}, .correlation = "order-7-talk", .causation = cause});
    }
}

/// A transaction that was left in the middle: it has claimed bob, and its primary is the next slot of carol.
void leave_behind(store::ItemStore& store) {
    const store::Write claim{.key = {"events", "account-bob", std::int64_t{2}},
                             .action = store::Put{{{"state", "pending"},
                                                   {"epoch", std::int64_t{0}},
                                                   {"write_id", "tx-of-the-dead"},
                                                   {"_tx", "tx-of-the-dead"},
                                                   {"_primary", "account-carol"},
                                                   {"_primary_version", std::int64_t{2}},
                                                   {"_primary_epoch", std::int64_t{0}},
                                                   {"_lease", std::int64_t{1'700'000'000'000'000}},
                                                   {"_priority", std::int64_t{1'700'000'000'000'000}},
                                                   {"time", std::int64_t{1'700'000'000'000'000}},
                                                   {"events", R"([{"type":"Deposited","data":{"cents":1}}])"}}},
                             .condition = {}};
    (void)store.write({&claim, 1});
}

int run(const std::string& url, std::size_t streams) {
    make_streams(url, streams);
    const auto store = open(url);
    Application bank{store, {.sweep = false}};
    bank.execute<Account>("alice", Open{"Alice <img src=x onerror=\"window.hacked = 1\">"}).value();
    for (std::int64_t i = 1; i <= 300; ++i) bank.execute<Account>("alice", Deposit{i}).value();
    bank.transact([&](Transaction& tx) {
            tx.execute<Account>("alice", Deposit{7});
            tx.effect(SendReceipt{"alice@example.org"});
        })
        .value();
    bank.execute<Account>("bob", Deposit{13}).value();
    bank.execute<Account>("carol", Deposit{1}).value();
    (void)bank.events().append(
        "evil-</script><script>window.hacked=1</script>",
        {{"<b>Bold</b>", 1, R"({"text":"<script>window.hacked = 1</script>","id":9007199254740993})"}},
        Expected::none());
    talk(bank.events());
    schedule<Account>(bank, "alice", Deposit{1}, bank.runtime().clock.get().now() + 24h);
    bank.follow<Account>(SumUp{}, {.on_poison = FollowOptions::OnPoison::park});
    deliver<SendReceipt>(bank, [](const SendReceipt&, const Delivery&) { throw Undeliverable("nobody lives there"); });
    const auto is_aside = [&](const char* follower) { return !bank.parked(follower).empty(); };
    while (!is_aside("turnover") || !is_aside("$deliver-SendReceipt")) std::this_thread::yield();
    leave_behind(*store);
    Locks locks{store, {.time_to_live = 1h}};
    const Lock month_end = locks.acquire("month-end");

    std::atomic<bool> is_over = false;
    std::thread load{[&] {
        for (std::size_t i = 0; !is_over; ++i) {
            bank.execute<Account>(account_name(i % std::max<std::size_t>(streams, 1)).substr(8), Deposit{100}).value();
            std::this_thread::sleep_for(2ms);
        }
    }};
    std::puts("ready");
    std::fflush(stdout);
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    is_over = true;
    load.join();
    return 0;
}

}  // namespace
}  // namespace varve

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    return varve::run(argv[1], std::stoul(argv[2]));
}
