#include "commands/lanes.h"

#include "core/assert.h"

#include <varve/core/error.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <new>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>

#include <oneapi/tbb/concurrent_hash_map.h>

namespace varve::detail {
namespace {

/// A wait ends when it is woken. That it looks up from time to time guards against a clock that does not wake.
constexpr Duration longest_sleep = std::chrono::seconds{1};

}  // namespace

/// A command in a lane.
struct Lanes::Entry : Command {
    enum class State { queued, leads, ended };

    Submitted* submitted = nullptr;  // nullptr: somebody waits for it
    std::atomic<State> state{State::queued};
    std::stop_source wake{std::nostopstate};
};

/// One that nobody waits for: it owns what it needs.
struct Lanes::Submitted {
    Submitted(std::function<void(Transaction&)> what, CommandOptions how, CommandMetrics::OfAggregate& metrics,
              std::string fingerprint, std::optional<telemetry::OpenSpan> span, Time now)
        : body(std::move(what)),
          options(std::move(how)),
          entry{Command{.body = body,
                        .options = options,
                        .metrics = metrics,
                        .began = now,
                        .fingerprint = std::move(fingerprint),
                        .span = std::move(span),
                        .in_lane = true},
                this} {}

    std::function<void(Transaction&)> body;
    CommandOptions options;
    Entry entry;
    std::promise<Outcome> promise;
};

struct Lanes::Lane {
    std::deque<Entry*> queue;
    bool led = false;        // somebody is at work, or has been told to be
    bool scheduled = false;  // the executor has a task for it
    std::vector<std::stop_source> waiting_for_room;
};

/// Whoever holds an accessor to a lane has it for himself. With the standard allocator, because the thread sanitizer
/// cannot see into oneTBB's.
struct Lanes::Directory {
    oneapi::tbb::concurrent_hash_map<std::string, Lane, oneapi::tbb::tbb_hash_compare<std::string>,
                                     std::allocator<std::pair<const std::string, Lane>>>
        by_stream;
    using accessor = decltype(by_stream)::accessor;
};

Lanes::Lanes(CommandRunner& runner, Runtime runtime, Executor* executor, LaneOptions options)
    : runner_(runner),
      runtime_(runtime),
      options_(options),
      lanes_(std::make_unique<Directory>()),
      injected_(executor) {
    if (options.queue_max == 0) throw ConfigError("lanes.queue_max is 0: a lane without room takes no command");
    if (options.batch_max == 0) throw ConfigError("lanes.batch_max is 0: no slot would take a command");
    if (options.threads == 0) throw ConfigError("lanes.threads is 0: nobody would work off what is submitted");
}

Lanes::~Lanes() {
    own_.reset();
    for (auto& [stream, lane] : lanes_->by_stream) {
        for (Entry* entry : lane.queue) {
            try {
                throw UnavailableError("the application ended before it came to a command on '" + stream +
                                       "'; nothing was written");
            } catch (const std::exception&) {  // that one, or there is no memory for it
                entry->failure = std::current_exception();
            }
            finish(*entry, false);
        }
    }
}

Outcome Lanes::execute(CommandMetrics::OfAggregate& metrics, const std::string& stream,
                       const std::function<void(Transaction&)>& body, const CommandOptions& options,
                       std::string fingerprint) {
    runner_.check("execute", options);
    Entry mine{Command{.body = body,
                       .options = options,
                       .metrics = metrics,
                       .began = runtime_.clock.get().now(),
                       .fingerprint = std::move(fingerprint),
                       .span = runner_.begin_span(options, "execute", metrics.aggregate()),
                       .in_lane = true}};
    if (enqueue(stream, mine)) {
        mine.state = Entry::State::leads;
    } else {
        await_turn(mine);
    }
    if (mine.state.load(std::memory_order_acquire) == Entry::State::leads) lead(stream, &mine);
    if (mine.failure) std::rethrow_exception(mine.failure);
    return std::move(*mine.outcome);
}

void Lanes::await_turn(const Entry& mine) {
    Clock& clock = runtime_.clock;
    const SteadyTime began = clock.steady_now();
    while (mine.state.load(std::memory_order_acquire) == Entry::State::queued) {
        try {
            clock.sleep_for(longest_sleep, mine.wake.get_token());
        } catch (const std::exception&) {
            std::this_thread::yield();  // who is in a lane cannot just go
        }
    }
    runner_.metrics().lane_wait.record(clock.steady_now() - began);
}

std::future<Outcome> Lanes::submit(CommandMetrics::OfAggregate& metrics, const std::string& stream,
                                   std::function<void(Transaction&)> body, CommandOptions options,
                                   std::string fingerprint) {
    runner_.check("submit", options);
    executor();  // what is queued must have somebody who comes for it
    auto span = runner_.begin_span(options, "submit", metrics.aggregate());
    auto submitted = std::make_unique<Submitted>(std::move(body), std::move(options), metrics, std::move(fingerprint),
                                                 std::move(span), runtime_.clock.get().now());
    std::future<Outcome> outcome = submitted->promise.get_future();
    enqueue(stream, submitted->entry);
    static_cast<void>(submitted.release());  // it is the lane's now
    return outcome;
}

bool Lanes::enqueue(const std::string& stream, Entry& entry) {
    for (;;) {
        bool helps = false;
        bool posts = false;
        std::stop_source room{std::nostopstate};
        {
            Directory::accessor found;
            lanes_->by_stream.insert(found, stream);
            Lane& lane = found->second;
            if (lane.queue.size() < options_.queue_max) {
                const bool waits = entry.submitted == nullptr;
                try {
                    if (waits && lane.led) entry.wake = std::stop_source{};
                    lane.queue.push_back(&entry);
                } catch (...) {
                    if (lane.queue.empty()) lanes_->by_stream.erase(found);
                    throw;
                }
                if (waits) return !std::exchange(lane.led, true);
                if (lane.led || std::exchange(lane.scheduled, true)) return false;
                posts = true;
            } else if (options_.when_full == LaneOptions::WhenFull::refuse) {
                ++metrics_.refused;
                entry.metrics.refused();
                throw OverloadedError("the lane of '" + stream + "' is full: " + std::to_string(options_.queue_max) +
                                      " commands wait in it, lanes.queue_max allows no more; nothing was written");
            } else if (!std::exchange(lane.led, true)) {
                helps = true;
            } else {
                room = lane.waiting_for_room.emplace_back();
            }
        }
        if (posts) {
            if (!post(stream) && takes_over(stream)) lead(stream, nullptr);
            return false;
        }
        const SteadyTime began = runtime_.clock.get().steady_now();
        if (helps) {
            lead(stream, nullptr);
        } else {
            runtime_.clock.get().sleep_for(longest_sleep, room.get_token());
        }
        runner_.metrics().lane_wait.record(runtime_.clock.get().steady_now() - began);
    }
}

void Lanes::lead(const std::string& stream, const Entry* mine) {
    for (bool leads = true; leads;) {
        // Nothing here may fail, or the lane would stand still for ever. Without memory for a list one goes alone.
        std::vector<Command*> several;
        Command* first = nullptr;
        std::span<Command* const> commands{&first, 1};
        {
            Directory::accessor found;
            lanes_->by_stream.find(found, stream);
            const auto& queue = found->second.queue;
            VARVE_ASSERT(found->second.led && !queue.empty(), "a lane is led by somebody who has commands in it");
            first = queue.front();
            const auto end = queue.begin() + static_cast<std::ptrdiff_t>(std::min(queue.size(), options_.batch_max));
            try {
                several.assign(queue.begin(), end);
                commands = several;
            } catch (const std::bad_alloc&) {
                std::this_thread::yield();
            }
        }
        const std::size_t ended = runner_.run(commands);
        VARVE_ASSERT(ended > 0 && ended <= commands.size(), "each batch ends a command");
        commands = commands.first(ended);
        ++metrics_.batches;
        metrics_.commands += commands.size();

        const bool mine_has_ended = std::ranges::find(commands, static_cast<const Command*>(mine)) != commands.end();
        leads = mine != nullptr && !mine_has_ended;
        std::vector<std::stop_source> room;
        std::stop_source successor{std::nostopstate};
        bool posts = false;
        {
            Directory::accessor found;
            lanes_->by_stream.find(found, stream);
            Lane& lane = found->second;
            lane.queue.erase(lane.queue.begin(), lane.queue.begin() + static_cast<std::ptrdiff_t>(commands.size()));
            room = std::exchange(lane.waiting_for_room, {});
            if (lane.queue.empty()) {
                lanes_->by_stream.erase(found);
            } else if (!leads) {
                const auto next =
                    std::ranges::find_if(lane.queue, [](const Entry* entry) { return entry->submitted == nullptr; });
                if (next != lane.queue.end()) {
                    successor = (*next)->wake;
                    (*next)->state.store(Entry::State::leads, std::memory_order_release);
                } else {
                    lane.led = false;
                    posts = !std::exchange(lane.scheduled, true);
                }
            }
        }
        // First the answers: who is back with a command by the time the next leader takes a batch goes along with it.
        for (Command* command : commands) finish(static_cast<Entry&>(*command), command == mine);
        for (std::stop_source& one : room) one.request_stop();
        successor.request_stop();
        if (mine_has_ended) mine = nullptr;
        if (posts) leads = !post(stream) && takes_over(stream);
    }
}

void Lanes::finish(Entry& entry, bool is_mine) {
    if (is_mine) return;
    if (entry.submitted != nullptr) {
        const std::unique_ptr<Submitted> submitted{entry.submitted};
        if (entry.failure) {
            submitted->promise.set_exception(std::move(entry.failure));  // whoever is told must not share it
        } else {
            submitted->promise.set_value(std::move(*entry.outcome));
        }
        return;
    }
    std::stop_source wake = entry.wake;  // the entry is gone as soon as its caller sees that it has ended
    entry.state.store(Entry::State::ended, std::memory_order_release);
    wake.request_stop();
}

bool Lanes::post(const std::string& stream) {
    try {
        executor().post([this, stream] {
            if (takes_over(stream)) lead(stream, nullptr);
        });
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

bool Lanes::takes_over(const std::string& stream) {
    Directory::accessor found;
    if (!lanes_->by_stream.find(found, stream)) return false;  // somebody was faster
    Lane& lane = found->second;
    lane.scheduled = false;
    return !std::exchange(lane.led, true);
}

Executor& Lanes::executor() {
    if (injected_ != nullptr) return *injected_;
    std::call_once(made_, [this] { own_ = make_thread_executor(options_.threads, runtime_); });
    return *own_;
}

void Lanes::drain() {
    Executor* const used = injected_ != nullptr ? injected_ : own_.get();
    if (used != nullptr) used->drain();
}

}  // namespace varve::detail
