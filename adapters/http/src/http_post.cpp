#include "addresses.h"

#include <varve/core/error.h>
#include <varve/core/mutex.h>
#include <varve/http/http_post.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <netinet/in.h>
#include <unistd.h>

namespace varve {
namespace {

constexpr Duration timeout_max = std::chrono::hours{1};
constexpr Duration retry_after_max = std::chrono::hours{24};
constexpr std::size_t connections_kept = 16;

bool is_token(std::string_view name) {
    constexpr std::string_view others = "!#$%&'*+-.^_`|~";
    return !name.empty() && std::ranges::all_of(name, [&](unsigned char c) {
        return (c < 0x80 && std::isalnum(c) != 0) || others.find(static_cast<char>(c)) != std::string_view::npos;
    });
}

std::string lower(std::string_view text) {
    std::string result{text};
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

/// As the HTTP binding of CloudEvents says (1.0.2, 3.1.3.2): spaces, quotes, percent signs and what is not printable
/// ASCII are escaped by byte.
std::string escaped(std::string_view value) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string result;
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte < 0x7f && c != '"' && c != '%') {
            result += c;
        } else {
            result.append({'%', digits[byte >> 4], digits[byte & 15]});
        }
    }
    return result;
}

/// "2026-01-31T12:00:00.000000Z"
std::string text_of(Time time) {
    std::string text = json::encode(time);
    return text.substr(1, text.size() - 2);
}

bool is_one_line(std::string_view text) {
    return std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

struct CurlFree {
    void operator()(char* text) const { curl_free(text); }
    void operator()(CURLU* url) const { curl_url_cleanup(url); }
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
template <class T>
using Owned = std::unique_ptr<T, CurlFree>;

std::string part_of(CURLU* url, CURLUPart part) {
    char* text = nullptr;
    if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
    const Owned<char> owned{text};
    return text;
}

class Headers {
  public:
    void add(const std::string& name, const std::string& value) {
        // An empty value is said by a semicolon (CURLOPT_HTTPHEADER).
        append(value.empty() ? name + ";" : name + ": " + value);
    }
    /// One that libcurl would send by itself.
    void leave_out(const std::string& name) { append(name + ":"); }
    curl_slist* list() const { return list_.get(); }

  private:
    void append(const std::string& line) {
        curl_slist* longer = curl_slist_append(list_.get(), line.c_str());
        if (longer == nullptr) throw std::bad_alloc();
        static_cast<void>(list_.release());
        list_.reset(longer);
    }

    Owned<curl_slist> list_;
};

/// What came of a request.
struct Answer {
    std::size_t bytes_max;
    bool may_be_private;
    std::size_t bytes = 0;
    std::string retry_after = {};
    std::string refused = {};  ///< an address that is not public

    static std::size_t write(const char*, std::size_t, std::size_t count, void* self) {
        auto& answer = *static_cast<Answer*>(self);
        answer.bytes += count;
        return answer.bytes <= answer.bytes_max ? count : 0;
    }
    static std::size_t header(const char* data, std::size_t, std::size_t count, void* self) noexcept {
        constexpr std::string_view wanted = "retry-after:";
        constexpr std::size_t value_bytes_max = 64;
        const std::string_view line{data, count};
        if (line.size() < wanted.size() || line.size() > wanted.size() + value_bytes_max) return count;
        try {
            if (lower(line.substr(0, wanted.size())) != wanted) return count;
            static_cast<Answer*>(self)->retry_after = line.substr(wanted.size());
        } catch (const std::bad_alloc&) {
            // It is tried again a little later, then.
        }
        return count;
    }
    static curl_socket_t open(void* self, curlsocktype, curl_sockaddr* address) noexcept {
        auto& answer = *static_cast<Answer*>(self);
        if (!answer.may_be_private && !http::is_public(address->addr)) {
            try {
                answer.refused = http::to_string(address->addr);
            } catch (const std::bad_alloc&) {
                answer.refused.clear();
            }
            return CURL_SOCKET_BAD;
        }
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    }
};

/// Seconds, or a date (RFC 9110, 10.2.3).
Duration pause_of(std::string_view text, Time now) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
    if (text.empty()) return Duration::zero();
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error == std::errc{} && end == text.data() + text.size()) {
        const auto most = std::chrono::duration_cast<std::chrono::seconds>(retry_after_max).count();
        return std::chrono::seconds{std::clamp<std::int64_t>(seconds, 0, most)};
    }
    const std::time_t at = curl_getdate(std::string{text}.c_str(), nullptr);
    if (at < 0) return Duration::zero();
    const auto left = std::chrono::seconds{at} - std::chrono::floor<std::chrono::seconds>(now.time_since_epoch());
    return std::clamp<std::chrono::seconds>(left, std::chrono::seconds{0},
                                            std::chrono::duration_cast<std::chrono::seconds>(retry_after_max));
}

}  // namespace

