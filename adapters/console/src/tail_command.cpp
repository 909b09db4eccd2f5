#include "console.h"
#include "events.h"
#include "interrupt.h"
#include "output.h"

#include <varve/commands/follower_status.h>

#include <atomic>
#include <exception>
#include <mutex>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

struct Tailed {
    std::string types;
    std::string aggregates;
    std::optional<std::uint64_t> after;
    std::size_t limit = SIZE_MAX;
};

/// Prints what comes, in the thread that hands it over.
class Tail {
  public:
    Tail(const Console& console, std::size_t limit) : console_(console), left_(limit) {}

    void print(std::span<const RecordedEvent> events) {
        for (const RecordedEvent& event : events) {
            if (left_ == 0) return;
            try {
                print_event(console_, event);
            } catch (...) {
                const std::lock_guard lock{mutex_};
                failure_ = std::current_exception();
                left_ = 0;
                return;
            }
            --left_;
        }
    }
    /// Throws what printing has thrown.
    bool is_full() const {
        const std::lock_guard lock{mutex_};
        if (failure_) std::rethrow_exception(failure_);
        return left_ == 0;
    }

  private:
    const Console& console_;
    std::atomic<std::size_t> left_;
    mutable std::mutex mutex_;
    std::exception_ptr failure_;
};

int follow(Console& console, const Tailed& asked) {
    constexpr auto look_after = std::chrono::milliseconds{50};
    const Interrupt interrupt;
    Application& application = console.application();
    Tail tail{console, asked.limit};
    SubscribeOptions options{.aggregates = split(asked.aggregates, ','), .types = split(asked.types, ',')};
    options.start_at = asked.after ? StartAt::beginning : StartAt::end;
    options.after = asked.after.value_or(0);
    options.ephemeral = true;
    const std::string name = "varve tail";
    application.subscribe(
        name, [&](std::span<const RecordedEvent> events) { tail.print(events); }, options);
    std::string error;
    while (!interrupt.came() && !tail.is_full() && error.empty()) {
        for (const FollowerStatus& status : application.followers()) {
            if (status.name == name && status.state == FollowerStatus::State::stopped) error = status.error;
        }
        application.runtime().clock.get().sleep_for(look_after);
    }
    application.unfollow(name);
    if (!error.empty()) throw CorruptionError(error);
    return done;
}

}  // namespace

void add_tail_command(CLI::App& app, Console& console) {
    const auto asked = std::make_shared<Tailed>();
    CLI::App* tail = app.add_subcommand("tail", "Print events as they are committed, until Ctrl-C");
    tail->add_option("--types", asked->types, "only events of these types, with commas between");
    tail->add_option("--aggregates", asked->aggregates, "only those of these aggregates, with commas between");
    tail->add_option("--after", asked->after, "what comes after this position, which --json shows; 0: everything");
    tail->add_option("--limit", asked->limit, "end after so many")->check(CLI::PositiveNumber);
    tail->callback([&console, asked] { console.chosen = [&console, asked] { return follow(console, *asked); }; });
}

}  // namespace varve::console
