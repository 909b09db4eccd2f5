#pragma once

#include "breaker.h"
#include "credentials.h"
#include "errors.h"
#include "http.h"
#include "requests.h"
#include "retry_budget.h"

#include <varve/core/retry.h>

#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <rapidjson/document.h>

namespace varve::dynamodb {

/// Where the server is, and as whom to speak to it.
struct Endpoint {
    std::string url;   ///< "https://dynamodb.eu-west-1.amazonaws.com/"
    std::string host;  ///< as in the header
    std::string region;
    std::chrono::milliseconds timeout{10'000};
};

/// The server applied the call; `answer` is a JSON object.
struct Done {
    rapidjson::Document answer;
};
/// The server says, by name, that a condition did not hold.
struct Declined {
    std::string name;
    rapidjson::Document answer;
};
/// Everything else that can come of a call.
struct Failed {
    std::string name;  ///< of the server's error; empty: none came
    Failure failure;
};
using Reply = std::variant<Done, Declined, Failed>;

/// Sends calls, signed, and sends them again where that is right. What is signed again is signed afresh. A server that
/// fails for everybody gets no more than a probe now and then.
///
/// Threads: `send` may be called from any number of threads.
class Client {
  public:
    struct Parts {
        Endpoint endpoint;
        CredentialsSource credentials;
        RetryPolicy retry = {.first_delay = std::chrono::milliseconds{25},
                             .delay_max = std::chrono::seconds{2},
                             .attempts_max = 10,
                             .time_max = std::chrono::seconds{15}};
        unsigned retry_budget = 100;  ///< repetitions, see RetryBudget
        Runtime runtime = {};
        Http::Options http = {};
    };
    explicit Client(Parts parts);

    /// All at once in flight; replies in the order of `calls`. Throws nothing but what the credentials' source throws
    /// before the first was sent.
    std::vector<Reply> send(std::span<const Call> calls);
    Reply send(const Call& call) { return std::move(send({&call, 1}).front()); }

    Http& http() { return http_; }

    /// As the function of this name, and without the secrets of the credentials in use.
    std::string quotable(std::string_view text) const;

  private:
    struct Attempt;

    /// Whether it may be sent now; else it waits for the next pause's end.
    bool may_go(Attempt& attempt);
    /// Reads and writes fail apart: a table's throughput is used up for one of them.
    Breaker& breaker_of(const Call& call) { return call.repeat == Call::Repeat::harmless ? reads_ : writes_; }
    HttpRequest request(const Call& call, const Credentials& credentials);
    void judge(Attempt& attempt, HttpAnswer answer);
    void judge_error(Attempt& attempt, const HttpAnswer& answer);
    /// False if `date` is none.
    bool correct_clock(const std::string& date);

    const Endpoint endpoint_;
    const RetryPolicy retry_;
    const Runtime runtime_;
    Http http_;
    CredentialsCache credentials_;
    Signer signer_;
    RetryBudget budget_;
    Breaker reads_;
    Breaker writes_;
    std::atomic<Duration::rep> clock_ahead_{0};  ///< how far the server's clock is ahead of ours
};

/// The moment of an HTTP date header, "Fri, 20 Nov 2026 23:27:21 GMT"; nullopt if it is none.
std::optional<Time> parse_http_date(std::string_view text);

}  // namespace varve::dynamodb
