#include "serve/api.h"

#include "reports.h"
#include "serve/page.h"

#include <varve/commands/follower_status.h>
#include <varve/commands/parked_stream.h>
#include <varve/core/json.h>
#include <varve/events/event_store.h>
#include <varve/operations/doctor.h>
#include <varve/operations/events.h>
#include <varve/operations/followers.h>
#include <varve/operations/locks.h>
#include <varve/operations/timers.h>
#include <varve/operations/transactions.h>

#if VARVE_PROMETHEUS
#include <varve/prometheus/prometheus.h>
#include <varve/telemetry/metric.h>
#endif

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <set>
#include <vector>

namespace varve::console::serve {

namespace {

using Query = std::map<std::string, std::string>;

/// An answer's events have no more than this, unless one of them alone has.
constexpr std::size_t answer_bytes_max = 4 << 20;

struct AboutReport {
    std::string program;
    std::string version;
    std::string store;  // its scheme
    bool writes = false;
    std::vector<std::string> code;  // followers whose code the program has
    std::optional<std::uint64_t> position = {};
    Time time = {};
};

struct StreamReport {
    std::string stream;
    Time since;
};
struct StreamsReport {
    std::vector<StreamReport> streams;
    bool more = false;
    bool complete = false;
    std::uint64_t position = 0;
    std::uint64_t end = 0;
};

struct EffectReport {
    Version version = 0;
    std::string id;
    std::string type;
    int schema = 1;
    json::Raw data;
    Time time = {};
};
struct HistoryReport {
    std::string stream;
    Version head = 0;
    std::vector<EventReport> events;
    std::vector<EffectReport> effects;
    std::optional<Version> next = {};  // `from` of the next page
};

struct TailReport {
    std::vector<EventReport> events;
    std::uint64_t position = 0;
};
struct CorrelationReport {
    std::vector<EventReport> events;
    std::uint64_t position = 0;  // `after` of what follows
    std::uint64_t end = 0;
    bool complete = false;
};

struct DoctorReport {
    std::vector<DiagnosisReport> findings;
};
struct TransactionsReport {
    std::vector<TransactionReport> transactions;
    Time now;
};
struct LocksReport {
    std::vector<LockReport> locks;
    Time now;
};
struct FollowersReport {
    std::vector<FollowerReport> followers;
};
struct ParkedStreamsReport {
    std::vector<ParkedReport> parked;
};
struct TimersReport {
    std::vector<TimerReport> timers;
    Time now;
};

/// A number of the query; BadRequest for what is none within these bounds.
struct Bounds {
    std::uint64_t otherwise;  // where it was not given
    std::uint64_t first;
    std::uint64_t last;
};
std::uint64_t number(const Query& query, const std::string& name, const Bounds& bounds) {
    const auto given = query.find(name);
    if (given == query.end()) return bounds.otherwise;
    constexpr std::size_t digits_max = 18;
    const std::string& text = given->second;
    const bool is_number =
        !text.empty() && text.size() <= digits_max && text.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) {
        const std::uint64_t value = std::stoull(text);
        if (value >= bounds.first && value <= bounds.last) return value;
    }
    throw BadRequest("'" + name + "' must be a number from " + std::to_string(bounds.first) + " to " +
                     std::to_string(bounds.last));
}
constexpr std::uint64_t position_max = 999'999'999'999'999'999;

std::string text_in(const Query& query, const std::string& name) {
    const auto given = query.find(name);
    return given == query.end() ? std::string{} : given->second;
}

/// A misspelled name would be an answer to another question.
void check_names(const Query& query, std::initializer_list<std::string_view> known) {
    for (const auto& [name, value] : query) {
        if (std::ranges::find(known, name) == known.end()) throw BadRequest("there is no parameter '" + name + "'");
    }
}

std::size_t bytes_of(const RecordedEvent& event) {
    std::size_t bytes = event.stream.size() + event.id.size() + event.event.type.size() + event.event.data.size();
    for (const auto& [name, value] : event.metadata->headers) bytes += name.size() + value.size();
    return bytes;
}

template <class T>
Response answer_with(const T& report) {
    return {
        .status = 200, .content_type = json_type, .body = json::encode(report, {.bytes_max = std::size_t{64} << 20})};
}
Response answered(std::string body) {
    return {.status = 200, .content_type = json_type, .body = std::move(body)};
}
Response no_such_path() {
    return refusal(404, "not_found", "there is nothing here");
}

template <class To, class From>
std::vector<To> reports_of(const From& all) {
    std::vector<To> reports;
    for (const auto& one : all) reports.push_back(report_of(one));
    return reports;
}

int status_of(const Error& error) {
    if (error.in_doubt()) return 500;
    switch (error.kind()) {
        case ErrorKind::invalid:
        case ErrorKind::config: return 400;
        case ErrorKind::conflict: return 409;
        case ErrorKind::unavailable:
        case ErrorKind::busy:
        case ErrorKind::overloaded:
        case ErrorKind::storage_full: return 503;
        case ErrorKind::read_only: return 403;
        case ErrorKind::in_doubt:
        case ErrorKind::lease_lost:
        case ErrorKind::corruption: return 500;
    }
    return 500;
}

}  // namespace

