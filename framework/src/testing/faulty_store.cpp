#include "testing/describe.h"

#include <varve/core/error.h>
#include <varve/store/adapter.h>
#include <varve/testing/faulty_store.h>

#include <algorithm>
#include <numeric>
#include <type_traits>

namespace varve::testing {

using namespace store;

Network::Network(World world, const FaultRates& rates, const FaultTimes& times)
    : world_(world), times_(times), rates_(rates) {}

void Network::set_rates(const FaultRates& rates) {
    const std::lock_guard lock{mutex_};
    rates_ = rates;
}

FaultCounts Network::counts() const {
    const std::lock_guard lock{mutex_};
    return counts_;
}

std::size_t Network::deliver_all_due() {
    return deliver_until(world_.clock.steady_now());
}

std::size_t Network::deliver_everything() {
    return deliver_until(std::nullopt);
}

bool Network::happens(double FaultRates::*rate, std::uint64_t FaultCounts::*count) {
    const std::lock_guard lock{mutex_};
    if (!world_.random.chance(rates_.*rate)) return false;
    ++(counts_.*count);
    return true;
}

bool Network::throttles() {
    const SteadyTime now = world_.clock.steady_now();
    const std::lock_guard lock{mutex_};
    if (world_.random.chance(rates_.throttled)) throttled_until_ = now + up_to(times_.throttle_max);
    if (!throttled_until_ || now > *throttled_until_) return false;
    ++counts_.throttled;
    return true;
}

Duration Network::up_to(Duration longest) {
    return Duration{static_cast<Duration::rep>(world_.random.below(static_cast<std::uint64_t>(longest.count()) + 1))};
}

void Network::wait_in_vain() {
    world_.clock.sleep_for(times_.timeout);
}

void Network::delay(double FaultRates::*rate, std::uint64_t FaultCounts::*count) {
    if (happens(rate, count)) world_.clock.sleep_for(up_to(times_.latency_max));
}

void Network::deliver_later(SharedRequest request, Duration longest) {
    const SteadyTime due = world_.clock.steady_now() + up_to(longest);
    const std::lock_guard lock{mutex_};
    on_their_way_.emplace(due, std::move(request));
}

void Network::arrived(const SharedRequest& request) {
    const std::lock_guard lock{mutex_};
    if (rates_.any_past_request > 0) past_.push_back(request);
}

void Network::maybe_deliver_again(const SharedRequest& request) {
    if (!happens(&FaultRates::delivered_again, &FaultCounts::delivered_again)) return;
    const std::uint64_t times = 1 + world_.random.below(times_.again_times_max);
    for (std::uint64_t i = 0; i < times; ++i) deliver_later(request, times_.again_after_max);
}

void Network::maybe_deliver_a_past_one() {
    SharedRequest request;
    {
        const std::lock_guard lock{mutex_};
        if (past_.empty() || !world_.random.chance(rates_.any_past_request)) return;
        request = past_[world_.random.below(past_.size())];
        ++counts_.any_past_request;
        ++counts_.deliveries;
    }
    deliver(*request);
}

void Network::deliver(const Request& request) {
    try {
        if (request.atomic) {
            (void)request.to->write_atomically(request.writes);
        } else {
            (void)request.to->write(request.writes);
        }
    } catch (const Error&) {
        // Whoever sent it has stopped listening.
    }
}

std::size_t Network::deliver_until(std::optional<SteadyTime> time) {
    for (std::size_t delivered = 0;; ++delivered) {
        SharedRequest request;
        {
            const std::lock_guard lock{mutex_};
            const auto first = on_their_way_.begin();
            if (first == on_their_way_.end() || (time && first->first > *time)) return delivered;
            request = std::move(first->second);
            on_their_way_.erase(first);
            ++counts_.deliveries;
        }
        deliver(*request);
        arrived(request);
    }
}

namespace {

Failure in_doubt(std::span<const Write> writes, const char* why) {
    return {.kind = ErrorKind::in_doubt, .in_doubt = true, .message = detail::describe(writes.front()) + ": " + why};
}

/// The writes certainly had no effect and never will.
template <class Answer>
bool is_certain_failure(const Answer& answer) {
    const auto* failure = std::get_if<Failure>(&answer);
    return failure != nullptr && !failure->in_doubt;
}

}  // namespace

FaultyStore::FaultyStore(std::shared_ptr<ItemStore> inner, Network& network, const Disguise& disguise)
    : inner_(std::move(inner)), network_(network), disguise_(disguise) {}

std::uint64_t FaultyStore::requests() const {
    const std::lock_guard lock{mutex_};
    return requests_;
}

void FaultyStore::tell(const RequestInfo& info) const {
    if (hook_ && hook_(info) == Next::stop) throw ProcessStopped{info.number};
}

RequestInfo FaultyStore::begin(RequestInfo::Kind kind, std::span<const Write> writes) {
    RequestInfo info{.number = 0, .kind = kind, .moment = RequestInfo::Moment::before, .writes = writes};
    {
        const std::lock_guard lock{mutex_};
        info.number = ++requests_;
    }
    {
        const std::lock_guard lock{network_.mutex_};
        ++network_.counts_.requests;
    }
    tell(info);
    network_.delay(&FaultRates::slow_request, &FaultCounts::slow_request);
    network_.deliver_all_due();
    network_.maybe_deliver_a_past_one();
    return info;
}

void FaultyStore::end(RequestInfo info) {
    info.moment = RequestInfo::Moment::after;
    tell(info);
    network_.delay(&FaultRates::slow_answer, &FaultCounts::slow_answer);
}

/// Splitting a batch into requests must not lose that an invalid write keeps the whole batch from being applied.
void FaultyStore::check_batch(std::span<const Write> writes, Batch kind) {
    check(writes, kind);
    for (const Write& one : writes) {
        std::optional<TableSchema> schema;
        {
            const std::lock_guard lock{network_.mutex_};
            const auto found = network_.schemas_.find(one.key.table);
            if (found != network_.schemas_.end()) schema = found->second;
        }
        if (schema) {
            check(*schema, one, capabilities().item_bytes_max);
        } else {
            (void)inner_->read({&one.key, 1});  // throws if there is no such table, or the key does not fit
        }
    }
}

/// Of updates that let items grow, the store behind knows only its own limit.
std::optional<Failure> FaultyStore::beyond_limit(std::span<const Write> writes) {
    const std::size_t limit = capabilities().item_bytes_max;
    if (limit >= inner_->capabilities().item_bytes_max) return std::nullopt;
    for (const Write& one : writes) {
        const std::optional<Item> current = inner_->read({&one.key, 1}).at(0);
        if (!holds(one.condition, current ? &*current : nullptr)) return std::nullopt;
        const std::optional<Item> after = apply(one, current ? &*current : nullptr);
        if (after && bytes(one.key, *after) > limit) {
            return Failure{.kind = ErrorKind::invalid,
                           .in_doubt = false,
                           .message = too_large(one.key, bytes(one.key, *after), limit)};
        }
    }
    return std::nullopt;
}

template <class Answer, class Apply>
Answer FaultyStore::send(std::span<const Write> writes, bool& in_vain, Apply apply_now) {
    constexpr bool atomic = std::is_same_v<Answer, AtomicAnswer>;
    const RequestInfo info = begin(atomic ? RequestInfo::Kind::write_atomically : RequestInfo::Kind::write, writes);
    if (network_.throttles()) {
        end(info);
        return Failure{.kind = ErrorKind::unavailable, .in_doubt = false, .message = "too many requests"};
    }
    if (network_.happens(&FaultRates::request_lost, &FaultCounts::request_lost)) {
        end(info);
        in_vain = true;
        return in_doubt(writes, "no answer in time (the request was lost)");
    }
    const auto request =
        std::make_shared<const Network::Request>(Network::Request{inner_, {writes.begin(), writes.end()}, atomic});
    if (network_.happens(&FaultRates::request_late, &FaultCounts::request_late)) {
        network_.deliver_later(request, network_.times_.delay_max);
        network_.maybe_deliver_again(request);
        end(info);
        in_vain = true;
        return in_doubt(writes, "no answer in time (the request is late)");
    }
    if (network_.happens(&FaultRates::error_without_effect, &FaultCounts::error_without_effect)) {
        network_.arrived(request);
        network_.maybe_deliver_again(request);
        end(info);
        return in_doubt(writes, "internal error (without effect)");
    }
    if (auto failure = beyond_limit(writes)) {
        end(info);
        return *std::move(failure);
    }
    Answer answer = apply_now();
    if (is_certain_failure(answer)) {
        end(info);
        return answer;
    }
    if (network_.happens(&FaultRates::answered_again, &FaultCounts::answered_again)) {
        network_.world_.clock.sleep_for(network_.up_to(network_.times_.latency_max));
        answer = apply_now();
    }
    network_.arrived(request);
    network_.maybe_deliver_again(request);
    end(info);
    if (network_.happens(&FaultRates::answer_lost, &FaultCounts::answer_lost)) {
        in_vain = true;
        return in_doubt(writes, "no answer in time (the answer was lost)");
    }
    if (network_.happens(&FaultRates::error_with_effect, &FaultCounts::error_with_effect)) {
        return in_doubt(writes, "internal error (with effect)");
    }
    return answer;
}

template <class Call>
auto FaultyStore::ask(RequestInfo::Kind kind, Call call) {
    const RequestInfo info = begin(kind);
    const bool throttled = network_.throttles();
    if (throttled || network_.happens(&FaultRates::read_failed, &FaultCounts::read_failed)) {
        end(info);
        throw UnavailableError(throttled ? "too many requests" : "the store could not be read");
    }
    auto answer = call();
    end(info);
    return answer;
}

void FaultyStore::ensure_table(const TableSchema& schema) {
    inner_->ensure_table(schema);
    const std::lock_guard lock{network_.mutex_};
    network_.schemas_.insert_or_assign(schema.name, schema);
}

bool FaultyStore::has_table(const TableSchema& schema) {
    if (!inner_->has_table(schema)) return false;
    const std::lock_guard lock{network_.mutex_};
    network_.schemas_.insert_or_assign(schema.name, schema);
    return true;
}

std::vector<std::optional<Item>> FaultyStore::read(std::span<const Key> keys) {
    return ask(RequestInfo::Kind::read, [&] { return inner_->read(keys); });
}

std::vector<WriteAnswer> FaultyStore::write(std::span<const Write> writes) {
    check_batch(writes, Batch::independent);
    std::vector<std::size_t> order(writes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // std::shuffle is another one on every platform.
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[network_.world_.random.below(i)]);

    bool in_vain = false;
    std::vector<WriteAnswer> answers(writes.size());
    for (const std::size_t i : order) {
        const std::span<const Write> one = writes.subspan(i, 1);
        answers[i] =
            send<WriteAnswer>(one, in_vain, [&]() -> WriteAnswer { return std::move(inner_->write(one).at(0)); });
    }
    if (in_vain) network_.wait_in_vain();
    return answers;
}

AtomicAnswer FaultyStore::write_atomically(std::span<const Write> writes) {
    if (disguise_.atomic_writes_max == 0) return ItemStore::write_atomically(writes);
    if (writes.empty()) return inner_->write_atomically(writes);
    check_batch(writes, Batch::atomic);
    if (writes.size() > disguise_.atomic_writes_max) {
        throw InvalidError("an atomic batch of " + std::to_string(writes.size()) + " writes, at most " +
                           std::to_string(disguise_.atomic_writes_max) + " are allowed");
    }
    bool in_vain = false;
    AtomicAnswer answer = send<AtomicAnswer>(writes, in_vain, [&] { return inner_->write_atomically(writes); });
    if (in_vain) network_.wait_in_vain();
    return answer;
}

// Tokens of pages: 'n' and the token of the store behind, or 's' for a start from which nothing was given yet.
template <class Request, class Call>
Page FaultyStore::page_of(Request request, Call call) {
    if (request.next) {
        if (*request.next == "s") {
            request.next.reset();
        } else if (request.next->starts_with('n')) {
            request.next->erase(0, 1);
        } else {
            throw InvalidError("the continuation `next` belongs to no page of table '" + request.table + "'");
        }
    }
    if (request.limit > 0 && network_.happens(&FaultRates::small_page, &FaultCounts::small_page)) {
        const std::size_t size = network_.world_.random.below(4);
        if (size == 0) {
            // Asked all the same, so that what is invalid is found out.
            (void)call(request);
            const std::lock_guard lock{network_.mutex_};
            ++network_.counts_.empty_page;
            return {.records = {}, .next = request.next ? "n" + *request.next : "s"};
        }
        request.limit = std::min(request.limit, size);
    }
    Page page = call(request);
    if (page.next) page.next->insert(page.next->begin(), 'n');
    return page;
}

Page FaultyStore::query(const Query& query) {
    return ask(RequestInfo::Kind::query,
               [&] { return page_of(query, [&](const Query& page) { return inner_->query(page); }); });
}

Page FaultyStore::scan(const Scan& scan) {
    return ask(RequestInfo::Kind::scan,
               [&] { return page_of(scan, [&](const Scan& page) { return inner_->scan(page); }); });
}

Capabilities FaultyStore::capabilities() const {
    Capabilities capabilities = inner_->capabilities();
    capabilities.item_bytes_max = std::min(capabilities.item_bytes_max, disguise_.item_bytes_max);
    capabilities.atomic_writes_max = std::min(capabilities.atomic_writes_max, disguise_.atomic_writes_max);
    if (disguise_.no_changes) capabilities.ordered_changes = false;
    return capabilities;
}

std::vector<Change> FaultyStore::changes(const std::string& table, Position after, std::size_t limit) {
    if (disguise_.no_changes) return ItemStore::changes(table, after, limit);
    return ask(RequestInfo::Kind::changes, [&] { return inner_->changes(table, after, limit); });
}

Position FaultyStore::last_change(const std::string& table) {
    if (disguise_.no_changes) return ItemStore::last_change(table);
    return ask(RequestInfo::Kind::changes, [&] { return inner_->last_change(table); });
}

std::shared_ptr<void> FaultyStore::watch(const std::string& table, std::function<void()> changed) {
    return inner_->watch(table, std::move(changed));
}

}  // namespace varve::testing
