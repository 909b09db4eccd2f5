#include "commands/deliverer.h"

#include "commands/failures.h"
#include "core/planted_faults.h"

#include <varve/core/error.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace varve::detail {
namespace {

/// So many in a row that fail are taken for the receiver's silence.
constexpr std::size_t failures_in_a_row_max = 3;
constexpr std::size_t failed_known_max = 10'000;

}  // namespace

Deliverer::Deliverer(Runtime runtime, std::string_view type, Handle handle, const DeliverOptions& options)
    : runtime_(runtime), type_(type), handle_(std::move(handle)), options_(options) {
    const auto refuse = [&](const std::string& why) {
        throw ConfigError("effects '" + type_ + "' cannot be delivered: " + why);
    };
    if (!handle_) refuse("there is no handler");
    if (options.attempts_max == 0) refuse("DeliverOptions::attempts_max is 0, so none would ever be tried");
    if (options.retry_first <= Duration::zero()) {
        refuse("DeliverOptions::retry_first is " + to_string(options.retry_first) +
               ", so it would ask the receiver without a pause");
    }
    if (options.retry_max < options.retry_first) {
        refuse("DeliverOptions::retry_max is " + to_string(options.retry_max) + ", less than retry_first, " +
               to_string(options.retry_first));
    }
    if (options.per_second_max > 1'000'000) {
        refuse("DeliverOptions::per_second_max is " + std::to_string(options.per_second_max) +
               "; it is at most 1000000, or 0 for no limit");
    }
}

Deliverer::Tried Deliverer::attempt(const RecordedEvent& effect) {
    unsigned attempt = 1;
    {
        const MutexLock lock{mutex_};
        if (const auto known = failed_.find(effect.id); known != failed_.end()) attempt = known->second.attempts + 1;
    }
    Tried tried;
    try {
        handle_({effect, attempt});
    } catch (const Undeliverable&) {
        tried.failure = Failure{.why = storable_cause(), .for_ever = true};
    } catch (const DeliverLater& error) {
        tried.failure = Failure{.why = storable_cause(), .after = error.after()};
    } catch (...) {
        tried.failure = Failure{.why = storable_cause()};
    }
    tried.is_answer = !tried.failure || tried.failure->for_ever;
    std::uint64_t silent_before = 0;
    {
        const MutexLock lock{mutex_};
        if (tried.is_answer) {
            ++answers_;
            silent_before = std::exchange(silent_passes_, 0);
        }
        if (!tried.failure) {
            failed_.erase(effect.id);
        } else {
            if (failed_.size() >= failed_known_max) failed_.clear();
            Known& known = failed_[effect.id];
            tried.is_its_own = tried.failure->for_ever || (known.attempts > 0 && answers_ > known.answers);
            known = {.attempts = attempt, .answers = answers_};
        }
    }
    if (silent_before > 0)
        try_to_log(runtime_.log, LogLevel::info, [&] { return "effects '" + type_ + "' get through again"; });
    return tried;
}

std::optional<Deliverer::Failure> Deliverer::try_one(const RecordedEvent& effect) {
    return attempt(effect).failure;
}

Duration Deliverer::until_place_at(SteadyTime now) const {
    constexpr Duration burst = std::chrono::milliseconds{100};
    return options_.per_second_max > 0 && used_until_ > now + burst ? used_until_ - now - burst : Duration::zero();
}

Duration Deliverer::silence() const {
    const SteadyTime now = runtime_.clock.get().steady_now();
    const MutexLock lock{mutex_};
    return std::max(Duration::zero(), std::chrono::duration_cast<Duration>(not_before_ - now));
}

Duration Deliverer::pause() const {
    return std::max(silence(), until_place());
}

Duration Deliverer::until_place() const {
    const SteadyTime now = runtime_.clock.get().steady_now();
    const MutexLock lock{mutex_};
    return until_place_at(now);
}

