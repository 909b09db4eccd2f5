#pragma once

#include "support/account.h"
#include "support/dying_store.h"

#include <varve/commands/follower_status.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/recorded_log.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

/// What the tests of followers share.
namespace varve {

using namespace account;
using namespace std::chrono_literals;

/// What everybody has deposited, and how often.
struct Turnover {
    static constexpr std::string_view table = "turnover";
    std::int64_t cents = 0;
    std::int64_t deposits = 0;

    bool operator==(const Turnover&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Turnover& turnover) {
    return out << turnover.cents << " in " << turnover.deposits;
}

struct SumUp {
    static constexpr std::string_view name = "turnover";
    void operator()(const Deposited& e, ProjectionContext& context) const {
        for (const std::string_view key : {context.aggregate_id(), std::string_view{"all"}}) {
            context.rows<Turnover>().update(key, [&](Turnover& row) {
                row.cents += e.cents;
                ++row.deposits;
            });
        }
    }
};

inline constexpr std::int64_t poison = 13;

/// Cannot take 13 until it is mended.
struct Superstitious {
    static constexpr std::string_view name = "turnover";
    std::shared_ptr<std::atomic<bool>> is_mended = std::make_shared<std::atomic<bool>>(false);

    void operator()(const Deposited& e, ProjectionContext& context) const {
        if (e.cents == poison && !*is_mended) throw std::runtime_error("13 is not for us");
        SumUp{}(e, context);
    }
};

/// What a handler has been given.
class Inbox {
  public:
    void operator()(std::span<const RecordedEvent> events) {
        {
            const std::lock_guard lock{mutex_};
            for (const RecordedEvent& event : events) {
                lines_.push_back(event.stream + "/" + std::to_string(event.version) + " " + event.event.type);
                positions_.push_back(event.position);
            }
        }
        arrived_.notify_all();
    }
    std::vector<std::string> wait_for(std::size_t count) {
        std::unique_lock lock{mutex_};
        arrived_.wait(lock, [&] { return lines_.size() >= count; });
        return lines_;
    }
    std::vector<std::uint64_t> positions() {
        const std::lock_guard lock{mutex_};
        return positions_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::vector<std::string> lines_;
    std::vector<std::uint64_t> positions_;
};

using Lines = std::vector<std::string>;

inline constexpr Duration patience = 240s;  // nobody waits so long; it is for slow machines

struct Following : ::testing::Test {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    testing::RecordedLog log;

    ApplicationOptions options() { return {.retry = {.time_max = patience}, .runtime = {.log = log}}; }
    static Receipt deposit(Application& bank, std::string_view id, std::int64_t cents) {
        return bank.execute<Account>(id, Deposit{cents}).value();
    }
    /// However fast its time passes.
    static void catch_up(Application& bank, const Receipt& last) {
        while (!bank.wait_for<SumUp>(last, 1s)) std::this_thread::yield();
    }
    static Turnover turnover(Application& bank, std::string_view id = "all") {
        return bank.rows<Turnover>().get(id).value_or(Turnover{});
    }
    static FollowerStatus status(Application& bank) { return bank.followers().front(); }
    /// Lets an owner sum up until its store dies. False: it had summed up so many deposits before.
    bool dies_before(std::int64_t deposits, const std::shared_ptr<DyingStore>& dying, const ApplicationOptions& with,
                     const FollowOptions& how) {
        try {
            Application owner{dying, with};
            owner.follow<Account>(SumUp{}, how);
            Application witness{store, with};
            while (!dying->is_dead()) {
                if (turnover(witness).deposits == deposits) return false;
                std::this_thread::yield();
            }
        } catch (const Error&) {
        }
        return dying->is_dead();
    }
    static FollowerStatus wait_until_stopped(Application& bank, testing::RecordedLog& log) {
        log.wait_for("has stopped");
        while (status(bank).state != FollowerStatus::State::stopped) std::this_thread::yield();
        return status(bank);
    }
};

/// Who waits for another one's lock, or for an answer, waits in this time. One thread's wait is over at once and moves
/// everybody's clock, so nobody is told that it took too long, or was too long ago.
struct FollowingInItsOwnTime : Following {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};

    ApplicationOptions options() {
        return {.retry = {.time_max = 10'000h},
                .transactions = {.retention = 10'000h, .answer_time_max = 1s},
                .sweep = false,
                .runtime = {.clock = clock, .log = log}};
    }
};

inline void wait_until(const std::function<bool()>& is_so) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!is_so()) {
        ASSERT_LT(std::chrono::steady_clock::now(), until) << "it never comes to that";
        std::this_thread::yield();
    }
}

template <class E, class Call>
std::string refusal(Call call) {
    try {
        call();
    } catch (const E& error) {
        return error.what();
    }
    return "nothing was refused";
}

}  // namespace varve
