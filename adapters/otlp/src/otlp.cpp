#include "encoding.h"

#include <varve/core/background_thread.h>
#include <varve/core/error.h>
#include <varve/core/mutex.h>
#include <varve/core/own_process.h>
#include <varve/otlp/otlp.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <new>
#include <utility>
#include <vector>

#include <curl/curl.h>

namespace varve::otlp {
namespace {

using telemetry::Span;

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
    if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
    const Owned<char> owned{text};
    return text;
}

[[noreturn]] void refuse(const std::string& why) {
    throw ConfigError("spans cannot be exported: " + why);
}

/// What may be shown of the URL.
std::string checked(const Options& options) {
    if (options.service_name.empty()) refuse("service_name is empty; name the program");
    if (!(options.sampled >= 0 && options.sampled <= 1)) refuse("sampled is not from 0 to 1");
    if (options.queue_max == 0) refuse("queue_max is 0, so every span would be dropped");
    if (options.batch_max == 0) refuse("batch_max is 0, so no request would have a span");
    if (options.interval <= Duration::zero()) refuse("interval is " + to_string(options.interval));
    if (options.timeout <= Duration::zero() || options.timeout > std::chrono::minutes{1})
        refuse("timeout is " + to_string(options.timeout) + ", and not above 0 s and up to 60 s");
    for (const auto& [name, value] : options.headers) {
        const auto is_printable = [](unsigned char c) { return c >= 0x20 && c < 0x7f; };
        if (name.empty() || name.find_first_of(": ") != std::string::npos || !std::ranges::all_of(name, is_printable) ||
            !std::ranges::all_of(value, is_printable))
            refuse("headers has one that is none: a name without colons and spaces, a value of one line, both ASCII");
    }
    const Owned<CURLU> url{curl_url()};
    if (!url) throw std::bad_alloc{};
    if (options.url.find('\0') != std::string::npos ||
        curl_url_set(url.get(), CURLUPART_URL, options.url.c_str(), 0) != CURLUE_OK)
        refuse("its URL cannot be read; it is as http://127.0.0.1:4318/v1/traces");
    const std::string scheme = part_of(url.get(), CURLUPART_SCHEME);
    if (scheme != "http" && scheme != "https") refuse("its URL begins with neither http nor https");
    if (!part_of(url.get(), CURLUPART_USER).empty() || !part_of(url.get(), CURLUPART_PASSWORD).empty())
        refuse("its URL has a user's name or password; give that as a header, which is never shown");
    return scheme + "://" + part_of(url.get(), CURLUPART_HOST) + ":" + part_of(url.get(), CURLUPART_PORT);
}

std::size_t ignore(const char*, std::size_t, std::size_t count, void*) {
    return count;
}

}  // namespace

class Exporter::Sender {
  public:
    explicit Sender(Options options)
        : options_(std::move(options)), where_(checked(options_)), easy_(curl_easy_init()) {
        if (!easy_) throw std::bad_alloc{};
        prepare();
        thread_ = BackgroundThread{[this](const std::stop_token& stop) { run(stop); }, options_.runtime.threads};
    }
    ~Sender() {
        const bool is_in_a_child = process_.is_another();
        { const BackgroundThread ending = std::move(thread_); }
        if (!is_in_a_child) send_all();
    }
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    bool samples() const noexcept {
        constexpr double all = 18446744073709551616.0;  // 2^64
        if (options_.sampled >= 1) return true;
        return static_cast<double>(options_.runtime.random.get().next()) < options_.sampled * all;
    }
    void record(Span span) noexcept {
        try {
            const MutexLock lock{mutex_};
            if (waiting_.size() < options_.queue_max) {
                waiting_.push_back(std::move(span));
                return;
            }
        } catch (const std::exception&) {
            // No memory, no span.
        }
        ++dropped_;
    }
    /// False: some were dropped. While the collector is away, one request is tried, and the others' spans are dropped.
    bool send_all() noexcept {
        const MutexLock lock{sending_};
        bool all_arrived = true;
        for (std::vector<Span> batch = take(); !batch.empty(); batch = take()) {
            const bool arrived = all_arrived && send(batch);
            (arrived ? sent_ : dropped_) += batch.size();
            all_arrived = arrived;
        }
        return all_arrived;
    }
    std::uint64_t sent() const { return sent_; }
    std::uint64_t dropped() const { return dropped_; }

