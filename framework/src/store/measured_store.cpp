#include "store/measured_store.h"

#include "telemetry/open_span.h"

#include <iterator>
#include <new>
#include <utility>

namespace varve::store {
namespace {

constexpr Duration fast = std::chrono::microseconds{100};
/// Of fast requests one in so many is timed, and stands for all of them: two looks at the clock would cost more than a
/// store in memory.
constexpr unsigned fast_per_timed = 16;

const char* const names[] = {"read", "read_together", "query", "scan", "write", "write_atomically", "changes"};

}  // namespace

/// How long one request takes, however it ends; a span, if it is part of one.
class MeasuredStore::Timing {
  public:
    Timing(Counts& counts, Runtime runtime, const char* name)
        : counts_(counts), clock_(runtime.clock), was_fast_(counts.is_fast.load(std::memory_order_relaxed)) {
        if (const telemetry::OpenSpan* const within = telemetry::SpanScope::current())
            begin_span(*within, runtime, name);
        const std::uint64_t before = counts.requests.fetch_add(1, std::memory_order_relaxed);
        is_timed_ = !was_fast_ || before % fast_per_timed == 0;
        if (is_timed_) began_ = clock_.steady_now();
    }
    ~Timing() {
        if (span_) span_->end();
        if (!is_timed_) return;
        const Duration took = clock_.steady_now() - began_;
        counts_.duration.record(took, was_fast_ ? fast_per_timed : 1);
        if (was_fast_ != (took < fast)) counts_.is_fast.store(!was_fast_, std::memory_order_relaxed);
    }
    void failed(const char* why) noexcept {
        try {
            if (span_) span_->fail(why);
        } catch (const std::bad_alloc&) {
            // Then it does not say so.
        }
    }
    Timing(const Timing&) = delete;
    Timing& operator=(const Timing&) = delete;

  private:
    void begin_span(const telemetry::OpenSpan& within, Runtime runtime, const char* name) noexcept {
        try {
            span_.emplace(within.tracer(), runtime, within.context(), std::string{"store "} + name,
                          telemetry::Span::Kind::client);
        } catch (const std::exception&) {
            span_.reset();  // no request fails for it
        }
    }

    std::optional<telemetry::OpenSpan> span_;
    Counts& counts_;
    Clock& clock_;
    const bool was_fast_;
    bool is_timed_;
    SteadyTime began_{};
};

MeasuredStore::MeasuredStore(std::shared_ptr<ItemStore> inner, Runtime runtime)
    : inner_(std::move(inner)), runtime_(runtime) {
    static_assert(std::size(names) == requests);
    if (!inner_) throw InvalidError("an application needs a store, and was given none");
}

const ItemStore& unmeasured(const ItemStore& store) {
    const auto* const measured = dynamic_cast<const MeasuredStore*>(&store);
    return measured == nullptr ? store : measured->inner();
}

template <class Call>
auto MeasuredStore::measured(Request request, Call call) {
    Timing timing{of(request), runtime_, names[static_cast<std::size_t>(request)]};
    try {
        return call();
    } catch (const Error& error) {
        timing.failed(error.what());
        failed(request, error.kind());
        throw;
    } catch (...) {
        timing.failed("it threw something else than an Error");
        of(request).failed.back().fetch_add(1, std::memory_order_relaxed);
        throw;
    }
}

void MeasuredStore::failed(Request request, ErrorKind kind) {
    of(request).failed[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::optional<Item>> MeasuredStore::read(std::span<const Key> keys) {
    return measured(Request::read, [&] { return inner_->read(keys); });
}

std::vector<WriteAnswer> MeasuredStore::write(std::span<const Write> writes) {
    std::vector<WriteAnswer> answers = measured(Request::write, [&] { return inner_->write(writes); });
    for (const WriteAnswer& answer : answers) {
        if (std::holds_alternative<Refused>(answer)) refused_.fetch_add(1, std::memory_order_relaxed);
        if (const auto* failure = std::get_if<Failure>(&answer)) failed(Request::write, failure->kind);
    }
    return answers;
}

Page MeasuredStore::query(const Query& query) {
    return measured(Request::query, [&] { return inner_->query(query); });
}

FoundTogether MeasuredStore::read_together(std::span<const Key> keys, std::span<const Query> queries) {
    return measured(Request::read_together, [&] { return inner_->read_together(keys, queries); });
}

Page MeasuredStore::scan(const Scan& scan) {
    return measured(Request::scan, [&] { return inner_->scan(scan); });
}

std::vector<Change> MeasuredStore::changes(const std::string& table, Position after, std::size_t limit) {
    return measured(Request::changes, [&] { return inner_->changes(table, after, limit); });
}

Position MeasuredStore::last_change(const std::string& table) {
    return measured(Request::changes, [&] { return inner_->last_change(table); });
}

AtomicAnswer MeasuredStore::write_atomically(std::span<const Write> writes) {
    AtomicAnswer answer = measured(Request::write_atomically, [&] { return inner_->write_atomically(writes); });
    if (const auto* batch = std::get_if<RefusedBatch>(&answer))
        refused_.fetch_add(batch->refused.size(), std::memory_order_relaxed);
    if (const auto* failure = std::get_if<Failure>(&answer)) failed(Request::write_atomically, failure->kind);
    return answer;
}

std::vector<telemetry::Metric> MeasuredStore::metrics() const {
    using Kind = telemetry::Metric::Kind;
    telemetry::Metric asked{"varve_store_requests_total", "Requests to the store.", Kind::counter};
    telemetry::Metric took{"varve_store_request_duration_seconds",
                           "How long they took. Of those below 0.1 ms one in sixteen is timed, and stands for all.",
                           Kind::histogram};
    telemetry::Metric failures{"varve_store_failures_total",
                               "Requests, and single writes of one, that the store could not answer.", Kind::counter};
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const Counts& counts = counts_[i];
        if (counts.requests == 0) continue;
        const std::pair<std::string, std::string> request{"request", names[i]};
        asked.samples.push_back({{request}, static_cast<double>(counts.requests)});
        took.samples.push_back({{request}, counts.duration.value()});
        for (std::size_t kind = 0; kind < counts.failed.size(); ++kind) {
            const char* const name =
                kind + 1 == counts.failed.size() ? "other" : to_string(static_cast<ErrorKind>(kind));
            failures.samples.push_back({{request, {"kind", name}}, static_cast<double>(counts.failed[kind])});
        }
    }
    return {std::move(asked),
            std::move(took),
            std::move(failures),
            {"varve_store_refused_writes_total",
             "Writes whose condition did not hold: somebody else had been there.",
             Kind::counter,
             {{{}, static_cast<double>(refused_)}}}};
}

}  // namespace varve::store