class HttpPost::Sender {
  public:
    Sender(const std::string& url, HttpPostOptions options);
    void send(const Delivery& delivery, const std::string& body);

  private:
    /// "https://pay.example:8443": what may be shown.
    std::string where() const { return scheme_ + "://" + host_ + (port_.empty() ? "" : ":" + port_); }
    Headers headers_of(const Delivery& delivery) const;
    void prepare(CURL* easy, const std::string& body, const Headers& headers, Answer& answer, char* message) const;
    [[noreturn]] void fail(CURLcode code, const Answer& answer, const char* message) const;
    void judge(long status, const Answer& answer) const;
    Owned<CURL> take();
    void give_back(Owned<CURL> easy);

    const HttpPostOptions options_;
    std::string url_, scheme_, host_, port_;
    bool may_be_private_ = false;
    Mutex mutex_;
    std::vector<Owned<CURL>> idle_ VARVE_GUARDED_BY(mutex_);
};

HttpPost::Sender::Sender(const std::string& url, HttpPostOptions options) : options_(std::move(options)), url_(url) {
    static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (initialised != CURLE_OK) throw UnavailableError("libcurl cannot be initialised");
    const auto refuse = [](const std::string& why) { throw ConfigError("http_post cannot begin: " + why); };

    const Owned<CURLU> parsed{curl_url()};
    if (!parsed) throw std::bad_alloc();
    if (url.find('\0') != std::string::npos || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
        refuse("its URL cannot be read; it is as https://pay.example/ask");
    scheme_ = part_of(parsed.get(), CURLUPART_SCHEME);
    host_ = part_of(parsed.get(), CURLUPART_HOST);
    port_ = part_of(parsed.get(), CURLUPART_PORT);
    if (scheme_ != "https" && scheme_ != "http") refuse("its URL begins with " + scheme_ + ", not with https");
    if (!part_of(parsed.get(), CURLUPART_USER).empty() || !part_of(parsed.get(), CURLUPART_PASSWORD).empty())
        refuse("its URL has a user's name or password; give that as a header, which is never shown");
    if (!part_of(parsed.get(), CURLUPART_FRAGMENT).empty()) refuse("its URL has a fragment, which is never sent");
    const bool is_bracketed = host_.starts_with('[') && host_.ends_with(']');
    const std::string plain_host = lower(is_bracketed ? host_.substr(1, host_.size() - 2) : host_);
    may_be_private_ =
        std::ranges::any_of(options_.private_hosts, [&](const std::string& one) { return lower(one) == plain_host; });
    if (scheme_ == "http" && !may_be_private_) {
        refuse("what is sent to " + where() +
               " could be read on the way; use https, or name the host in HttpPostOptions::private_hosts");
    }
    for (const auto& [name, value] : options_.headers) {
        if (!is_token(name)) refuse("HttpPostOptions::headers has a name that is none of a header");
        const std::string plain = lower(name);
        constexpr std::array own{"content-type", "content-length", "host", "transfer-encoding", "idempotency-key"};
        if (plain.starts_with("ce-") || std::ranges::find(own, plain) != own.end())
            refuse("HttpPostOptions::headers has '" + name + "', which it sends itself");
        if (value.find_first_of(std::string_view{"\r\n\0", 3}) != std::string::npos)
            refuse("HttpPostOptions::headers has a value for '" + name + "' of more than one line");
    }
    if (options_.source.empty() || !is_one_line(options_.source) ||
        options_.source.find_first_of(" \"") != std::string::npos)
        refuse("HttpPostOptions::source is no URI reference of printable ASCII");
    const auto check_time = [&](const char* name, Duration time) {
        if (time < std::chrono::milliseconds{1} || time > timeout_max) {
            refuse(std::string{"HttpPostOptions::"} + name + " is " + to_string(time) + "; it is from 1 ms to an hour");
        }
    };
    check_time("connect_timeout", options_.connect_timeout);
    check_time("timeout", options_.timeout);
    if (options_.request_bytes_max == 0) refuse("HttpPostOptions::request_bytes_max is 0, so nothing could be sent");
    if (!options_.ca_file.empty() && access(options_.ca_file.c_str(), R_OK) != 0)
        refuse("HttpPostOptions::ca_file '" + options_.ca_file + "' cannot be read");
    const MutexLock lock{mutex_};
    idle_.reserve(connections_kept);  // or what was delivered could fail for want of memory
}

Headers HttpPost::Sender::headers_of(const Delivery& delivery) const {
    const RecordedEvent& effect = delivery.effect;
    Headers headers;
    for (const auto& [name, value] : options_.headers) headers.add(name, value);
    headers.add("Content-Type", "application/json");
    headers.leave_out("Expect");  // or a large effect would wait to be asked for
    headers.add("Idempotency-Key", escaped(effect.id));
    headers.add("ce-specversion", "1.0");
    headers.add("ce-id", escaped(effect.id));
    headers.add("ce-source", escaped(options_.source));
    headers.add("ce-type", escaped(options_.type_prefix + effect.event.type));
    headers.add("ce-subject", escaped(effect.stream));
    if (effect.time != Time{}) headers.add("ce-time", text_of(effect.time));
    if (effect.metadata == nullptr) return headers;
    const Metadata& metadata = *effect.metadata;
    if (!metadata.correlation.empty()) headers.add("ce-correlationid", escaped(metadata.correlation));
    if (!metadata.causation.empty()) headers.add("ce-causationid", escaped(metadata.causation));
    for (const char* name : {"traceparent", "tracestate"}) {
        const auto found = metadata.headers.find(name);
        if (found == metadata.headers.end() || !is_one_line(found->second)) continue;
        const bool is_given =
            std::ranges::any_of(options_.headers, [&](const auto& header) { return lower(header.first) == name; });
        if (!is_given) headers.add(name, found->second);
    }
    return headers;
}

void HttpPost::Sender::prepare(CURL* easy, const std::string& body, const Headers& headers, Answer& answer,
                               char* message) const {
    const auto set = [easy](CURLoption option, auto value) {
        if (curl_easy_setopt(easy, option, value) != CURLE_OK) throw std::bad_alloc();
    };
    const auto milliseconds = [](Duration time) {
        return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
    };
    set(CURLOPT_ERRORBUFFER, message);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_URL, url_.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_PROXY, "");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!options_.ca_file.empty()) {
        set(CURLOPT_CAINFO, options_.ca_file.c_str());
        // Not every TLS library knows it.
        static_cast<void>(curl_easy_setopt(easy, CURLOPT_CAPATH, static_cast<const char*>(nullptr)));
    }
    set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(options_.connect_timeout));
    set(CURLOPT_TIMEOUT_MS, milliseconds(options_.timeout));
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, body.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_HTTPHEADER, headers.list());
    set(CURLOPT_WRITEFUNCTION, &Answer::write);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&answer));
    set(CURLOPT_HEADERFUNCTION, &Answer::header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&answer));
    set(CURLOPT_OPENSOCKETFUNCTION, &Answer::open);
    set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(&answer));
}