  private:
    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            options_.runtime.clock.get().sleep_for(options_.interval, stop);
            if (!stop.stop_requested()) send_all();
        }
    }
    void prepare() {
        const auto set = [this](CURLoption option, auto value) {
            if (curl_easy_setopt(easy_.get(), option, value) != CURLE_OK) throw std::bad_alloc{};
        };
        const auto add = [this](const std::string& line) {
            curl_slist* const longer = curl_slist_append(headers_.get(), line.c_str());
            if (longer == nullptr) throw std::bad_alloc{};
            static_cast<void>(headers_.release());
            headers_.reset(longer);
        };
        add("Content-Type: application/json");
        add("Expect:");
        for (const auto& [name, value] : options_.headers) add(value.empty() ? name + ";" : name + ": " + value);
        set(CURLOPT_URL, options_.url.c_str());
        set(CURLOPT_NOSIGNAL, 1L);
        set(CURLOPT_PROXY, "");
        set(CURLOPT_PROTOCOLS_STR, "http,https");
        set(CURLOPT_TIMEOUT_MS,
            static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(options_.timeout).count()));
        set(CURLOPT_HTTPHEADER, headers_.get());
        set(CURLOPT_WRITEFUNCTION, &ignore);
    }
    std::vector<Span> take() noexcept {
        std::vector<Span> batch;
        const MutexLock lock{mutex_};
        try {
            batch.reserve(std::min(waiting_.size(), options_.batch_max));
        } catch (const std::bad_alloc&) {
            dropped_ += waiting_.size();
            waiting_.clear();
        }
        while (!waiting_.empty() && batch.size() < batch.capacity()) {
            batch.push_back(std::move(waiting_.front()));
            waiting_.pop_front();
        }
        return batch;
    }
    bool send(const std::vector<Span>& batch) noexcept VARVE_REQUIRES(sending_) {
        std::string why;
        try {
            const std::string body = encode(options_.service_name, batch);
            curl_easy_setopt(easy_.get(), CURLOPT_POSTFIELDS, body.data());
            curl_easy_setopt(easy_.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
            const CURLcode code = curl_easy_perform(easy_.get());
            long status = 0;
            curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
            if (code != CURLE_OK) {
                why = curl_easy_strerror(code);
            } else if (status / 100 != 2) {
                why = "it answered with " + std::to_string(status);
            }
        } catch (const std::bad_alloc&) {
            why = "no memory";
        }
        tell(why);
        return why.empty();
    }
    /// The log hears of it once.
    void tell(const std::string& why) noexcept VARVE_REQUIRES(sending_) {
        const bool is_away = !why.empty();
        if (std::exchange(is_away_, is_away) == is_away) return;
        try_to_log(options_.runtime.log, is_away ? LogLevel::warning : LogLevel::info, [&] {
            return is_away ? "spans are dropped: " + where_ + " does not take them: " + why
                           : "spans go to " + where_ + " again";
        });
    }

    const Options options_;
    const std::string where_;
    const OwnProcess process_;
    Mutex sending_;
    const Owned<CURL> easy_;
    Owned<curl_slist> headers_;
    bool is_away_ VARVE_GUARDED_BY(sending_) = false;
    Mutex mutex_;
    std::deque<Span> waiting_ VARVE_GUARDED_BY(mutex_);
    std::atomic<std::uint64_t> sent_{0};
    std::atomic<std::uint64_t> dropped_{0};
    BackgroundThread thread_;  // last: it uses the others
};

Exporter::Exporter(Options options)
    : sender_([&] {
          static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
          if (initialised != CURLE_OK) throw UnavailableError("libcurl cannot be initialised");
          return std::make_unique<Sender>(std::move(options));
      }()) {}

Exporter::~Exporter() = default;

bool Exporter::samples() noexcept {
    return sender_->samples();
}

void Exporter::record(telemetry::Span span) noexcept {
    sender_->record(std::move(span));
}

bool Exporter::flush() {
    return sender_->send_all();
}

std::uint64_t Exporter::sent() const {
    return sender_->sent();
}

std::uint64_t Exporter::dropped() const {
    return sender_->dropped();
}

}  // namespace varve::otlp
