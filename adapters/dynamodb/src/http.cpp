#include "http.h"

#include "messages.h"
#include "trimmed.h"

#include <varve/core/error.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <new>
#include <string>

#include <curl/curl.h>
#include <openssl/x509_vfy.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace varve::dynamodb {
namespace {

constexpr long connections_max = 128;
/// Servers close idle connections, some after 5 seconds; one that is closed while a request is on its way leaves the
/// request's outcome unknown. libcurl counts whole seconds: what was idle for less than one more is still used.
constexpr long idle_seconds_max = 3;

bool same_name(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

/// User and password of the proxies that the environment names, however they are written there: libcurl quotes them.
std::vector<std::string> proxy_secrets() {
    std::vector<std::string> secrets;
    for (const char* name : {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy"}) {
        const char* const value = std::getenv(name);
        std::string_view proxy = value == nullptr ? "" : value;
        const std::size_t at = proxy.rfind('@');
        if (at == std::string_view::npos) continue;
        proxy = proxy.substr(0, at);
        const std::size_t scheme = proxy.find("://");
        secrets.emplace_back(scheme == std::string_view::npos ? proxy : proxy.substr(scheme + 3));
    }
    return secrets;
}

/// What to do about a server that cannot prove who it is; `verdict` is OpenSSL's on its certificate.
std::string advice_on(long verdict) {
    switch (verdict) {
        case X509_V_OK:
        case X509_V_ERR_UNSPECIFIED:  // the chain was good, or libcurl would have kept OpenSSL's verdict
            return "the certificate is for another host: use the name that it is for";
        case X509_V_ERR_CERT_NOT_YET_VALID:
        case X509_V_ERR_CERT_HAS_EXPIRED: return "renew the server's certificate, or set this machine's clock";
        default: return "name the certificate of the authority that vouches for the server by ca_file";
    }
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
    static constexpr auto table = [] {
        std::array<std::uint32_t, 256> values{};
        for (std::uint32_t i = 0; i < values.size(); ++i) {
            std::uint32_t value = i;
            for (int bit = 0; bit < 8; ++bit) value = (value & 1U) != 0 ? 0xedb88320U ^ value >> 1 : value >> 1;
            values[i] = value;
        }
        return values;
    }();
    std::uint32_t value = 0xffffffffU;
    for (const char c : bytes) value = table[(value ^ static_cast<unsigned char>(c)) & 0xffU] ^ value >> 8;
    return value ^ 0xffffffffU;
}

/// The requests of one call of `perform`.
struct Http::Batch {
    explicit Batch(std::size_t requests) : open(requests) {}

    Mutex mutex;
    std::condition_variable done;
    std::size_t open VARVE_GUARDED_BY(mutex);
};

struct Http::Transfer {
    Transfer(const HttpRequest& r, HttpAnswer& a, Batch& b) : request(r), answer(a), batch(b) {}

    const HttpRequest& request;
    HttpAnswer& answer;
    Batch& batch;
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    int begun = 0;  ///< how often libcurl had a connection, and was about to send the request
    std::optional<std::uint32_t> checksum = {};
    bool unreadable_checksum = false;
    bool headers_complete = false;
    bool has_length = false;  ///< or chunks, of which the last is known
    bool too_large = false;
    bool no_memory = false;  ///< for all of the answer
    std::array<char, CURL_ERROR_SIZE> message{};

    ~Transfer() { curl_slist_free_all(headers); }

    /// What was sent over a connection that then died must not be sent again.
    static int begin(void* self, char*, char*, int, int) {
        return ++static_cast<Transfer*>(self)->begun == 1 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
    }
    static std::size_t write(const char* data, std::size_t, std::size_t count, void* self) {
        auto& transfer = *static_cast<Transfer*>(self);
        if (transfer.answer.body.size() + count > transfer.request.answer_bytes_max) {
            transfer.too_large = true;
            return 0;
        }
        return transfer.keep([&] { transfer.answer.body.append(data, count); }) ? count : 0;
    }
    static std::size_t header(const char* data, std::size_t, std::size_t count, void* self) {
        auto& transfer = *static_cast<Transfer*>(self);
        const std::string_view line{data, count};
        // One that is informational can come before the answer.
        if (line.starts_with("HTTP/")) transfer.headers_complete = transfer.has_length = false;
        if (line == "\r\n" || line == "\n") transfer.headers_complete = true;
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return count;
        const std::string_view name = line.substr(0, colon);
        const std::string_view value = trimmed(line.substr(colon + 1));
        if (same_name(name, "date") && !transfer.keep([&] { transfer.answer.date = value; })) return 0;
        if (same_name(name, "content-length") || same_name(name, "transfer-encoding")) transfer.has_length = true;
        if (same_name(name, "x-amz-crc32")) {
            std::uint32_t number = 0;
            const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
            transfer.checksum = number;
            transfer.unreadable_checksum = error != std::errc{} || end != value.data() + value.size();
        }
        return count;
    }

  private:
    /// No exception can pass through libcurl. False if there is no memory.
    bool keep(auto part_of_answer) {
        try {
            part_of_answer();
        } catch (const std::bad_alloc&) {
            no_memory = true;
        }
        return !no_memory;
    }
};

/// libcurl's handles, and what they wait for; used by the thread alone, but for `wake`. Which sockets libcurl waits for
/// is kept in the kernel: asking for each of them anew, and looking at each transfer, would cost every answer in
/// proportion to how many others are in flight.
class Http::Handles {
  public:
    Handles() {
        static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
        multi = initialised == CURLE_OK ? curl_multi_init() : nullptr;
        epoll_event woken{.events = EPOLLIN, .data = {.fd = wake_}};
        if (multi == nullptr || epoll_ < 0 || wake_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &woken) != 0) {
            close_all();
            throw UnavailableError("libcurl cannot be initialised");
        }
        curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &on_socket);
        curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, static_cast<void*>(this));
        curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, &on_timer);
        curl_multi_setopt(multi, CURLMOPT_TIMERDATA, static_cast<void*>(this));
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, connections_max);
        curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, connections_max);
    }
    ~Handles() {
        for (CURL* easy : idle_) curl_easy_cleanup(easy);
        close_all();
    }
    Handles(const Handles&) = delete;
    Handles& operator=(const Handles&) = delete;

    CURL* take() {
        if (idle_.empty()) return curl_easy_init();
        CURL* easy = idle_.back();
        idle_.pop_back();
        return easy;
    }
    void give_back(CURL* easy) {
        curl_easy_reset(easy);
        try {
            idle_.push_back(easy);
        } catch (const std::bad_alloc&) {
            curl_easy_cleanup(easy);  // the next one is made anew
        }
    }

    /// Has `act` return, now or when it is next called.
    void wake() const {
        constexpr std::uint64_t once = 1;
        (void)!write(wake_, &once, sizeof once);
    }
    /// Waits until something happens, and has libcurl go on.
    void act() {
        std::array<epoll_event, 64> events{};
        const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), milliseconds_left());
        int left = 0;
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.fd == wake_) {
                std::uint64_t times = 0;
                (void)!read(wake_, &times, sizeof times);
                continue;
            }
            // Of an error libcurl finds out by itself.
            const int ready = ((event.events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                              ((event.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0);
            curl_multi_socket_action(multi, event.data.fd, ready, &left);
        }
        if (milliseconds_left() == 0) {
            deadline_.reset();
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &left);
        }
    }

    CURLM* multi;

  private:
    using Monotonic = std::chrono::steady_clock;

    static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
        const int epoll = static_cast<Handles*>(self)->epoll_;
        epoll_event event{.events = ((what & CURL_POLL_IN) != 0 ? std::uint32_t{EPOLLIN} : 0U) |
                                    ((what & CURL_POLL_OUT) != 0 ? std::uint32_t{EPOLLOUT} : 0U),
                          .data = {.fd = socket}};
        if (what == CURL_POLL_REMOVE) {
            epoll_ctl(epoll, EPOLL_CTL_DEL, socket, &event);
        } else if (epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event) != 0) {
            return epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
        }
        return 0;
    }
    static int on_timer(CURLM*, long milliseconds, void* self) {
        auto& deadline = static_cast<Handles*>(self)->deadline_;
        deadline.reset();
        if (milliseconds >= 0) deadline = Monotonic::now() + std::chrono::milliseconds{milliseconds};
        return 0;
    }
    /// Until libcurl wants to be called; -1: never.
    int milliseconds_left() const {
        if (!deadline_) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Monotonic::now());
        constexpr std::chrono::milliseconds minute{60'000};
        return static_cast<int>(std::clamp(left, std::chrono::milliseconds::zero(), minute).count());
    }
    void close_all() {
        if (multi != nullptr) curl_multi_cleanup(multi);
        if (epoll_ >= 0) close(epoll_);
        if (wake_ >= 0) close(wake_);
    }

    const int epoll_ = epoll_create1(EPOLL_CLOEXEC);
    const int wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::optional<Monotonic::time_point> deadline_;
    std::vector<CURL*> idle_;
};

