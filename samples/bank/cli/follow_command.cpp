#include "../money.h"
#include "cli.h"
#include "interrupt.h"
#include "text.h"

#include <varve/commands/follower_status.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>

#include <CLI/CLI.hpp>

namespace bank {

namespace {

struct FollowOptions {
    std::uint64_t from = 0;
    std::size_t count = 0;
};

struct FollowedEvent {
    std::uint64_t position = 0;
    std::string account;
    varve::Version version = 0;
    std::size_t index = 0;
    varve::Time time = {};
    std::string type;
    varve::json::Raw data;
};

std::string line_of(const Cli& cli, const varve::RecordedEvent& e) {
    const std::string account{varve::id_of(e.stream)};
    if (cli.json) {
        return varve::json::encode(FollowedEvent{.position = e.position,
                                                 .account = account,
                                                 .version = e.version,
                                                 .index = e.index,
                                                 .time = e.time,
                                                 .type = e.event.type,
                                                 .data = {e.event.data}});
    }
    return aligned(std::to_string(e.position), 8) + "  " + short_time(e.time) + "  " +
           padded(account + " " + std::to_string(e.version), 24) + "  " + e.event.type + " " + e.event.data;
}

/// Prints on the follower's thread, until it has printed enough, or cannot.
class Tail {
  public:
    Tail(const Cli& cli, std::size_t count) : cli_(cli), count_(count) {}

    void print(std::span<const varve::RecordedEvent> events) {
        const std::lock_guard lock{mutex_};
        try {
            for (const varve::RecordedEvent& event : events) {
                if (is_over_) return;
                print_line(line_of(cli_, event));
                is_over_ = ++printed_ == count_;
            }
        } catch (...) {
            failure_ = std::current_exception();
            is_over_ = true;
        }
        changed_.notify_all();
    }
    /// For a while. Throws what printing has thrown.
    bool is_over(std::chrono::milliseconds wait) {
        std::unique_lock lock{mutex_};
        changed_.wait_for(lock, wait, [&] { return is_over_; });
        if (failure_) std::rethrow_exception(failure_);
        return is_over_;
    }

  private:
    const Cli& cli_;
    const std::size_t count_;  // 0: without end
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t printed_ = 0;
    bool is_over_ = false;
    std::exception_ptr failure_;
};

int follow(const Cli& cli, const FollowOptions& options) {
    constexpr auto look_after = std::chrono::milliseconds{100};
    const Interrupt interrupt;
    Tail tail{cli, options.count};  // outlives whoever calls it
    const auto bank = cli.open();
    varve::SubscribeOptions from{.aggregates = {std::string{Account::name}}, .ephemeral = true};
    if (options.from == 0) {
        from.start_at = varve::StartAt::end;
    } else {
        from.after = options.from - 1;
    }
    bank->subscribe(
        "bank follow", [&](std::span<const varve::RecordedEvent> events) { tail.print(events); }, from);
    while (!tail.is_over(look_after)) {
        if (interrupt.came()) return exit_done;  // that is how a tail without end ends
        const varve::FollowerStatus status = bank->followers().front();
        if (status.state == varve::FollowerStatus::State::stopped) throw varve::CorruptionError(status.error);
    }
    return exit_done;
}

}  // namespace

void add_follow_command(CLI::App& app, Cli& cli) {
    const auto options = std::make_shared<FollowOptions>();
    CLI::App* command =
        app.add_subcommand("follow", "Print events as they are committed, each with its position, until Ctrl-C");
    command->add_option("--from", options->from, "from this position on, 1 for all; else only what is new")
        ->check(CLI::PositiveNumber);
    command->add_option("--count", options->count, "stop after so many events")->check(CLI::PositiveNumber);
    command->callback([&cli, options] { cli.chosen = [&cli, options] { return follow(cli, *options); }; });
}

}  // namespace bank
