#pragma once

#include <varve/commands/delivery.h>
#include <varve/core/mutex.h>
#include <varve/core/runtime.h>
#include <varve/store/item_store.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace varve::detail {

/// Hands effects of one type to their receiver, and finds out whether a failure is the effect's or the receiver's: as
/// long as another effect gets through, the receiver is there, and the stream of the one that failed is to be set
/// aside; if none does, all wait (a "circuit breaker": M. Nygard, "Release It!", 2007).
///
/// Threads: all methods may be called from any thread; partitions share one.
class Deliverer {
  public:
    using Handle = std::function<void(const Delivery&)>;

    /// ConfigError for an option that cannot work.
    Deliverer(Runtime runtime, std::string_view type, Handle handle, const DeliverOptions& options);

    /// Why an effect was not taken.
    struct Failure {
        std::string why;
        bool for_ever = false;              ///< to try it again is of no use
        Duration after = Duration::zero();  ///< what the receiver asked for
    };

    /// Calls the handler in `work`; false: it must not be called any more.
    using Call = std::function<bool(const std::function<void()>& work)>;

    /// What has become of a batch.
    struct Pass {
        /// Streams that are to be set aside: each by its first effect that failed, in the order of the batch.
        std::vector<std::pair<std::size_t, Failure>> aside = {};
        bool is_silent = false;  ///< it ended since nobody answers: pause() says when to go on
        bool is_paced = false;   ///< it ended since there was no place (take_place), or others have met silence
    };
    /// Delivers the first `count` of these, those of a stream in their order: what comes after a failure waits. While
    /// nobody answers, it tries the first ones of any three streams, also of those behind. `delivered`: ids, and
    /// positions, of what was; it is not delivered again.
    Pass run(std::span<const RecordedEvent> effects, std::size_t count,
             std::map<std::string, store::Position>& delivered, const Call& call);

    /// Tries one alone; nullopt: it was delivered.
    std::optional<Failure> try_one(const RecordedEvent& effect);
    /// How long nothing is to be tried, since the receiver does not answer.
    Duration silence() const;
    /// Also because it has got enough for now.
    Duration pause() const;
    /// Takes the place of one attempt among those of this second. Else it says how long to wait for one.
    Duration take_place();
    /// How long until there is one.
    Duration until_place() const;
    /// How many were delivered, or refused for ever: the receiver was there.
    std::uint64_t answers() const;
    /// How long to wait after so many failures.
    Duration wait_after(std::uint64_t failures) const;
    const std::string& type() const { return type_; }
    const DeliverOptions& options() const { return options_; }

  private:
    struct Known {
        unsigned attempts = 0;
        std::uint64_t answers = 0;  ///< when it failed last
    };
    struct Tried {
        std::optional<Failure> failure;
        bool is_answer = false;
        bool is_its_own = false;  ///< it is for ever, or others got through since it failed the time before
    };
    Tried attempt(const RecordedEvent& effect);
    /// What a pass tries, in this order.
    std::vector<std::size_t> order(std::span<const RecordedEvent> effects, std::size_t count,
                                   const std::map<std::string, store::Position>& delivered) const;
    Duration until_place_at(SteadyTime now) const VARVE_REQUIRES(mutex_);
    void be_silent(const Failure& failure);

    const Runtime runtime_;
    const std::string type_;
    const Handle handle_;
    const DeliverOptions options_;
    mutable Mutex mutex_;
    std::uint64_t answers_ VARVE_GUARDED_BY(mutex_) = 0;
    std::uint64_t silent_passes_ VARVE_GUARDED_BY(mutex_) = 0;      // since the last answer
    SteadyTime not_before_ VARVE_GUARDED_BY(mutex_) = {};           // it is not asked
    SteadyTime used_until_ VARVE_GUARDED_BY(mutex_) = {};           // by what was tried, each its part of a second
    std::map<std::string, Known> failed_ VARVE_GUARDED_BY(mutex_);  // by id
};

}  // namespace varve::detail