Http::Http(Options options)
    : options_(std::move(options)), proxy_secrets_(proxy_secrets()), handles_(std::make_unique<Handles>()) {
    thread_ = BackgroundThread{[this](const std::stop_token&) { run(); }};
}

std::string Http::quotable(std::string_view text) const {
    return dynamodb::quotable(text, proxy_secrets_);
}

/// Of all that libcurl would say, what it says itself: headers and bodies carry secrets and users' data.
int Http::trace(void*, int type, char* data, std::size_t size, void* self) {
    const auto& http = *static_cast<const Http*>(self);
    if (type == CURLINFO_TEXT) {
        try_to_log(*http.options_.trace, LogLevel::debug, [&] {
            return "libcurl: " + http.quotable(trimmed({data, size}));
        });
    }
    return 0;
}

Http::~Http() {
    if (process_.is_another()) {
        abandon(std::move(handles_));  // the connections are the parent's
        return;
    }
    {
        const MutexLock lock{mutex_};
        stopping_ = true;
    }
    handles_->wake();
    thread_ = {};
}

std::vector<HttpAnswer> Http::perform(std::span<const HttpRequest> requests) {
    std::vector<HttpAnswer> answers(requests.size());
    if (requests.empty()) return answers;
    Batch batch{requests.size()};
    std::deque<Transfer> transfers;
    for (std::size_t i = 0; i < requests.size(); ++i) transfers.emplace_back(requests[i], answers[i], batch);
    bool first = false;
    {
        const MutexLock lock{mutex_};
        first = waiting_.empty();
        waiting_.reserve(waiting_.size() + requests.size());  // or some of them would be on their way alone
        for (Transfer& transfer : transfers) waiting_.push_back(&transfer);
    }
    // Whoever is waiting already has called the thread.
    if (first) handles_->wake();
    MutexLock lock{batch.mutex};
    while (batch.open > 0) lock.wait(batch.done);
    return answers;
}