Api::Api(Console& console, Guard guard)
    : console_(console),
      application_(console.application()),
      guard_(std::move(guard)),
      secrets_(console.url),
      lister_(application_) {}

Response Api::answer(const Request& request) {
    try {
        return dispatch(request);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const BadRequest& error) {
        // It quotes who asks: to leave out secrets here would tell who guesses one.
        return refusal(400, to_string(error.kind()), error.what());
    } catch (const Error& error) {
        return refusal(status_of(error), to_string(error.kind()), secrets_.without(error.what()));
    } catch (const std::exception& error) {
        return refusal(500, "failed", secrets_.without(error.what()));
    }
}

std::uint64_t Api::end() {
    return operations::end_of_events(application_);
}

Response Api::dispatch(const Request& request) {
    const bool is_get = request.method == "GET" || request.method == "HEAD";
    const std::optional<Target> target = parse_target(request.target);
    const std::string only = target && target->path.size() == 1 ? target->path.front() : std::string{};
    const bool is_login = only == "login" && request.method == "POST";
    const auto files = page_files();
    const auto file = std::ranges::find(files, request.target, &PageFile::path);
    const bool is_of_page = is_get && (file != files.end() || request.target == "/");
    if (std::optional<Response> refused = guard_.refused(request, is_login || is_of_page)) return *std::move(refused);
    if (!is_get && request.method != "POST") {
        Response response = refusal(405, "method", "only GET and POST are answered");
        response.headers.emplace_back("Allow", "GET, POST");
        return response;
    }
    if (!target) return refusal(400, "bad_request", "this is no path that could be asked for");
    if (is_login) return guard_.log_in(request);
    if (is_of_page) {
        if (file != files.end())
            return {.status = 200, .content_type = std::string{file->content_type}, .body = std::string{file->bytes}};
        return {.status = 200,
                .content_type = "text/plain; charset=utf-8",
                .body = "The page was left out of this program: " + std::string{why_no_page()} +
                        ".\nWhat it would show is under /api/, as JSON; metrics are under /metrics.\n"};
    }
    return is_get ? get(*target) : post(*target, request);
}

Response Api::get(const Target& target) {
    if (target.path.size() == 1 && target.path[0] == "metrics") return metrics();
    if (target.path.size() < 2 || target.path.size() > 3 || target.path[0] != "api") return no_such_path();
    const std::string& what = target.path[1];
    if (target.path.size() == 3) {
        const std::string& name = target.path[2];
        if (name.empty()) return no_such_path();
        if (what == "streams") return stream(name, target.query);
        if (what == "correlation") return answered(correlation(name, target.query));
        return no_such_path();
    }
    if (what == "streams") return answered(streams(target.query));
    if (what == "tail") return tail(target.query);
    if (what == "parked") return answered(parked(target.query));
    const Time now = application_.runtime().clock.get().now();
    if (what == "about") return answered(about());
    if (what == "doctor") {
        DoctorReport report{reports_of<DiagnosisReport>(operations::diagnose(application_))};
        for (DiagnosisReport& one : report.findings) one.found = secrets_.without(std::move(one.found));
        return answer_with(report);
    }
    if (what == "transactions")
        return answer_with(
            TransactionsReport{reports_of<TransactionReport>(operations::open_transactions(application_)), now});
    if (what == "locks") return answer_with(LocksReport{reports_of<LockReport>(operations::locks(application_)), now});
    if (what == "followers")
        return answer_with(FollowersReport{reports_of<FollowerReport>(operations::followers(application_))});
    if (what == "timers") {
        constexpr std::size_t timers_max = 1000;
        return answer_with(TimersReport{reports_of<TimerReport>(operations::timers(application_, timers_max)), now});
    }
    return no_such_path();
}

std::string Api::about() {
    AboutReport report{.program = console_.program.name,
                       .version = VARVE_VERSION,
                       .store = console_.url.substr(0, console_.url.find(':')),
                       .writes = console_.allow_writes,
                       .code = {},
                       .time = application_.runtime().clock.get().now()};
    std::set<std::string> names;
    for (const FollowerStatus& one : application_.followers()) names.insert(one.name);
    report.code.assign(names.begin(), names.end());
    try {
        report.position = end();
    } catch (const ConfigError&) {
        // A store without a feed has no position.
    }
    return json::encode(report);
}

std::string Api::streams(const Query& query) {
    check_names(query, {"prefix", "after", "limit"});
    const operations::ListedPage page =
        lister_.page({.prefix = text_in(query, "prefix"),
                      .after = text_in(query, "after"),
                      .limit = number(query, "limit", {.otherwise = 100, .first = 1, .last = 1000}),
                      .patience = std::chrono::milliseconds{100}});
    StreamsReport report{
        .streams = {}, .more = page.has_more, .complete = page.is_complete, .position = page.position, .end = page.end};
    for (const ListedStream& one : page.streams) report.streams.push_back({one.name, one.since});
    return json::encode(report);
}

