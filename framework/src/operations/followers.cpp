#include "commands/application_parts.h"
#include "commands/build.h"
#include "commands/checkpoint.h"
#include "commands/parked_row.h"
#include "commands/stream_row.h"
#include "feed/feed.h"

#include <varve/locks/locks.h>
#include <varve/operations/followers.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace varve::operations {

using namespace detail;

namespace {

/// Whoever died has it until somebody else enters.
bool is_long_over(const locks::Holder& holder, Time now) {
    return holder.is_free() || now - holder.expires > std::chrono::minutes{1};
}

const Build* build_of(const Builds& builds, std::int64_t number) {
    if (builds.live.number == number) return &builds.live;
    return builds.next && builds.next->number == number ? &*builds.next : nullptr;
}

FollowerStatus status_of(Application& application, const std::string& name, const Checkpoint& checkpoint) {
    FollowerStatus status{.name = name};
    status.position = static_cast<std::uint64_t>(checkpoint.position);
    status.events = checkpoint.events;
    status.parked = checkpoint.parked;
    status.error = checkpoint.error;
    const locks::Holder holder = application.locks().inspect("$follower-" + name).holder;
    if (!is_long_over(holder, application.runtime().clock.get().now())) status.owner = holder.owner;
    if (!status.error.empty()) status.state = FollowerStatus::State::stopped;
    if (checkpoint.last) {
        Clock& clock = application.runtime().clock;
        status.lag = std::max(clock.now() - *checkpoint.last, Duration::zero());
    }
    return status;
}

/// Whether what is left is nothing that anybody follows: slots of the framework's own.
bool is_through(const feed::Feed& feed, const FollowerStatus& status) {
    constexpr store::Position near = 1000;
    if (status.end - status.position > near) return false;
    feed::Filter filter;
    filter.effects = status.name.starts_with("$deliver-");
    try {
        for (store::Position at = status.position; at < status.end;) {
            const feed::Batch batch = feed.read(at, near, filter);
            if (!batch.events.empty()) return batch.events.front().position > status.end;
            if (batch.is_last) break;
            at = batch.end;
        }
        return true;
    } catch (const CorruptionError&) {
        return false;  // whoever has it will stop there, and say so
    }
}

void change_builds(Application& application, std::string_view follower,
                   const std::function<void(Builds&, Time)>& change) {
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<Builds> rows = tx.rows<Builds>();
        const std::optional<Builds> found = rows.get(follower);
        if (!found && !tx.rows<Checkpoint>().get(follower))
            throw InvalidError("there is no follower '" + std::string{follower} + "' in this store");
        Builds builds = found.value_or(Builds{});
        change(builds, tx.now());
        rows.put(follower, builds);
    };
    own_transaction(application, body).value();
}

void set_paused(Application& application, std::string_view follower, bool paused) {
    change_builds(application, follower, [&](Builds& builds, Time) {
        if (!builds.next)
            throw InvalidError("'" + std::string{follower} +
                               "' is not being rebuilt, so there is nothing to pause or resume");
        builds.paused = paused;
    });
}

}  // namespace

std::vector<FollowerStatus> followers(Application& application) {
    const feed::Feed feed{*parts_of(application).store};
    std::vector<FollowerStatus> found;
    std::map<std::string, Builds> builds;
    for (const RowOf<Builds>& row : application.rows<Builds>().all()) builds.emplace(row.key.partition, row.value);
    for (const RowOf<Checkpoint>& row : application.rows<Checkpoint>().all()) {
        const std::string& text = row.key.partition;
        if (text == StreamRow::follower) continue;
        const NameOfFollower name = split_name(text);
        const auto of_follower = builds.find(name.follower);
        const Builds known = of_follower == builds.end() ? Builds{} : of_follower->second;
        const Build* const build = build_of(known, name.build);
        if (build == nullptr) continue;  // it was replaced
        FollowerStatus& status = found.emplace_back(status_of(application, text, row.value));
        status.name = name.follower;
        status.version = build->version;
        status.build = build->number;
        status.partition = name.partition;
        status.partitions = build->partitions;
        if (build != &known.live) {
            status.paused = known.paused;
            if (status.error.empty()) status.state = FollowerStatus::State::building;
        }
    }
    const store::Position end = feed.end();
    for (FollowerStatus& status : found) {
        status.end = std::max(end, status.position);
        if (is_through(feed, status)) {
            status.position = status.end;
            status.lag = Duration::zero();
        }
    }
    std::ranges::sort(found, {}, [](const FollowerStatus& one) {
        return std::tuple{one.name, one.build, one.partition};
    });
    return found;
}

std::vector<ParkedStream> parked(Application& application, std::string_view follower) {
    std::vector<ParkedStream> parked;
    for (const RowOf<Checkpoint>& checkpoint : application.rows<Checkpoint>().all()) {
        const std::string& name = checkpoint.key.partition;
        if (checkpoint.value.parked == 0 || (name != follower && split_name(name).follower != follower)) continue;
        for (const RowOf<ParkedRow>& row : application.rows<ParkedRow>().range({name})) {
            parked.push_back({.stream = row.key.sort,
                              .version = row.value.version,
                              .type = row.value.type,
                              .error = row.value.error,
                              .since = row.value.since,
                              .id = row.value.id,
                              .attempts = row.value.attempts,
                              .given_up = row.value.given_up});
        }
    }
    std::ranges::sort(parked, {}, &ParkedStream::stream);
    return parked;
}

void rebuild(Application& application, std::string_view follower) {
    change_builds(application, follower, [&](Builds& builds, Time now) {
        if (builds.next && builds.paused)
            throw InvalidError("the rebuild of '" + std::string{follower} + "' is paused; resume it");
        if (builds.next) return;
        if (builds.live.tables.empty()) {
            throw InvalidError("'" + std::string{follower} +
                               "' keeps no rows that can be made anew: their read models do not say kept_by, or it "
                               "has written none");
        }
        builds.begin({.number = builds.live.number,
                      .version = builds.live.version,
                      .partitions = builds.live.partitions,
                      .tables = {}},
                     now);
    });
}

void pause_rebuild(Application& application, std::string_view follower) {
    set_paused(application, follower, true);
}

void resume_rebuild(Application& application, std::string_view follower) {
    set_paused(application, follower, false);
}

}  // namespace varve::operations
