#include "lanes.h"

#include <varve/core/error.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <stop_token>
#include <utility>

#include <oneapi/tbb/concurrent_hash_map.h>

namespace varve::detail {
namespace {

/// A wait ends when it is woken. That it looks up from time to time guards against a clock that does not wake.
constexpr Duration longest_sleep = std::chrono::seconds{1};

}  // namespace

/// A command in a lane.
struct Lanes::Entry {
    enum class State { queued, leads, ended };

    Command command;
    Submitted* submitted = nullptr;  // nullptr: somebody waits for it
    std::atomic<State> state{State::queued};
    std::stop_source wake{std::nostopstate};
};

/// One that nobody waits for: it owns what it needs.
struct Lanes::Submitted {
    Submitted(std::function<void(Transaction&)> what, CommandOptions how, Time now)
        : body(std::move(what)),
          options(std::move(how)),
          entry{.command = {.body = body, .options = options, .began = now}, .submitted = this} {}

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
            entry->command.failure = std::make_exception_ptr(UnavailableError(
                "the application ended before it came to a command on '" + stream + "'; nothing was written"));
            finish(*entry, false);
        }
    }
}

Outcome Lanes::execute(const std::string& stream, const std::function<void(Transaction&)>& body,
                       const CommandOptions& options) {
    CommandRunner::check(options);
    Entry mine{.command = {.body = body, .options = options, .began = runtime_.clock.get().now()}};
    if (enqueue(stream, mine)) mine.state = Entry::State::leads;
    while (mine.state.load(std::memory_order_acquire) == Entry::State::queued) {
        runtime_.clock.get().sleep_for(longest_sleep, mine.wake.get_token());
    }
    if (mine.state.load(std::memory_order_acquire) == Entry::State::leads) lead(stream, &mine);
    if (mine.command.failure) std::rethrow_exception(mine.command.failure);
    return std::move(*mine.command.outcome);
}

std::future<Outcome> Lanes::submit(const std::string& stream, std::function<void(Transaction&)> body,
                                   CommandOptions options) {
    CommandRunner::check(options);
    executor();  // what is queued must have somebody who comes for it
    auto submitted = std::make_unique<Submitted>(std::move(body), std::move(options), runtime_.clock.get().now());
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
                if (entry.submitted == nullptr) {
                    if (lane.led) entry.wake = std::stop_source{};
                    lane.queue.push_back(&entry);
                    return !std::exchange(lane.led, true);
                }
                lane.queue.push_back(&entry);
                if (lane.led || std::exchange(lane.scheduled, true)) return false;
                posts = true;
            } else if (options_.when_full == LaneOptions::WhenFull::refuse) {
                ++metrics_.refused;
                throw OverloadedError("the lane of '" + stream + "' is full: " + std::to_string(options_.queue_max) +
                                      " commands wait in it, lanes.queue_max allows no more; nothing was written");
            } else if (!std::exchange(lane.led, true)) {
                helps = true;
            } else {
                room = lane.waiting_for_room.emplace_back();
            }
        }
        if (posts) {
            post(stream);
            return false;
        }
        if (helps) {
            lead(stream, nullptr);
        } else {
            runtime_.clock.get().sleep_for(longest_sleep, room.get_token());
        }
    }
}

void Lanes::lead(const std::string& stream, const Entry* mine) {
    for (bool leads = true; leads;) {
        std::vector<Entry*> entries;
        {
            Directory::accessor found;
            lanes_->by_stream.find(found, stream);
            const auto& queue = found->second.queue;
            entries.assign(queue.begin(), queue.begin() + std::min(queue.size(), options_.batch_max));
        }
        std::vector<Command*> commands;
        for (Entry* entry : entries) commands.push_back(&entry->command);
        entries.resize(runner_.run(commands));
        ++metrics_.batches;
        metrics_.commands += entries.size();

        leads = mine != nullptr && std::ranges::find(entries, mine) == entries.end();
        std::vector<std::stop_source> room;
        std::stop_source successor{std::nostopstate};
        bool posts = false;
        {
            Directory::accessor found;
            lanes_->by_stream.find(found, stream);
            Lane& lane = found->second;
            lane.queue.erase(lane.queue.begin(), lane.queue.begin() + static_cast<std::ptrdiff_t>(entries.size()));
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
        for (Entry* entry : entries) finish(*entry, entry == mine);
        for (std::stop_source& one : room) one.request_stop();
        successor.request_stop();
        if (posts) post(stream);
    }
}

void Lanes::finish(Entry& entry, bool is_mine) {
    if (is_mine) return;
    if (entry.submitted != nullptr) {
        const std::unique_ptr<Submitted> submitted{entry.submitted};
        if (entry.command.failure) {
            submitted->promise.set_exception(entry.command.failure);
        } else {
            submitted->promise.set_value(std::move(*entry.command.outcome));
        }
        return;
    }
    std::stop_source wake = entry.wake;  // the entry is gone as soon as its caller sees that it has ended
    entry.state.store(Entry::State::ended, std::memory_order_release);
    wake.request_stop();
}

void Lanes::post(const std::string& stream) {
    executor().post([this, stream] {
        {
            Directory::accessor found;
            if (!lanes_->by_stream.find(found, stream)) return;  // somebody was faster
            Lane& lane = found->second;
            lane.scheduled = false;
            if (std::exchange(lane.led, true)) return;
        }
        lead(stream, nullptr);
    });
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