Response Api::stream(const std::string& name, const Query& query) {
    check_names(query, {"from", "limit", "order", "effects"});
    const std::string order = text_in(query, "order");
    if (!order.empty() && order != "oldest" && order != "newest")
        throw BadRequest("'order' must be 'oldest' or 'newest'");
    const bool is_newest_first = order == "newest";
    EventStore& events = application_.events();
    HistoryReport report{.stream = name, .head = events.head(name), .events = {}, .effects = {}};
    if (report.head == 0) return refusal(404, "no_stream", "there is no stream '" + name + "' in this store");
    const auto head = static_cast<std::uint64_t>(report.head);
    auto at = static_cast<Version>(std::min(
        head, number(query, "from", {.otherwise = is_newest_first ? head : 1, .first = 1, .last = position_max})));
    if (!is_newest_first && number(query, "from", {.otherwise = 1, .first = 1, .last = position_max}) > head)
        return answer_with(report);
    auto left = static_cast<Version>(number(query, "limit", {.otherwise = 50, .first = 1, .last = 500}));
    const bool with_effects = number(query, "effects", {.otherwise = 0, .first = 0, .last = 1}) == 1;
    std::size_t bytes = 0;
    // A few slots at a time: each may be as large as the store allows.
    while (left > 0 && at >= 1 && at <= report.head && bytes < answer_bytes_max) {
        const Version count = std::min<Version>({left, 25, is_newest_first ? at : report.head - at + 1});
        const Version first = is_newest_first ? at - count + 1 : at;
        std::vector<RecordedEvent> found = events.load(name, first, first + count - 1).events;
        if (is_newest_first) {
            // The last version first; within one, its events in their order.
            std::ranges::stable_sort(found, std::greater{}, &RecordedEvent::version);
        }
        for (const RecordedEvent& event : found) {
            bytes += bytes_of(event);
            report.events.push_back(report_of(event));
        }
        for (Version version = first; with_effects && version < first + count; ++version) {
            for (const Effect& one : events.effects(name, version)) {
                report.effects.push_back(
                    {version, one.id, one.effect.type, one.effect.schema, {one.effect.data}, one.time});
            }
        }
        at = is_newest_first ? first - 1 : first + count;
        left -= count;
    }
    if (at >= 1 && at <= report.head) report.next = at;
    return answer_with(report);
}

Response Api::tail(const Query& query) {
    check_names(query, {"after", "last"});
    constexpr std::size_t slots_max = 200;
    const std::uint64_t last = number(query, "last", {.otherwise = 0, .first = 0, .last = slots_max});
    TailReport report;
    report.position = number(query, "after", {.otherwise = position_max, .first = 0, .last = position_max});
    if (!query.contains("after")) {
        const std::uint64_t all = end();
        report.position = all - std::min(all, last);
        // Who asks where the end is, does not wait.
        if (last == 0) {
            report.position = all;
            return answer_with(report);
        }
    }
    const operations::EventsPage page = operations::events_after(application_, report.position, slots_max);
    report.position = page.end;
    report.events = reports_of<EventReport>(page.events);
    Response response = answer_with(report);
    if (report.events.empty() && page.is_last && query.contains("after")) response.waits_beyond = report.position;
    return response;
}

std::string Api::correlation(const std::string& id, const Query& query) {
    check_names(query, {"after"});
    constexpr std::size_t slots_at_once = 1000;
    constexpr std::size_t events_max = 1000;
    constexpr auto patience = std::chrono::milliseconds{500};
    CorrelationReport report{.events = {}};
    report.position = number(query, "after", {.otherwise = 0, .first = 0, .last = position_max});
    Clock& clock = application_.runtime().clock;
    const SteadyTime until = clock.until(patience);
    std::size_t bytes = 0;
    do {
        const operations::EventsPage page = operations::events_after(application_, report.position, slots_at_once);
        for (const RecordedEvent& event : page.events) {
            if (event.metadata->correlation != id) continue;
            bytes += bytes_of(event);
            report.events.push_back(report_of(event));
        }
        report.position = page.end;
        report.complete = page.is_last;
    } while (!report.complete && report.events.size() < events_max && bytes < answer_bytes_max &&
             clock.steady_now() < until);
    report.end = std::max(end(), report.position);
    return answer_with(report).body;
}

std::string Api::parked(const Query& query) {
    check_names(query, {"follower"});
    std::set<std::string> names;
    if (const std::string name = text_in(query, "follower"); !name.empty()) {
        names.insert(name);
    } else {
        for (const FollowerStatus& one : operations::followers(application_)) names.insert(one.name);
    }
    ParkedStreamsReport report;
    for (const std::string& name : names) {
        for (const ParkedStream& one : operations::parked(application_, name))
            report.parked.push_back(report_of(name, one));
    }
    return json::encode(report);
}

Response Api::metrics() {
#if VARVE_PROMETHEUS
    return {.status = 200,
            .content_type = std::string{prometheus::content_type},
            .body = prometheus::text(application_.telemetry())};
#else
    return refusal(501, "no_metrics", "this program was built without prometheus-cpp, which writes metrics");
#endif
}

}  // namespace varve::console::serve
