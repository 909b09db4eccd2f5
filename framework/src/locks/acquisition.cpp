#include "locks/acquisition.h"

#include "locks/expiry.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>

#include <algorithm>
#include <limits>

namespace varve::locks {
namespace {

/// How far ahead a waiter looks. Who is farther back only needs to know that it is far.
constexpr std::size_t rows_looked_at = 50;
constexpr Duration poll_shortest = std::chrono::milliseconds{10};
constexpr Duration poll_longest = std::chrono::milliseconds{500};

}  // namespace

Acquisition::Acquisition(LockService& service, std::string name, const AcquireOptions& options)
    : service_(service),
      name_(std::move(name)),
      options_(options),
      owner_(uuid7(service.runtime())),
      began_(service.runtime().clock.get().steady_now()) {
    ++service_.metrics().waiting;
}

Acquisition::~Acquisition() {
    --service_.metrics().waiting;
    try {
        if (!entered_) leave(RetryPolicy::once());
    } catch (...) {
        // A destructor has nobody to tell. The row expires.
    }
}

std::optional<LockService::Entered> Acquisition::run() {
    std::optional<Backoff> silent;
    for (;;) {
        std::size_t distance = 0;
        try {
            distance = advance();
            silent.reset();
        } catch (const Error& error) {
            if (!silent) silent.emplace(RetryPolicy::waiting(service_.options().time_to_live), service_.runtime());
            if (!error.retryable() || is_over() || !silent->next()) throw;
            continue;
        }
        if (entered_) {
            const Duration waited = clock().steady_now() - began_;
            service_.metrics().waited_us += static_cast<std::uint64_t>(std::max<Duration::rep>(waited.count(), 0));
            ++service_.metrics().acquired;
            return entered_;
        }
        if (is_over()) {
            ++service_.metrics().gave_up;
            leave(RetryPolicy::waiting(service_.options().time_to_live / 4));
            return std::nullopt;
        }
        pause(distance);
    }
}

std::size_t Acquisition::advance() {
    if (ticket_ == 0) {
        const View view = look({});
        const std::size_t distance = std::max<std::size_t>(view.ahead, is_free(view.holder) ? 0 : 1);
        if (!std::exchange(measured_, true)) service_.metrics().queue_length = distance;
        if (distance > 0 && options_.wait <= Duration::zero()) return distance;
        draw_ticket(view.drawn);
    }
    queue_up();
    const View view = look(std::get<std::string>(queue_key(name_, ticket_).sort));
    if (!view.own && view.complete) queued_ = false;  // somebody took it for expired
    // To others it may be over as well: those behind it would enter beside it.
    const bool own_is_over = view.own && view.own->expires <= clock().now();
    if (own_is_over) renew_at_ = clock().steady_now();
    const bool mine = view.holder.owner == owner_;
    if (mine && trying_ && clock().steady_now() < trying_since_ + service_.options().time_to_live / 2) {
        entered_ = {view.holder, trying_since_ + service_.options().time_to_live};  // the answer got lost
        return 0;
    }
    // Without half its time left even an own entering is repeated: the heartbeat might come too late for it.
    if (view.own && !own_is_over && view.ahead == 0 && (mine || is_free(view.holder))) enter(view.holder);
    return entered_ ? 0 : std::max<std::size_t>(view.ahead, 1);
}

bool Acquisition::is_free(const Holder& holder) const {
    return holder.is_free() || service_.expiry().is_over(holder_key(name_), holder.claim());
}

Acquisition::View Acquisition::look(const std::string& last_part) {
    View view;
    const bool first = last_part.empty();
    store::Query query{.table = locks_table().name,
                       .partition = name_,
                       .first = first ? counter_key(name_).sort : holder_key(name_).sort,
                       .limit = rows_looked_at + 2};
    if (!first) query.last = last_part;
    for (;;) {
        const store::Page page = service_.store().query(query);
        std::vector<store::Write> over;
        for (const store::Record& record : page.records) {
            if (const std::optional<Ticket> ticket = ticket_of(record.key)) {
                Queued row = decode_queued(record.key, record.item);
                if (*ticket == ticket_ && row.owner == owner_) {
                    view.own = std::move(row);
                } else if (service_.expiry().is_over(record.key, row)) {
                    over.push_back(clean(name_, *ticket, row));
                } else {
                    ++view.ahead;
                }
            } else if (record.key == holder_key(name_)) {
                view.holder = decode_holder(record.key, record.item);
            } else {
                view.drawn = decode_counter(record.key, record.item);
            }
        }
        if (!over.empty()) {
            for (const store::WriteAnswer& answer : service_.store().write(over)) {
                service_.metrics().cleaned += std::holds_alternative<store::Applied>(answer) ? 1 : 0;
            }
        }
        view.complete = !page.next;
        if (view.complete || view.ahead >= rows_looked_at) return view;
        query.next = page.next;
    }
}

void Acquisition::draw_ticket(Ticket drawn) {
    for (;;) {
        if (drawn == std::numeric_limits<Ticket>::max()) {
            throw CorruptionError("the lock '" + name_ + "' has given its last ticket, " + std::to_string(drawn) +
                                  ", as only a change by hand can bring about; erase " +
                                  store::to_string(counter_key(name_)) + " while nobody holds it or waits");
        }
        // Without an answer the number may be taken, by nobody: the next attempt draws another one.
        const store::WriteAnswer answer = write(draw(name_, drawn));
        const auto* refused = std::get_if<store::Refused>(&answer);
        if (refused == nullptr) break;
        drawn = decode_counter(counter_key(name_), refused->current);
    }
    ticket_ = drawn + 1;
}

Queued Acquisition::place() const {
    const Duration lives = service_.options().time_to_live;
    return {.owner = owner_, .expires = later_expiry(clock(), lives, stored_expiry_), .time_to_live = lives};
}

void Acquisition::queue_up() {
    const SteadyTime now = clock().steady_now();
    if (queued_ && now < renew_at_) return;
    const Queued row = place();
    if (queued_) {
        const store::WriteAnswer answer = write(extend(name_, ticket_, row));
        const auto* refused = std::get_if<store::Refused>(&answer);
        if (refused == nullptr) {
            stored_expiry_ = row.expires;
            renew_at_ = now + service_.options().time_to_live / 2;
            return;
        }
        queued_ = refused->current.has_value();
        if (queued_) {  // an earlier request got through that had it expire later: the next one goes beyond it
            stored_expiry_ = decode_queued(queue_key(name_, ticket_), *refused->current).expires;
            return;
        }
        // Gone: somebody took it for expired.
    }
    maybe_queued_ = true;
    const store::WriteAnswer answer = write(enqueue(name_, ticket_, row));
    stored_expiry_ = row.expires;
    renew_at_ = now + service_.options().time_to_live / 2;
    if (const auto* refused = std::get_if<store::Refused>(&answer)) {
        if (!refused->current) return;  // in the queue and out of it again before the answer: it queues up anew
        const Queued there = decode_queued(queue_key(name_, ticket_), *refused->current);
        if (there.owner != owner_) {
            throw CorruptionError("ticket " + std::to_string(ticket_) + " of the lock '" + name_ +
                                  "' was given twice; its counter was changed by hand or lost");
        }
        stored_expiry_ = there.expires;
        renew_at_ = now;
    }
    queued_ = true;
}

void Acquisition::enter(const Holder& read) {
    if (read.fence == std::numeric_limits<Fence>::max()) {
        throw CorruptionError("the fence of the lock '" + name_ + "' stands at " + std::to_string(read.fence) +
                              " and cannot grow any more, as only a change by hand can bring about; use another name");
    }
    const SteadyTime now = clock().steady_now();
    if (!trying_) trying_since_ = now;
    const Duration lives = service_.options().time_to_live;
    const Holder next{.fence = read.fence + 1,
                      .owner = owner_,
                      .ticket = ticket_,
                      .expires = clock().now() + lives,
                      .time_to_live = lives};
    trying_ = next;
    const store::WriteAnswer answer = write(locks::enter(name_, read, next));
    if (std::holds_alternative<store::Applied>(answer)) {
        entered_ = {next, now + lives};
    } else if (decode_holder(holder_key(name_), std::get<store::Refused>(answer).current).owner == owner_) {
        return;  // an earlier request got through: the next look sees it
    }
    trying_.reset();
}

bool Acquisition::is_over() const {
    return options_.stop.stop_requested() ||
           (options_.wait != Locks::for_ever && clock().steady_now() - began_ >= options_.wait);
}

void Acquisition::pause(std::size_t distance) {
    const Duration longest = std::min(
        {poll_longest, poll_shortest * static_cast<Duration::rep>(distance), service_.options().time_to_live / 4});
    Duration delay = longest / 2;
    delay += Duration(service_.runtime().random.get().below(static_cast<std::uint64_t>((longest - delay).count()) + 1));
    if (options_.wait != Locks::for_ever) delay = std::min(delay, options_.wait - (clock().steady_now() - began_));
    clock().sleep_for(delay, options_.stop);
}

void Acquisition::leave(const RetryPolicy& policy) {
    std::vector<store::Write> writes;
    if (maybe_queued_) writes.push_back(locks::leave(name_, ticket_, owner_));
    if (trying_) writes.push_back(release(name_, *trying_));
    for (Backoff backoff{policy, service_.runtime()}; !writes.empty();) {
        const std::vector<store::WriteAnswer> answers = service_.store().write(writes);
        for (std::size_t i = answers.size(); i-- > 0;) {
            if (!std::holds_alternative<Failure>(answers[i])) {
                writes.erase(writes.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
        if (!writes.empty() && !backoff.next()) return;  // it expires
    }
    maybe_queued_ = false;
    trying_.reset();
}

store::WriteAnswer Acquisition::write(const store::Write& write) {
    store::WriteAnswer answer = service_.store().write({&write, 1}).front();
    if (const auto* failure = std::get_if<Failure>(&answer)) raise_certain(*failure);
    return answer;
}

}  // namespace varve::locks
