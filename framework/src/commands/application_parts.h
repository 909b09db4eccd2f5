#pragma once

#include "aggregates/repository.h"
#include "commands/command_metrics.h"
#include "commands/command_runner.h"
#include "commands/followers.h"
#include "commands/inline_projections.h"
#include "commands/lanes.h"
#include "commands/row_tables.h"
#include "commands/stream_catalogue.h"
#include "core/background_loop.h"
#include "store/measured_store.h"
#include "transactions/coordinator.h"

#include <varve/commands/application.h>
#include <varve/core/own_process.h>
#include <varve/events/event_store.h>
#include <varve/locks/locks.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace varve::detail {

/// What an Application is made of, in the order in which it comes into being.
struct ApplicationParts final : RowsOfStore {
    ApplicationParts(Application& application, std::shared_ptr<store::ItemStore> store, ApplicationOptions options);
    ApplicationParts(const ApplicationParts&) = delete;
    ApplicationParts& operator=(const ApplicationParts&) = delete;

    void ensure(const RowTable& table) override { row_tables.ensure(table); }
    std::vector<std::optional<std::string>> read(const RowTable& table, const std::vector<RowKey>& keys,
                                                 transactions::Isolation isolation) override;
    StoredPage range(const RowTable& table, const RowRange& range, const PageOptions& page,
                     transactions::Isolation isolation) override;
    StoredPage all(const RowTable& table, const PageOptions& page, transactions::Isolation isolation) override;
    /// Which builds of a follower there are now.
    Builds builds(std::string_view follower);
    /// Where those rows are that are read now: the table itself if it has no builds.
    const RowTable& live_build(const RowTable& table);
    std::optional<StoredRow> find(const RowTable& table, const IndexRange& entry) override;
    StoredPage indexed(const RowTable& table, const IndexRange& range, const PageOptions& page) override;

    Outcome transact(CommandMetrics::OfAggregate& counted_with, std::optional<telemetry::OpenSpan> span,
                     const std::function<void(Transaction&)>& body, const CommandOptions& options);
    /// From here on it is too late for another projection.
    void begin_command() {
        if (!commanded.load(std::memory_order_relaxed)) commanded = true;
    }
    void project(AggregateProjection projection);
    /// What the command has written is committed; now it also stands where others read it in order. False: it is not so
    /// far when the time is over, since the store does not answer.
    bool put_in_place(const Receipt& receipt, SteadyTime until);
    /// Returns when nothing runs any more. Once, and last: until then bodies may still use the application.
    void end();

  private:
    StoredPage range_in(const RowTable& table, const RowRange& range, const PageOptions& options,
                        transactions::Isolation isolation);
    StoredPage all_in(const RowTable& table, const PageOptions& options, transactions::Isolation isolation);
    std::optional<StoredRow> find_in(const RowTable& table, const IndexRange& range);
    StoredPage indexed_in(const RowTable& table, const IndexRange& range, const PageOptions& options);
    /// What `read` finds in the build that is live when it has been read.
    template <class Read>
    auto read_live(const RowTable& table, const Read& read);
    /// The same for a page, whose list stays in the build that it began in.
    template <class Read>
    StoredPage paged(const RowTable& table, const PageOptions& options, const Read& read);

  public:
    Application& application;
    const ApplicationOptions options;
    const std::shared_ptr<store::MeasuredStore> store;
    const std::unique_ptr<Executor> threads;  // unless the options bring one
    Executor& executor;
    transactions::Coordinator coordinator;
    Locks locks;
    Locks turns;  // of commands that keep losing
    RowTables row_tables;
    aggregates::Repository repository;
    EventStore events;
    InlineProjections projections;
    std::atomic<bool> commanded = false;
    std::atomic<bool> awaited_in_order = false;  // somebody waits for the sequencer
    std::unique_ptr<Followers> followers = std::make_unique<Followers>();
    CommandMetrics metrics;
    CommandRunner runner;
    std::unique_ptr<Lanes> lanes;
    StreamCatalogue streams;
    OwnProcess process;
    BackgroundLoop sweeper;  // these two last: they use all the others
    BackgroundLoop sequencer;
};

/// A transaction of the framework's own: a follower's, a timer's. It is counted apart from those of users, and is no
/// span.
Outcome own_transaction(Application& application, const std::function<void(Transaction&)>& body);

}  // namespace varve::detail