void Http::run() {
    for (;;) {
        std::vector<Transfer*> fresh;
        {
            const MutexLock lock{mutex_};
            if (stopping_) return;
            fresh.swap(waiting_);
        }
        for (Transfer* const transfer : fresh) {
            CURL* const easy = transfer->easy = handles_->take();
            if (easy != nullptr && start(*transfer)) continue;
            finish(*transfer, CURLE_OUT_OF_MEMORY);
            if (easy != nullptr) handles_->give_back(easy);
        }
        handles_->act();
        int left = 0;
        while (const CURLMsg* message = curl_multi_info_read(handles_->multi, &left)) {
            if (message->msg != CURLMSG_DONE) continue;
            CURL* const easy = message->easy_handle;
            const CURLcode code = message->data.result;
            curl_multi_remove_handle(handles_->multi, easy);
            char* transfer = nullptr;
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
            finish(*reinterpret_cast<Transfer*>(transfer), code);
            handles_->give_back(easy);
        }
    }
}

bool Http::start(Transfer& transfer) try {
    CURL* const easy = transfer.easy;
    const auto set = [easy](CURLoption option, auto value) { curl_easy_setopt(easy, option, value); };
    const HttpRequest& request = transfer.request;
    const bool tls = request.url.starts_with("https://");
    set(CURLOPT_PRIVATE, static_cast<void*>(&transfer));
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, tls ? "https" : "http");
    set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NOSIGNAL, 1L);
    if (!tls || options_.direct) set(CURLOPT_PROXY, "");
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    set(CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
    if (!options_.ca_file.empty()) set(CURLOPT_CAINFO, options_.ca_file.c_str());
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    set(CURLOPT_MAXAGE_CONN, idle_seconds_max);
    set(CURLOPT_ERRORBUFFER, transfer.message.data());
    if (options_.trace != nullptr) {
        set(CURLOPT_VERBOSE, 1L);
        set(CURLOPT_DEBUGFUNCTION, &trace);
        set(CURLOPT_DEBUGDATA, static_cast<void*>(this));
    }
    set(CURLOPT_PREREQFUNCTION, &Transfer::begin);
    set(CURLOPT_PREREQDATA, static_cast<void*>(&transfer));
    set(CURLOPT_WRITEFUNCTION, &Transfer::write);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
    set(CURLOPT_HEADERFUNCTION, &Transfer::header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
    const std::string& method = request.request.method;
    if (method == "POST") {
        // Not by a function that reads it: the body would be a packet of its own.
        set(CURLOPT_POST, 1L);
        set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.request.body.size()));
        set(CURLOPT_POSTFIELDS, request.request.body.data());
    } else if (method != "GET") {
        set(CURLOPT_CUSTOMREQUEST, method.c_str());
    }
    for (const Header& header : request.request.headers) {
        // An empty value is written with a semicolon; with a colon the header would be left out.
        const std::string line = header.value.empty() ? header.name + ";" : header.name + ": " + header.value;
        transfer.headers = curl_slist_append(transfer.headers, line.c_str());
    }
    transfer.headers = curl_slist_append(transfer.headers, "Expect:");
    set(CURLOPT_HTTPHEADER, transfer.headers);
    return curl_multi_add_handle(handles_->multi, easy) == CURLM_OK;
} catch (const std::bad_alloc&) {
    return false;
}

