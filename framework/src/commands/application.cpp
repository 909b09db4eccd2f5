#include "commands/application_parts.h"
#include "commands/index_builder.h"
#include "commands/verification.h"
#include "commands/workspace.h"
#include "transactions/sweeper.h"

#include <varve/commands/application.h>
#include <varve/commands/parked_stream.h>
#include <varve/commands/stream_list.h>
#include <varve/core/error.h>
#include <varve/events/event_store.h>
#include <varve/locks/locks.h>

#include <algorithm>
#include <set>
#include <utility>

namespace varve {

using namespace transactions;

Application::Application(std::shared_ptr<store::ItemStore> store, ApplicationOptions options)
    : parts_(std::make_unique<detail::ApplicationParts>(*this, std::move(store), options)) {}

Application::~Application() {
    parts_->end();
}

Outcome Application::run(const std::function<void(Transaction&)>& body, const CommandOptions& options) {
    if (options.expected_version) {
        throw InvalidError("expected_version is for execute; in a transaction compare tx.version<A>(id) yourself");
    }
    return parts_->transact(parts_->metrics.of_transactions(), parts_->runner.begin_span(options, "transact"), body,
                            options);
}

Outcome Application::execute(const AggregateType& type, const std::string& stream,
                             const std::function<void(Transaction&)>& body, const CommandOptions& options,
                             std::string fingerprint) {
    parts_->begin_command();
    return parts_->lanes->execute(parts_->metrics.of(type.named.name), stream, body, options, std::move(fingerprint));
}

std::future<Outcome> Application::submit(const AggregateType& type, const std::string& stream,
                                         std::function<void(Transaction&)> body, CommandOptions options,
                                         std::string fingerprint) {
    parts_->begin_command();
    return parts_->lanes->submit(parts_->metrics.of(type.named.name), stream, std::move(body), std::move(options),
                                 std::move(fingerprint));
}

Application::LoadedState Application::load(const AggregateType& type, std::string_view id) {
    aggregates::Folded folded = parts_->repository.load(type, stream_name(type, id));
    return {std::move(folded.state), folded.head};
}

Application::LoadedState Application::load(const AggregateType& type, std::string_view id, AsOf as_of) {
    const std::string stream = stream_name(type, id);
    const auto* version = std::get_if<Version>(&as_of.point);
    aggregates::Folded folded = version != nullptr
                                    ? parts_->repository.load_at(type, stream, *version)
                                    : parts_->repository.load_as_of(type, stream, std::get<Time>(as_of.point));
    return {std::move(folded.state), folded.head};
}

Stream Application::load_stream(const std::string& stream) {
    return events().load(stream);
}

StreamPage Application::load_stream(const std::string& stream, const PageOptions& page, Order order) {
    return events().load(stream, page, order);
}

SnapshotCheck Application::check_snapshot(const AggregateType& type, std::string_view id) {
    return parts_->repository.check_snapshot(type, stream_name(type, id));
}

StreamListPage Application::streams(std::string_view prefix, const PageOptions& page) {
    parts_->runner.check("streams", {});
    parts_->begin_command();
    return parts_->streams.page(prefix, page);
}

void Application::project(detail::AggregateProjection projection) {
    parts_->project(std::move(projection));
}

void Application::follow(std::string_view name, std::vector<detail::AggregateProjection> projections,
                         const FollowOptions& options) {
    for (const detail::AggregateProjection& one : projections) parts_->repository.meet(one.aggregate);
    parts_->begin_command();
    parts_->followers->add(*this, detail::consumer_of(name, std::move(projections), options));
}

void Application::subscribe(const std::string& name, std::function<void(std::span<const RecordedEvent>)> handle,
                            const SubscribeOptions& options) {
    if (!handle) throw ConfigError("the subscription '" + name + "' has no handler");
    parts_->begin_command();
    parts_->followers->add(*this, {.name = name,
                                   .filter = {.aggregates = {options.aggregates.begin(), options.aggregates.end()},
                                              .types = {options.types.begin(), options.types.end()}},
                                   .start_at = options.start_at,
                                   .after = options.after,
                                   .ephemeral = options.ephemeral,
                                   .options = options.follow,
                                   .project = {},
                                   .handle = std::move(handle)});
}

bool Application::wait_for(std::string_view follower, const Receipt& receipt, Duration patience) {
    const std::shared_ptr<detail::Keeper> found = parts_->followers->keeper(follower);
    const SteadyTime until = runtime().clock.get().until(patience);
    return parts_->put_in_place(receipt, until) && found->wait(receipt, until) && !found->has_parked(receipt);
}

std::vector<ParkedStream> Application::parked(std::string_view follower) {
    std::vector<ParkedStream> parked;
    for (const std::shared_ptr<detail::Follower>& one : parts_->followers->get(follower)) {
        for (ParkedStream& stream : one->parked()) parked.push_back(std::move(stream));
    }
    return parked;
}

std::size_t Application::retry_parked(std::string_view follower) {
    const std::vector<std::shared_ptr<detail::Follower>> all = parts_->followers->get(follower);
    for (const std::shared_ptr<detail::Follower>& one : all)
        one->check_is_outside("cannot take up what it has set aside");
    std::size_t live = 0;
    for (const std::shared_ptr<detail::Follower>& one : all) live += one->retry_parked();
    return live;
}

std::vector<FollowerStatus> Application::followers() {
    return parts_->followers->statuses();
}

Verified Application::verify(std::string_view follower, std::size_t bytes_max) {
    return verify(follower, nullptr, bytes_max);
}

Verified Application::verify(std::string_view name, const std::type_info* type, std::size_t bytes_max) {
    using detail::Verification;
    if (type != nullptr) {
        std::vector<detail::AggregateProjection> projections = parts_->projections.of_type(*type);
        if (!projections.empty()) {
            return Verification{*this, detail::consumer_of(name, std::move(projections), {}),
                                Verification::Kind::inline_, bytes_max}
                .run();
        }
    }
    const std::shared_ptr<detail::Keeper> keeper = parts_->followers->keeper(name);
    for (;;) {
        const detail::Consumer live = keeper->live_consumer();
        try {
            return Verification{*this, live, Verification::Kind::follows, bytes_max}.run();
        } catch (const UnavailableError&) {
            if (keeper->live_consumer().build->number == live.build->number) throw;  // else it was rebuilt meanwhile
        }
    }
}

void Application::rebuild(std::string_view follower) {
    parts_->followers->keeper(follower)->rebuild();
}

void Application::pause_rebuild(std::string_view follower) {
    parts_->followers->keeper(follower)->set_paused(true);
}

void Application::resume_rebuild(std::string_view follower) {
    parts_->followers->keeper(follower)->set_paused(false);
}

void Application::unfollow(std::string_view name) {
    if (!parts_->followers->remove(name))
        throw InvalidError("there is no follower '" + std::string{name} + "' in this application");
}

std::size_t Application::refold(const AggregateType& type, std::string_view id) {
    std::size_t differed = 0;
    transact([&](Transaction& tx) { differed = detail::Workspace::of(tx).refold(type, id); }).value();
    return differed;
}

std::size_t Application::build_indexes(const detail::RowTable& table, OldPrograms old) {
    return detail::IndexBuilder{*this, table}.build(old);
}

transactions::Verdict Application::resolve(const TransactionHandle& transaction) {
    return parts_->coordinator.resolve(transaction);
}

bool Application::settle(Duration patience) {
    constexpr ScanOptions without_pauses{.page_interval = Duration{0}, .pause = Duration{0}};
    const std::set<std::string, std::less<>> tables = parts_->row_tables.names_in_store();
    Sweeper sweeper{parts_->coordinator, std::vector(tables.begin(), tables.end()), without_pauses};
    Clock& clock = runtime().clock;
    const SteadyTime until = clock.until(patience);
    for (;;) {
        const std::size_t left = sweeper.sweep();
        if (left == 0 && sweeper.is_through()) return true;
        if (left == 0) continue;  // a long history
        if (clock.steady_now() >= until) return false;
        clock.sleep_for(std::chrono::milliseconds{50});
    }
}

detail::RowsOfStore& Application::stored_rows() {
    return *parts_;
}

Locks& Application::locks() {
    return parts_->locks;
}

EventStore& Application::events() {
    return parts_->events;
}

store::ItemStore& Application::store() {
    return parts_->store->inner();
}

const Runtime& Application::runtime() const {
    return parts_->options.runtime;
}

const transactions::Metrics& Application::metrics() const {
    return parts_->coordinator.metrics();
}

const aggregates::CacheMetrics& Application::cache_metrics() const {
    return parts_->repository.cache_metrics();
}

const LaneMetrics& Application::lane_metrics() const {
    return parts_->lanes->metrics();
}

}  // namespace varve