void HttpPost::Sender::send(const Delivery& delivery, const std::string& body) {
    if (body.size() > options_.request_bytes_max) {
        throw Undeliverable("it has " + std::to_string(body.size()) +
                            " bytes, and HttpPostOptions::request_bytes_max allows " +
                            std::to_string(options_.request_bytes_max));
    }
    const Headers headers = headers_of(delivery);
    Answer answer{.bytes_max = options_.answer_bytes_max, .may_be_private = may_be_private_};
    std::array<char, CURL_ERROR_SIZE> message{};
    Owned<CURL> easy = take();
    prepare(easy.get(), body, headers, answer, message.data());
    const CURLcode code = curl_easy_perform(easy.get());
    long status = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    const bool is_long = code == CURLE_WRITE_ERROR && answer.bytes > answer.bytes_max;
    if (code != CURLE_OK && !is_long) fail(code, answer, message.data());
    if (!is_long) give_back(std::move(easy));
    judge(status, answer);
}

void HttpPost::Sender::fail(CURLcode code, const Answer& answer, const char* message) const {
    if (!answer.refused.empty()) {
        throw std::runtime_error(
            where() + " is at " + answer.refused +
            ", which is not public; name the host in HttpPostOptions::private_hosts if that is meant");
    }
    throw std::runtime_error(where() +
                             " does not answer: " + (message[0] != '\0' ? message : curl_easy_strerror(code)));
}

void HttpPost::Sender::judge(long status, const Answer& answer) const {
    if (status >= 200 && status < 300) return;
    const std::string what = where() + " answers " + std::to_string(status);
    switch (status) {
        case 400:
        case 413:
        case 415:
        case 422: throw Undeliverable(what);
        case 429:
        case 503: throw DeliverLater(what, pause_of(answer.retry_after, Clock::system().now()));
        default: break;
    }
    if (status >= 300 && status < 400) throw std::runtime_error(what + ", a redirect, which is not followed");
    throw std::runtime_error(what);
}

Owned<CURL> HttpPost::Sender::take() {
    {
        const MutexLock lock{mutex_};
        if (!idle_.empty()) {
            Owned<CURL> easy = std::move(idle_.back());
            idle_.pop_back();
            return easy;
        }
    }
    Owned<CURL> easy{curl_easy_init()};
    if (!easy) throw std::bad_alloc();
    return easy;
}

void HttpPost::Sender::give_back(Owned<CURL> easy) {
    curl_easy_reset(easy.get());  // its connection stays
    const MutexLock lock{mutex_};
    if (idle_.size() < connections_kept) idle_.push_back(std::move(easy));
}

void HttpPost::send(const Delivery& delivery, const std::string& body) const {
    sender_->send(delivery, body);
}

HttpPost http_post(const std::string& url, HttpPostOptions options) {
    return HttpPost{std::make_shared<HttpPost::Sender>(url, std::move(options))};
}

}  // namespace varve