Duration Deliverer::take_place() {
    const SteadyTime now = runtime_.clock.get().steady_now();
    const MutexLock lock{mutex_};
    const Duration left = until_place_at(now);
    if (left == Duration::zero() && options_.per_second_max > 0) {
        const Duration part = std::chrono::duration_cast<Duration>(std::chrono::seconds{1}) /
                              static_cast<Duration::rep>(options_.per_second_max);
        used_until_ = std::max(used_until_, now) + part;
    }
    return left;
}

Duration Deliverer::wait_after(std::uint64_t failures) const {
    Duration most = options_.retry_first;
    for (std::uint64_t i = 1; i < failures && most < options_.retry_max; ++i)
        most = most > options_.retry_max / 2 ? options_.retry_max : most * 2;
    most = std::min(most, options_.retry_max);
    return Duration{
        static_cast<Duration::rep>(runtime_.random.get().below(static_cast<std::uint64_t>(most.count()) + 1))};
}

void Deliverer::be_silent(const Failure& failure) {
    std::uint64_t passes = 0;
    {
        const MutexLock lock{mutex_};
        passes = ++silent_passes_;
    }
    const SteadyTime until = runtime_.clock.get().until(std::max(failure.after, wait_after(passes)));
    {
        const MutexLock lock{mutex_};
        not_before_ = std::max(not_before_, until);
    }
    if (passes > 1) return;
    try_to_log(runtime_.log, LogLevel::warning,
               [&] { return "effects '" + type_ + "' do not get through, and wait until one does: " + failure.why; });
}

std::uint64_t Deliverer::answers() const {
    const MutexLock lock{mutex_};
    return answers_;
}

std::vector<std::size_t> Deliverer::order(std::span<const RecordedEvent> effects, std::size_t count,
                                          const std::map<std::string, store::Position>& delivered) const {
    std::vector<std::size_t> order;
    const bool is_silent = [this] {
        const MutexLock lock{mutex_};
        return silent_passes_ > 0;
    }();
    if (is_silent) {
        std::set<std::string_view> streams;
        for (std::size_t i = 0; i < effects.size(); ++i) {
            if (!delivered.contains(effects[i].id) && streams.insert(effects[i].stream).second) order.push_back(i);
        }
        const std::size_t probes = std::min(order.size(), failures_in_a_row_max);
        for (std::size_t i = 0; i < probes; ++i)
            std::swap(order[i], order[i + runtime_.random.get().below(order.size() - i)]);
        order.resize(probes);
    }
    for (std::size_t i = 0; i < count; ++i) order.push_back(i);
    return order;
}

Deliverer::Pass Deliverer::run(std::span<const RecordedEvent> effects, std::size_t count,
                               std::map<std::string, store::Position>& delivered, const Call& call) {
    Pass pass;
    std::set<std::string_view> failed;                           // streams
    std::vector<std::pair<std::size_t, Failure>> not_confirmed;  // the receiver's fault, or theirs
    for (const std::size_t i : order(effects, count, delivered)) {
        const RecordedEvent& effect = effects[i];
        const bool waits =
            failed.contains(effect.stream) && !planted(PlantedFault::a_stream_goes_on_past_an_effect_that_failed);
        if (waits || delivered.contains(effect.id)) continue;
        pass.is_paced = silence() > Duration::zero() || take_place() > Duration::zero();
        Tried tried;
        if (pass.is_paced || !call([&] { tried = attempt(effect); })) break;
        if (tried.failure) {
            failed.insert(effect.stream);
            if (!tried.is_its_own && tried.failure->after > Duration::zero()) {
                not_confirmed.emplace_back(i, *std::move(tried.failure));
                break;
            }
            (tried.is_its_own ? pass.aside : not_confirmed).emplace_back(i, *std::move(tried.failure));
        } else {
            delivered.emplace(effect.id, effect.position);
        }
        if (tried.is_answer) {
            std::ranges::move(not_confirmed, std::back_inserter(pass.aside));
            not_confirmed.clear();
        }
        if (not_confirmed.size() >= failures_in_a_row_max) break;
    }
    pass.is_silent = !not_confirmed.empty();
    if (pass.is_silent) be_silent(not_confirmed.back().second);
    std::ranges::sort(pass.aside, {}, &std::pair<std::size_t, Failure>::first);
    return pass;
}

}  // namespace varve::detail
