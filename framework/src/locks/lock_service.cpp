#include "locks/lock_service.h"

#include "locks/acquisition.h"
#include "locks/expiry.h"
#include "locks/held.h"

#include <varve/core/error.h>
#include <varve/core/retry.h>

#include <algorithm>
#include <utility>

namespace varve::locks {

LockService::LockService(std::shared_ptr<store::ItemStore> store, const LocksOptions& options, Runtime runtime)
    : store_(std::move(store)),
      options_(options),
      runtime_(runtime),
      expiry_(std::make_unique<Expiry>(runtime.clock, options.time_to_live)) {
    if (options_.time_to_live <= Duration::zero()) throw InvalidError("a lock's time to live must be positive");
}

LockService::~LockService() = default;

void LockService::ensure_table() {
    if (table_ensured_) return;
    store_->ensure_table(locks_table());
    table_ensured_ = true;
}

std::optional<Lock> LockService::try_acquire(std::string_view name, const AcquireOptions& options) {
    ensure_table();
    Acquisition acquisition{*this, std::string{name}, options};
    std::optional<Entered> entered = acquisition.run();
    if (!entered) return std::nullopt;
    return hold(std::string{name}, std::move(*entered), options);
}

std::optional<std::vector<Lock>> LockService::try_acquire_all(std::vector<std::string> names,
                                                              const AcquireOptions& options) {
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    const SteadyTime began = runtime_.clock.get().steady_now();
    std::vector<Lock> locks;
    for (const std::string& name : names) {
        AcquireOptions rest = options;
        if (rest.wait != Locks::for_ever) {
            rest.wait = std::max(Duration::zero(), options.wait - (runtime_.clock.get().steady_now() - began));
        }
        std::optional<Lock> lock = try_acquire(name, rest);
        if (!lock) return std::nullopt;
        locks.push_back(std::move(*lock));
    }
    return locks;
}

Locks::State LockService::inspect(std::string_view name) {
    ensure_table();
    Locks::State state;
    store::Query query{.table = locks_table().name, .partition = std::string{name}};
    do {
        const store::Page page = store_->query(query);
        for (const store::Record& record : page.records) {
            if (const std::optional<Ticket> ticket = ticket_of(record.key)) {
                state.queue.push_back({*ticket, decode_queued(record.key, record.item)});
            } else if (record.key == holder_key(query.partition)) {
                state.holder = decode_holder(record.key, record.item);
            }
        }
        query.next = page.next;
    } while (query.next);
    return state;
}

bool LockService::evict(std::string_view name, Ticket ticket) {
    ensure_table();
    const std::string of{name};
    const std::vector<store::Key> keys{holder_key(of), queue_key(of, ticket)};
    bool was_there = false;
    for (Backoff backoff{RetryPolicy::waiting(options_.time_to_live), runtime_};;) {
        const std::vector<std::optional<store::Item>> items = store_->read(keys);
        const Holder holder = decode_holder(keys[0], items[0]);
        std::vector<store::Write> writes;
        if (!holder.is_free() && holder.ticket == ticket) writes.push_back(release(of, holder));
        if (items[1]) writes.push_back(leave(of, ticket, decode_queued(keys[1], *items[1]).owner));
        if (writes.empty()) return was_there;
        was_there = true;
        for (const store::WriteAnswer& answer : store_->write(writes)) {
            const auto* failure = std::get_if<Failure>(&answer);
            if (failure != nullptr && (!worth_repeating(*failure) || !backoff.next())) raise_certain(*failure);
        }
    }
}

bool LockService::collect_page() {
    ensure_table();
    const store::Page page = store_->scan({.table = locks_table().name, .next = std::exchange(collected_, {})});
    std::vector<store::Write> removals;
    for (const store::Record& record : page.records) {
        try {
            const std::optional<Ticket> ticket = ticket_of(record.key);
            if (!ticket) continue;
            const Queued row = decode_queued(record.key, record.item);
            if (expiry_->is_over(record.key, row)) removals.push_back(clean(record.key.partition, *ticket, row));
        } catch (const CorruptionError&) {
            // Whoever takes that lock is told.
        }
    }
    if (!removals.empty()) {
        for (const store::WriteAnswer& answer : store_->write(removals)) {
            metrics_.cleaned += std::holds_alternative<store::Applied>(answer) ? 1 : 0;
        }
    }
    collected_ = page.next;
    return !collected_;
}

Lock LockService::hold(const std::string& name, Entered entered, const AcquireOptions& options) {
    ++metrics_.holding;
    auto held = std::make_shared<Held>(*this, name, std::move(entered.holder), entered.until, options.on_lost);
    const MutexLock lock{mutex_};
    held_.push_back(held);
    if (options_.heartbeat_thread) keep_up_heartbeats();
    return Lock{std::move(held)};
}

void LockService::let_go(Held& held) noexcept {
    if (process_.is_another()) return;  // it is the parent's
    try {
        {
            const MutexLock lock{mutex_};
            std::erase_if(held_, [&](const auto& one) { return one.get() == &held; });
        }
        std::vector<store::Write> writes{release(held.name(), held.holder()),
                                         leave(held.name(), held.holder().ticket, held.holder().owner)};
        for (Backoff backoff{RetryPolicy::waiting(options_.time_to_live / 4), runtime_};;) {
            const std::vector<store::WriteAnswer> answers = store_->write(writes);
            for (std::size_t i = answers.size(); i-- > 0;) {
                if (!std::holds_alternative<Failure>(answers[i])) {
                    writes.erase(writes.begin() + static_cast<std::ptrdiff_t>(i));
                }
            }
            if (writes.empty() || !backoff.next()) return;
        }
    } catch (const std::exception& error) {
        try_to_log(runtime_.log, LogLevel::info,
                   [&] { return "the lock '" + held.name() + "' is left to expire: " + error.what(); });
    } catch (...) {
        // It expires by itself.
    }
}

Duration LockService::beat() {
    std::vector<std::shared_ptr<Held>> all;
    {
        const MutexLock lock{mutex_};
        all = held_;
    }
    const SteadyTime now = runtime_.clock.get().steady_now();
    struct Due {
        std::shared_ptr<Held> held;
        Holder next;
    };
    std::vector<Due> due;
    std::vector<store::Write> writes;
    for (const std::shared_ptr<Held>& held : all) {
        std::optional<Holder> next = held->extended(now);
        if (!next) continue;
        writes.push_back(extend(held->name(), *next));
        writes.push_back(extend(held->name(), next->ticket, {.owner = next->owner, .expires = next->expires}));
        due.push_back({held, std::move(*next)});
    }
    std::vector<store::WriteAnswer> answers;
    if (!writes.empty()) {
        try {
            answers = store_->write(writes);
        } catch (const Error& error) {
            answers.assign(writes.size(), Failure{error.kind(), true, error.what()});
        }
    }
    for (std::size_t i = 0; i < due.size(); ++i) {
        // The row in the queue keeps the place while the holder's item keeps the lock: only that one is asked.
        const store::WriteAnswer& answer = answers[2 * i];
        Held& held = *due[i].held;
        if (std::holds_alternative<store::Applied>(answer)) {
            held.confirmed(now, due[i].next.expires);
        } else if (const auto* refused = std::get_if<store::Refused>(&answer)) {
            held.refused(decode_holder(holder_key(held.name()), refused->current));
        } else {
            held.unanswered();
        }
    }
    SteadyTime next = SteadyTime::max();
    for (const std::shared_ptr<Held>& held : all) next = std::min(next, held->next_beat());
    if (next == SteadyTime::max()) return options_.time_to_live / 4;
    // Not longer: a lock that is entered meanwhile may have less of its time left.
    return std::clamp<Duration>(next - runtime_.clock.get().steady_now(), std::chrono::milliseconds{1},
                                std::max<Duration>(options_.time_to_live / 4, std::chrono::milliseconds{1}));
}

void LockService::keep_up_heartbeats() {
    if (!heartbeats_.is_running()) {
        heartbeats_ = BackgroundLoop{
            runtime_,
            {.thread = "varve-locks", .work = "a lock's heartbeat", .retry_after = options_.time_to_live / 16},
            [this](const std::stop_token&) -> std::optional<Duration> {
                {
                    const MutexLock lock{mutex_};
                    heartbeats_idle_ = held_.empty();
                    if (heartbeats_idle_) return std::nullopt;
                }
                return beat();
            }};
    }
    if (std::exchange(heartbeats_idle_, false)) heartbeats_.wake();
}

}  // namespace varve::locks
