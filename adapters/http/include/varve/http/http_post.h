#pragma once

#include <varve/commands/delivery.h>
#include <varve/core/clock.h>
#include <varve/core/json.h>

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace varve {

/// How effects are sent.
///
/// Errors: http_post refuses what cannot work, with a ConfigError that names the option and never shows a header.
struct HttpPostOptions {
    /// Sent with each request, as {"Authorization", "Bearer …"}. Never in a log or an error. Not those that are
    /// http_post's own: Content-Type, Content-Length, Host, Transfer-Encoding, Idempotency-Key, ce-….
    std::map<std::string, std::string> headers = {};
    /// Who sends: the attribute `source` of CloudEvents, a URI reference of printable ASCII.
    std::string source = "/varve";
    /// In front of an effect's name in the attribute `type`, as "com.example.".
    std::string type_prefix = {};
    Duration connect_timeout = std::chrono::seconds{5};
    /// Of a whole request, with its answer; more than 0, at most an hour. A name's lookup may take longer, as the
    /// system's resolver is set up.
    Duration timeout = std::chrono::seconds{30};
    std::size_t request_bytes_max = std::size_t{1} << 20;  ///< of an effect; a larger one is Undeliverable
    std::size_t answer_bytes_max = std::size_t{64} << 10;  ///< read of an answer, whose contents are not used
    /// The certificates to trust, in PEM, instead of the system's.
    std::string ca_file = {};
    /// Names, or addresses, of hosts that may be on this machine or in a private network, and may be asked without TLS.
    /// Any other one must be public, also after its name was looked up, so that what an effect says cannot be used to
    /// reach what lies behind a firewall.
    std::set<std::string> private_hosts = {};
};

/// A handler that sends effects to a URL, for varve::deliver:
///
///     varve::deliver<AskPayment>(shop, varve::http_post("https://pay.example/ask"));
///
/// An effect is the body of a POST, as JSON; what is known of it is in headers, as CloudEvents 1.0 says in their binary
/// mode: ce-id, ce-source, ce-type, ce-time, ce-subject (the stream), besides ce-correlationid and ce-causationid.
/// Idempotency-Key is the effect's id, the same at each attempt. A header "traceparent" or "tracestate" of the command
/// (CommandOptions::headers) is sent, too.
///
/// An answer 2xx: it is delivered. 400, 413, 415 and 422: never tried again by itself (Undeliverable). Anything else,
/// or no answer: later; 429 and 503 say with Retry-After when. No redirect is followed. TLS is 1.2 or later, and the
/// server must prove its name. No proxy is asked.
///
/// Threads: copies share connections, and may be called from any threads. Errors: ConfigError for a URL that is none,
/// or with a user's name or password, and without TLS except for private_hosts.
class HttpPost {
  public:
    template <class Effect>
    void operator()(const Effect& effect, const Delivery& delivery) const {
        send(delivery, json::encode(effect));
    }

  private:
    class Sender;
    friend HttpPost http_post(const std::string& url, HttpPostOptions options);
    explicit HttpPost(std::shared_ptr<Sender> sender) : sender_(std::move(sender)) {}
    void send(const Delivery& delivery, const std::string& body) const;

    std::shared_ptr<Sender> sender_;
};

HttpPost http_post(const std::string& url, HttpPostOptions options = {});

}  // namespace varve
