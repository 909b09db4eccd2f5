#include "command_runner.h"
#include "lanes.h"

#include <varve/commands/application.h>
#include <varve/core/error.h>
#include <varve/transactions/sweeper.h>
#include <varve/transactions/system_table.h>

#include <set>

namespace varve {

using namespace transactions;

namespace {

const ApplicationOptions& checked(const ApplicationOptions& options) {
    const std::pair<const char*, Duration> times[] = {
        {"retry.first_delay", options.retry.first_delay},
        {"retry.delay_max", options.retry.delay_max},
        {"retry.time_max", options.retry.time_max},
        {"escalation.queue_time_max", options.escalation.queue_time_max},
        {"sweep_interval", options.sweep_interval},
        {"scan.page_interval", options.scan.page_interval},
        {"scan.pause", options.scan.pause},
    };
    for (const auto& [name, time] : times) {
        if (time >= Duration::zero()) continue;
        throw ConfigError(std::string{"ApplicationOptions::"} + name + " is " + to_string(time) +
                          "; a time to wait cannot be negative");
    }
    if (options.sweep && options.sweep_interval == Duration::zero()) {
        throw ConfigError(
            "ApplicationOptions::sweep_interval is 0 s: the sweeper would ask the store without a pause; to have none, "
            "set sweep to false");
    }
    return options;
}

store::ItemStore& prepared(store::ItemStore& store) {
    check_format(store);
    store.ensure_table(events_table());
    store.ensure_table(locks::locks_table());  // a command that has to queue should not be the first to make it
    return store;
}

}  // namespace

Application::Application(std::shared_ptr<store::ItemStore> store, ApplicationOptions options)
    : store_(std::move(store)),
      options_(checked(options)),
      threads_(options.executor ? nullptr : make_thread_executor(options.background_threads, options.runtime)),
      executor_(options.executor ? *options.executor : *threads_),
      coordinator_(prepared(*store_), options.runtime, executor_, options.transactions),
      locks_(store_, options.locks, options.runtime),
      turns_(store_, {.heartbeat_thread = false}, options.runtime),
      row_tables_(*store_),
      repository_(coordinator_, executor_, options.cache_bytes_max),
      events_(coordinator_, options.retry),
      runner_(std::make_unique<detail::CommandRunner>(repository_, coordinator_, row_tables_, projections_, turns_,
                                                      options.retry, options.escalation)),
      lanes_(std::make_unique<detail::Lanes>(*runner_, options.runtime, options.executor, options.lanes)) {
    if (options.sweep) {
        sweeper_ = std::jthread{[this](const std::stop_token& stop) { sweep(stop); }};
    }
}

Application::~Application() {
    sweeper_ = {};
    lanes_->drain();
    executor_.drain();
}

Outcome Application::run(const std::function<void(Transaction&)>& body, const CommandOptions& options) {
    if (options.expected_version) {
        throw InvalidError("expected_version is for execute; in a transaction compare tx.version<A>(id) yourself");
    }
    runner_->check("transact", options);
    begin_command();
    detail::Command command{.body = body,
                            .options = options,
                            .began = options_.runtime.clock.get().now(),
                            .fingerprint = options.command_id.empty()
                                               ? std::string{}
                                               : detail::fingerprint({}, "transact", options.contents)};
    detail::Command* const only = &command;
    runner_->run({&only, 1});
    if (command.failure) std::rethrow_exception(command.failure);
    return std::move(*command.outcome);
}

Outcome Application::execute(const std::string& stream, const std::function<void(Transaction&)>& body,
                             const CommandOptions& options, std::string fingerprint) {
    begin_command();
    return lanes_->execute(stream, body, options, std::move(fingerprint));
}

std::future<Outcome> Application::submit(const std::string& stream, std::function<void(Transaction&)> body,
                                         CommandOptions options, std::string fingerprint) {
    begin_command();
    return lanes_->submit(stream, std::move(body), std::move(options), std::move(fingerprint));
}

const LaneMetrics& Application::lane_metrics() const {
    return lanes_->metrics();
}

void Application::reject_version(const std::string& stream, Version actual, Version expected) {
    throw detail::Rejected{{.code = "wrong_version",
                            .message = stream + " is at version " + std::to_string(actual) + ", the command expects " +
                                       std::to_string(expected)}};
}

aggregates::Folded Application::load_as_of(const AggregateType& type, const std::string& stream, AsOf as_of) {
    if (const auto* version = std::get_if<Version>(&as_of.point)) return repository_.load_at(type, stream, *version);
    return repository_.load_as_of(type, stream, std::get<Time>(as_of.point));
}

void Application::add_projection(const AggregateType& aggregate, const NamedType& projection,
                                 std::function<void(Transaction&, const DecidedEvent&)> run) {
    const auto refuse = [&](const std::string& why) {
        throw ConfigError("the projection " + std::string{projection.cpp_name} + " of " +
                          std::string{aggregate.named.cpp_name} + " " + why);
    };
    if (commanded_) {
        refuse(
            "comes after the first command, whose events it would miss; call project() before any execute, submit "
            "or transact");
    }
    repository_.meet(aggregate);
    const auto [first, last] = projections_.equal_range(aggregate.named.name);
    for (auto other = first; other != last; ++other) {
        if (other->second.kind == projection.type) {
            refuse(
                "is registered twice, so each event would count twice; give the second one a type of its own if it "
                "does something else");
        }
    }
    events_.has_projections(aggregate.named.name);
    projections_.emplace(aggregate.named.name, detail::InlineProjection{projection.type, std::move(run)});
}

void Application::sweep(const std::stop_token& stop) {
    std::unique_ptr<Sweeper> sweeper;
    std::set<std::string, std::less<>> tables;
    // A program that runs for a moment leaves this to those that stay.
    SteadyTime collects_at = options_.runtime.clock.get().steady_now() + std::chrono::minutes{1};
    while (!stop.stop_requested()) {
        try {
            if (auto names = row_tables_.names(); names != tables) {
                sweeper.reset();
                tables = std::move(names);
            }
            if (!sweeper) {
                sweeper =
                    std::make_unique<Sweeper>(coordinator_, std::vector(tables.begin(), tables.end()), options_.scan);
            }
            sweeper->sweep();
            const SteadyTime now = options_.runtime.clock.get().steady_now();
            if (now >= collects_at && locks_.collect_page()) collects_at = now + std::chrono::hours{1};
        } catch (const std::exception& error) {
            try_to_log(options_.runtime.log, LogLevel::warning,
                       [&] { return std::string{"the sweeper will try again: "} + error.what(); });
        }
        options_.runtime.clock.get().sleep_for(options_.sweep_interval, stop);
    }
}

}  // namespace varve
