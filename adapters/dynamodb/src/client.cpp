#include "client.h"

#include "answers.h"
#include "item_json.h"
#include "messages.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace varve::dynamodb {
namespace {

constexpr std::string_view target_prefix = "DynamoDB_20120810.";

std::string of(const Call& call) {
    return std::string{call.operation} + " of " + call.about;
}

bool take_number(std::string_view text, int& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::optional<Time> parse_http_date(std::string_view text) {
    static constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    constexpr std::string_view form = "Fri, 20 Nov 2026 23:27:21 GMT";
    if (text.size() != form.size() || !text.ends_with(" GMT") || text[19] != ':' || text[22] != ':')
        return std::nullopt;
    const auto month = std::ranges::find(months, text.substr(8, 3));
    int day = 0;
    int year = 0;
    int hour = 0;
    int minute = 0;
    int second = 0;
    if (month == months.end() || !take_number(text.substr(5, 2), day) || !take_number(text.substr(12, 4), year) ||
        !take_number(text.substr(17, 2), hour) || !take_number(text.substr(20, 2), minute) ||
        !take_number(text.substr(23, 2), second)) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date{std::chrono::year{year},
                                           std::chrono::month{static_cast<unsigned>(month - months.begin()) + 1},
                                           std::chrono::day{static_cast<unsigned>(day)}};
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
           std::chrono::seconds{second};
}

/// One call on its way to a reply.
struct Client::Attempt {
    const Call& call;
    Credentials credentials = {};  ///< of the last request
    std::optional<Reply> reply = {};
    Failed failure = {};    ///< what the caller gets if there is no further attempt
    bool in_doubt = false;  ///< an attempt before may have been applied
    bool sent = false;      ///< at least once
    unsigned taken = 0;     ///< of the budget
    bool free = false;      ///< the next attempt takes nothing from the budget: the server did not fail
    bool at_once = false;   ///< nor does it need a pause
    bool clock_tried = false;
    bool credentials_tried = false;

    void fail(Failed with) {
        Failure& failure = with.failure;
        failure.in_doubt = failure.in_doubt || in_doubt;
        if (failure.in_doubt) failure.kind = ErrorKind::in_doubt;
        reply = std::move(with);
    }
    /// This attempt may have been applied. True if there must be no other.
    bool doubt() {
        const bool is_harmful = call.repeat == Call::Repeat::harmful;
        in_doubt = in_doubt || is_harmful;
        return is_harmful;
    }
};

Client::Client(Parts parts)
    : endpoint_(std::move(parts.endpoint)),
      retry_(parts.retry),
      runtime_(parts.runtime),
      http_(std::move(parts.http)),
      credentials_(std::move(parts.credentials), parts.runtime),
      signer_({endpoint_.region, "dynamodb"}),
      budget_(parts.retry_budget),
      reads_(parts.retry, parts.runtime),
      writes_(parts.retry, parts.runtime) {}

bool Client::may_go(Attempt& attempt) {
    Breaker& breaker = breaker_of(attempt.call);
    switch (breaker.ask()) {
        case Breaker::Leave::wait:
            if (!attempt.sent) {
                attempt.failure = {
                    .name = {},
                    .failure = {.kind = ErrorKind::unavailable,
                                .message = of(attempt.call) + " was not sent to " + endpoint_.host +
                                           ", where everything failed of late; the last: " + breaker.last_failure()}};
            }
            return false;
        case Breaker::Leave::probe: return true;
        case Breaker::Leave::send: break;
    }
    if (!attempt.sent || attempt.free) return true;
    if (!budget_.take()) return false;
    ++attempt.taken;
    return true;
}

HttpRequest Client::request(const Call& call, const Credentials& credentials) {
    HttpRequest http{
        .url = endpoint_.url,
        .request = {.method = "POST",
                    .headers = {{"host", endpoint_.host},
                                {"content-type", "application/x-amz-json-1.0"},
                                {"x-amz-target", std::string{target_prefix} + std::string{call.operation}}},
                    .body = call.body},
        .timeout = endpoint_.timeout,
        .answer_bytes_max = call.answer_bytes_max};
    signer_.sign(http.request, credentials, runtime_.clock.get().now() + Duration{clock_ahead_.load()});
    return http;
}

std::vector<Reply> Client::send(std::span<const Call> calls) {
    std::vector<Attempt> attempts;
    attempts.reserve(calls.size());
    for (const Call& call : calls) attempts.push_back({.call = call});
    for (Backoff backoff{retry_, runtime_};;) {
        std::vector<Attempt*> open;
        std::vector<HttpRequest> requests;
        bool pause = false;
        for (Attempt& attempt : attempts) {
            if (attempt.reply) continue;
            if (!may_go(attempt)) {
                pause = true;
                continue;
            }
            try {
                attempt.credentials = credentials_.get();
            } catch (const Error& error) {
                if (backoff.attempts() == 1) throw;
                attempt.fail({.name = {}, .failure = {.kind = error.kind(), .message = error.what()}});
                continue;
            }
            attempt.sent = true;
            attempt.free = attempt.at_once = false;
            open.push_back(&attempt);
            requests.push_back(request(attempt.call, attempt.credentials));
        }
        std::vector<HttpAnswer> answers = http_.perform(requests);
        bool again = pause;
        for (std::size_t i = 0; i < open.size(); ++i) {
            judge(*open[i], std::move(answers[i]));
            if (open[i]->reply) continue;
            again = true;
            pause = pause || !open[i]->at_once;
        }
        if (!again) break;
        if (!(pause ? backoff.next() : backoff.next_without_delay())) {
            for (Attempt& attempt : attempts) {
                if (!attempt.reply) attempt.fail(std::move(attempt.failure));
            }
            break;
        }
    }
    std::vector<Reply> replies;
    replies.reserve(attempts.size());
    for (Attempt& attempt : attempts) replies.push_back(*std::move(attempt.reply));
    return replies;
}

void Client::judge(Attempt& attempt, HttpAnswer answer) {
    const Call& call = attempt.call;
    if (answer.status == 200) {
        try {
            attempt.reply = Done{parse_object(answer.body, "the answer")};
            breaker_of(call).answered();
            budget_.succeeded(attempt.taken);
            return;
        } catch (const CorruptionError& error) {
            answer = {.error = error.what(), .sent = true};
        }
    }
    if (answer.arrived()) return judge_error(attempt, answer);
    attempt.failure = {
        .name = {},
        .failure = {.kind = ErrorKind::unavailable,
                    .message = of(call) + " failed at " + endpoint_.host + ": " + quotable(answer.error)}};
    breaker_of(call).failed(attempt.failure.failure.message);
    if (answer.distrusted) attempt.failure.failure.kind = ErrorKind::config;
    if (answer.distrusted || (answer.sent && attempt.doubt())) attempt.fail(std::move(attempt.failure));
}

void Client::judge_error(Attempt& attempt, const HttpAnswer& answer) {
    const Call& call = attempt.call;
    rapidjson::Document body;
    NamedError error;
    try {
        body = parse_object(answer.body, "an error");
        error = parse_error(body);
    } catch (const CorruptionError&) {
        // What stands before a server answers in words of its own; the status tells enough.
    }
    const ErrorRule& rule = rule_for(error.name, answer.status);
    const bool failing = rule.course == Course::retry || rule.course == Course::in_doubt;
    if (!failing) breaker_of(call).answered();
    if (rule.course == Course::refused) {
        // What was perhaps applied before may now refuse itself.
        if (!attempt.in_doubt) {
            budget_.succeeded(attempt.taken);
            attempt.reply = Declined{error.name, std::move(body)};
            return;
        }
    }
    std::string message = of(call) + " failed at " + endpoint_.host + ": " +
                          (error.name.empty() ? "status " + std::to_string(answer.status) : quotable(error.name));
    if (!error.message.empty() && !rule.tells_secrets) {
        message += ": " + quotable(error.message);
    }
    if (!rule.advice.empty()) message += "; " + std::string{rule.advice};
    attempt.failure = {.name = error.name, .failure = {.kind = rule.kind, .message = std::move(message)}};
    if (failing) breaker_of(call).failed(attempt.failure.failure.message);
    bool over = false;
    switch (rule.course) {
        case Course::retry: break;
        case Course::busy: attempt.free = true; break;
        case Course::in_doubt: over = attempt.doubt(); break;
        case Course::clock:
            over = std::exchange(attempt.clock_tried, true);
            attempt.free = attempt.at_once = true;
            if (!correct_clock(answer.date)) {
                attempt.failure.failure.message +=
                    "; if they are right, so may not be this machine's clock: the server does not tell its own";
            }
            break;
        case Course::credentials:
            over = std::exchange(attempt.credentials_tried, true);
            attempt.free = attempt.at_once = true;
            over = !credentials_.forget(attempt.credentials) || over;
            break;
        case Course::refused:
        case Course::fatal: over = true; break;
    }
    if (over) attempt.fail(std::move(attempt.failure));
}

bool Client::correct_clock(const std::string& date) {
    const auto server = parse_http_date(date);
    if (server) clock_ahead_ = std::chrono::duration_cast<Duration>(*server - runtime_.clock.get().now()).count();
    return server.has_value();
}

std::string Client::quotable(std::string_view text) const {
    return dynamodb::quotable(text, credentials_.secrets());
}

}  // namespace varve::dynamodb
