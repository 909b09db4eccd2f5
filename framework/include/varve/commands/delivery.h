#pragma once

#include <varve/commands/application.h>
#include <varve/commands/options.h>
#include <varve/core/clock.h>
#include <varve/events/event.h>
#include <varve/events/event_type.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace varve {

/// What the handler of an effect is given beside it.
struct Delivery {
    /// The effect in the form of an event: its name and fields, the slot that it is stored in, the metadata of the
    /// command that caused it. Its `id` is the same at each attempt, in whatever process: an idempotency key.
    const RecordedEvent& effect;
    unsigned attempt = 1;  ///< how often this process has tried, this time included
};

/// Thrown by a handler: the receiver cannot take this now.
class DeliverLater : public std::runtime_error {
  public:
    /// `after`: this process tries no effect of the type before so long, and not this one, if it is tried alone; not
    /// above zero: as after any other failure.
    explicit DeliverLater(const std::string& why, Duration after = Duration::zero())
        : std::runtime_error(why), after_(std::max(after, Duration::zero())) {}
    Duration after() const noexcept { return after_; }

  private:
    Duration after_;
};

/// Thrown by a handler: the receiver will never take this one, however often it is asked.
struct Undeliverable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// How effects of one type are delivered.
///
/// Errors: deliver refuses what cannot work, with a ConfigError that names the option.
struct DeliverOptions {
    /// Which effects come first, where nobody has delivered this type before: those since the store's first commit, or
    /// only what is committed from now on.
    StartAt start_at = StartAt::beginning;
    /// Into how many parts their streams are split, so that as many threads, and processes, deliver at the same time,
    /// each in order; 1 to 64. Kept with the first start, as FollowOptions::partitions of a subscription.
    std::size_t partitions = 1;
    /// How often one effect is tried while the receiver takes others; at least 1. After that its stream stays aside
    /// until somebody takes it up (Application::retry_parked) or drops the effect (drop_effect). What fails while
    /// nothing gets through does not count.
    unsigned attempts_max = 10;
    /// How long to wait after a failure: at first, and at most. In between it doubles, and a random part of it is taken
    /// ("full jitter", see core/retry.h). More than 0.
    Duration retry_first = std::chrono::milliseconds{500};
    Duration retry_max = std::chrono::minutes{5};
    /// Attempts in a second, at most, of all partitions in this process; 0: as many as the handler can.
    std::size_t per_second_max = 0;
    /// Streams that are aside, at most, in each part; at least 1. With one more, it goes no further until others are
    /// taken up.
    std::size_t parked_max = 1000;
    /// How often it asks the store for what others have written; more than 0.
    Duration poll_interval = std::chrono::milliseconds{50};
};

/// The name under which effects of this type are delivered: that of a follower (Application::followers, wait_for,
/// parked, retry_parked, unfollow).
template <EventType Effect>
std::string delivery_name() {
    return "$deliver-" + std::string{event_name<Effect>()};
}

namespace detail {
/// What a handler takes: the effect, and perhaps the Delivery.
template <class Effect, class Handler>
concept TakesEffect = std::is_invocable_v<Handler&, const Effect&>;
template <class Effect, class Handler>
concept TakesDelivery = std::is_invocable_v<Handler&, const Effect&, const Delivery&>;

void deliver(Application& application, const std::string& name, std::string_view type,
             std::function<void(const Delivery&)> handle, const DeliverOptions& options);
bool drop_effect(Application& application, std::string_view name, std::string_view id);
}  // namespace detail

/// From now on `handle` does in the background what effects of this type say, once they are committed: first all that
/// there are, then each one soon after its command. It is called with the effect, or with that and a Delivery, by one
/// thread of all processes together, or one for each partition; for effects of one stream in their order. Whoever calls
/// retry_parked or drop_effect calls it, too. Each effect is delivered at least once: again if the process dies before
/// it has noted that, so the receiver should remember Delivery::effect.id. What the handler throws says that it has
/// failed, and it is tried again:
///
///     varve::deliver<SendReceipt>(bank, [&](const SendReceipt& e, const varve::Delivery& d) {
///         mail.send(e.to, d.effect.id);  // throws if nobody answers
///     });
///
/// An effect that fails while others get through sets its stream aside, with those behind it, until it gets through,
/// too: Application::parked(delivery_name<Effect>()). If none gets through, all wait. The application ends when the
/// handler has returned, so that should have a time-out. Until the application ends, or unfollow(delivery_name).
///
/// Errors: ConfigError for a store without a feed (docs/feed.md), for a second handler of one type, and for options
/// that cannot work. What goes wrong later is in followers() and the log.
template <EventType Effect, class Handler>
void deliver(Application& application, Handler handler, const DeliverOptions& options = {}) {
    constexpr bool takes_delivery = detail::TakesDelivery<Effect, Handler>;
    static_assert(
        takes_delivery || detail::TakesEffect<Effect, Handler>,
        "the handler of an effect is called with (const Effect&), or (const Effect&, const varve::Delivery&)");
    if constexpr (takes_delivery || detail::TakesEffect<Effect, Handler>) {
        const auto handle = [handler = std::move(handler)](const Delivery& delivery) mutable {
            for (const auto& one : EventVariant<std::variant<Effect>>::decode(delivery.effect)) {
                if constexpr (takes_delivery) {
                    handler(std::get<Effect>(one), delivery);
                } else {
                    handler(std::get<Effect>(one));
                }
            }
        };
        detail::deliver(application, delivery_name<Effect>(), event_name<Effect>(), handle, options);
    }
}

/// Gives up for ever on the effect of this id (ParkedStream::id), at which its stream is aside, and delivers what is
/// behind it in this thread, as retry_parked does. False: no stream is aside at it. Errors: InvalidError if this
/// application does not deliver effects of this type, and from the handler; those of the store.
template <EventType Effect>
bool drop_effect(Application& application, std::string_view id) {
    return detail::drop_effect(application, delivery_name<Effect>(), id);
}

}  // namespace varve