void Http::finish(Transfer& transfer, int code) {
    HttpAnswer& answer = transfer.answer;
    try {
        judge(transfer, code);
    } catch (const std::bad_alloc&) {
        answer.error.clear();  // it has none, and no status: it did not come
    }
    if (!answer.arrived()) answer.body.clear();
    // With the last one the batch is gone, and this transfer with it.
    Batch& batch = transfer.batch;
    const MutexLock lock{batch.mutex};
    if (--batch.open == 0) batch.done.notify_one();
}

void Http::judge(Transfer& transfer, int code) {
    HttpAnswer& answer = transfer.answer;
    long bytes_sent = 0;  // over all connections; also what a proxy was asked before the request began
    if (transfer.easy != nullptr) curl_easy_getinfo(transfer.easy, CURLINFO_REQUEST_SIZE, &bytes_sent);
    answer.sent = transfer.begun > 0 && bytes_sent > 0;
    answer.distrusted = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
    long status = 0;
    if (transfer.easy != nullptr) curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (transfer.no_memory) {
        answer.error = "out of memory";
    } else if (transfer.too_large) {
        answer.error = "the answer has more than " + std::to_string(transfer.request.answer_bytes_max) +
                       " bytes, which nothing that was asked for can have";
    } else if (code == CURLE_ABORTED_BY_CALLBACK) {
        answer.error = "the server closed the connection instead of answering";
    } else if (code == CURLE_COULDNT_RESOLVE_PROXY) {
        // libcurl's own words quote it, and end where they get too long: a part of a password is not recognised.
        answer.error = "the proxy that the environment names (https_proxy, all_proxy) is not known, or not understood";
    } else if (code != CURLE_OK) {
        answer.error = quotable(transfer.message[0] != '\0' ? transfer.message.data()
                                                            : curl_easy_strerror(static_cast<CURLcode>(code)));
        if (code == CURLE_PEER_FAILED_VERIFICATION) {
            long verdict = 0;
            curl_easy_getinfo(transfer.easy, CURLINFO_SSL_VERIFYRESULT, &verdict);
            answer.error += "; " + advice_on(verdict);
        } else if (code == CURLE_SSL_CONNECT_ERROR) {
            answer.error += "; the server must speak TLS 1.2 or later at this port";
        }
    } else if (!transfer.headers_complete || !transfer.has_length) {
        answer.error = "the answer was cut short, or does not tell its length";
    } else if (transfer.checksum && (transfer.unreadable_checksum || *transfer.checksum != crc32(answer.body))) {
        answer.error = "the answer's checksum is wrong: it was damaged on its way";
    } else {
        answer.status = static_cast<int>(status);
    }
}

}  // namespace varve::dynamodb
