#include "../transactions/mutants.h"

#include <varve/commands/application.h>
#include <varve/core/error.h>
#include <varve/core/ids.h>
#include <varve/core/json.h>
#include <varve/transactions/sweeper.h>
#include <varve/transactions/system_table.h>

#include <algorithm>

namespace varve {

using namespace transactions;

namespace {

constexpr std::size_t command_id_bytes_max = 200;
constexpr const char* receipt_attribute = "receipt";

// A command that was executed under an id leaves slot 1 of the stream "$cmd-<id>", written in its transaction:
//
//     payload := receipt                     (JSON text: [{"stream":…,"version":…}, …])
store::Key command_slot(const std::string& command_id) {
    return slot_key("$cmd-" + command_id, 1);
}

Receipt receipt_of(const Plan& plan, const Commit& commit, unsigned attempts) {
    Receipt receipt{.transaction = commit.path == Path::nothing ? std::string{} : commit.tx,
                    .written = {},
                    .primary = {},
                    .path = commit.path,
                    .attempts = attempts};
    for (const SlotWrite& slot : plan.slots) {
        if (!is_internal(slot.key.partition)) receipt.written.push_back({slot.key.partition, version_of(slot.key)});
    }
    if (!commit.primary.partition.empty()) receipt.primary = {commit.primary.partition, version_of(commit.primary)};
    for (const HeldSlot& slot : plan.held) {
        if (slot.payload) receipt.written.push_back({slot.key.partition, version_of(slot.key)});
    }
    return receipt;
}

store::ItemStore& prepared(store::ItemStore& store) {
    check_format(store);
    store.ensure_table(events_table());
    return store;
}

Receipt repeated_receipt(const std::string& command_id, const Committed& slot) {
    const std::string* text = store::text(slot.payload, receipt_attribute);
    auto written = json::decode<std::vector<Receipt::Written>>(text ? *text : "");
    if (!written) {
        throw CorruptionError("the receipt of command '" + command_id + "' cannot be read: " + written.error().message);
    }
    return {.transaction = slot.write_id, .written = std::move(*written), .repeated = true};
}

Metadata metadata_of(const CommandOptions& options) {
    return {.command_id = options.command_id,
            .correlation = options.correlation.empty() ? options.command_id : options.correlation,
            .causation = options.causation,
            .headers = options.headers};
}

/// One single read is of one moment as it is.
bool is_one_read(const Plan& plan) {
    return plan.writes() == 0 && plan.on_primary.empty() && plan.ranges_read.empty() &&
           plan.heads_read.size() + plan.rows_read.size() <= 1;
}

}  // namespace

Application::Application(std::shared_ptr<store::ItemStore> store, ApplicationOptions options)
    : store_(std::move(store)),
      options_(options),
      threads_(options.executor ? nullptr : make_thread_executor(options.background_threads, options.runtime)),
      executor_(options.executor ? *options.executor : *threads_),
      coordinator_(prepared(*store_), options.runtime, executor_, options.transactions),
      locks_(store_, options.locks, options.runtime),
      row_tables_(*store_),
      repository_(coordinator_, options.remembered_aggregates_max),
      events_(coordinator_, options.retry) {
    if (options.sweep && store_->capabilities().ordered_changes) {
        sweeper_ = std::jthread{[this](const std::stop_token& stop) { sweep(stop); }};
    }
}

Application::~Application() {
    sweeper_ = {};
    executor_.drain();
}

Outcome Application::transact(const std::function<void(Transaction&)>& body, const CommandOptions& options) {
    if (options.expected_version) {
        throw InvalidError("expected_version is for execute; in a transaction compare tx.version<A>(id) yourself");
    }
    return run(body, options);
}

Outcome Application::run(const std::function<void(Transaction&)>& body, const CommandOptions& options) {
    if (options.command_id.size() > command_id_bytes_max) {
        throw InvalidError("a command id has at most " + std::to_string(command_id_bytes_max) +
                           " bytes, this one has " + std::to_string(options.command_id.size()));
    }
    Command command{
        .body = body, .options = options, .began = options_.runtime.clock.now(), .attempts = 1, .streams = {}};
    for (Backoff backoff{options_.retry, options_.runtime};;) {
        command.attempts = backoff.attempts();
        Conflict conflict{};
        try {
            std::variant<Outcome, Conflict> result = attempt(command);
            if (auto* outcome = std::get_if<Outcome>(&result)) return std::move(*outcome);
            conflict = std::move(std::get<Conflict>(result));
        } catch (const BlockedError& error) {
            conflict = {.what = error.what(), .over = false};
        }
        if (!(conflict.over ? backoff.next_at_once() : backoff.next())) {
            throw ConflictError("gave up after " + std::to_string(backoff.attempts()) +
                                " attempts; the last one met this: " + conflict.what);
        }
    }
}

std::variant<Outcome, Conflict> Application::attempt(Command& command) {
    const std::string id =
        VARVE_MUTANT("one id for all attempts") ? "tx-" + to_string(command.began) : uuid7(options_.runtime);
    std::optional<Reservation> reservation;
    if (command.attempts > options_.transactions.escalate_after) {
        reservation.emplace(coordinator_, id, command.began);
        for (const std::string& stream : command.streams) reservation->hold(stream);
    }
    Transaction tx{
        repository_, coordinator_, row_tables_, projections_, id, command.began, reservation ? &*reservation : nullptr};

    const std::string& command_id = command.options.command_id;
    StreamRead executed;
    if (!command_id.empty()) executed = tx.reader_.stream(command_slot(command_id).partition, 1);
    if (executed.head > 0) return Outcome{repeated_receipt(command_id, executed.slots.front().content)};

    if (command.options.fenced_by != nullptr) tx.fenced_by(*command.options.fenced_by);
    try {
        command.body(tx);
    } catch (const detail::Rejected& rejected) {
        tx.rejection_ = rejected.rejection;
    }
    for (const auto& [stream, touched] : tx.aggregates_) command.streams.insert(stream);

    // A rejection, too, must not rest on a combination of things that never was: what it read is validated, nothing
    // written.
    const bool rejected = tx.rejection_.has_value();  // also if the body caught what ended it
    Plan plan = rejected ? tx.reads() : tx.plan(metadata_of(command.options));
    if (rejected && !command_id.empty()) {
        // Executed meanwhile under this id: the next attempt returns what it did then.
        plan.heads_read.push_back({command_slot(command_id)});
    } else if (!command_id.empty()) {
        store::Item payload{{receipt_attribute, json::encode(receipt_of(plan, {}, 0).written)}};
        plan.slots.push_back({command_slot(command_id), executed.next.epoch, std::move(payload)});
    }
    Commit commit{.tx = {}, .path = Path::nothing};
    if (!is_one_read(plan) || !tx.fences_.empty()) {
        if (reservation && !rejected) reservation->hand_over();
        std::variant<Commit, Conflict> result = coordinator_.commit(plan, id, command.began);
        if (auto* conflict = std::get_if<Conflict>(&result)) {
            tx.check_fences();
            return std::move(*conflict);
        }
        commit = std::move(std::get<Commit>(result));
    }
    if (rejected && reservation && !reservation->is_alive()) {
        return Conflict{.what = "the reservation was ended by somebody else", .over = true};
    }
    if (rejected) return Outcome{std::move(*tx.rejection_)};
    return Outcome{receipt_of(plan, commit, command.attempts)};
}

void Application::check_version(const std::string& stream, Version actual, Version expected) {
    if (actual == expected) return;
    throw detail::Rejected{{.code = "wrong_version",
                            .message = stream + " is at version " + std::to_string(actual) + ", the command expects " +
                                       std::to_string(expected)}};
}

aggregates::Folded Application::load_as_of(const AggregateType& type, const std::string& stream, AsOf as_of) {
    if (const auto* version = std::get_if<Version>(&as_of.point)) return repository_.load_at(type, stream, *version);
    return repository_.load_as_of(type, stream, std::get<Time>(as_of.point));
}

void Application::add_projection(std::string_view aggregate,
                                 std::function<void(Transaction&, const DecidedEvent&)> projection) {
    projections_.emplace(aggregate, std::move(projection));
}

void Application::sweep(const std::stop_token& stop) {
    std::unique_ptr<Sweeper> sweeper;
    std::set<std::string, std::less<>> tables;
    while (!stop.stop_requested()) {
        try {
            if (auto names = row_tables_.names(); names != tables) {
                sweeper.reset();
                tables = std::move(names);
            }
            if (!sweeper) sweeper = std::make_unique<Sweeper>(coordinator_, std::vector(tables.begin(), tables.end()));
            sweeper->sweep();
        } catch (const std::exception& error) {
            options_.runtime.log.write(LogLevel::warning, std::string{"the sweeper will try again: "} + error.what());
        }
        options_.runtime.clock.sleep_for(options_.sweep_interval, stop);
    }
}

}  // namespace varve
