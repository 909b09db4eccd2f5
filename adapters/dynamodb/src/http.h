#pragma once

#include "signature.h"

#include <varve/core/background_thread.h>
#include <varve/core/mutex.h>
#include <varve/core/runtime.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace varve::dynamodb {

struct HttpRequest {
    std::string url;  ///< with path and query; those of `request` are what a signature covers
    Request request;
    std::chrono::milliseconds connect_timeout{3'000};
    std::chrono::milliseconds timeout{10'000};
    std::size_t answer_bytes_max = std::size_t{1} << 20;  ///< a larger answer is an error
};

/// What came of a request: a whole answer, or an error.
struct HttpAnswer {
    int status = 0;  ///< 0: none came, and `error` says why
    std::string body = {};
    std::string date = {};   ///< the header
    std::string error = {};  ///< fit for a message; never contains a header or a body
    bool sent = false;       ///< the server may have got the request; false: it certainly did not
    /// The server could not prove who it is, or the certificates to trust cannot be read: no repetition helps.
    bool distrusted = false;

    bool arrived() const { return status != 0; }
};

/// HTTP/1.1 on kept connections, many requests in flight at once, driven by one thread of its own.
///
/// An answer is whole: of the length it announces, with the checksum x-amz-crc32 where there is one; anything else is
/// an error. No redirect is followed, certificates and host names are verified, TLS is 1.2 or later. A request is
/// delivered at most once: what libcurl would silently send again over a new connection, after the server closed an
/// idle one, becomes an error instead.
///
/// Threads: `perform` may be called from any number of threads.
class Http {
  public:
    struct Options {
        std::string ca_file = {};  ///< certificates to trust instead of the system's
        bool direct = false;       ///< past the proxies that the environment names; plain http never goes to one
        /// Gets libcurl's account of its connections at level debug: addresses, TLS, reuse; no header, no body, and of
        /// proxies no password.
        Log* trace = nullptr;
    };
    explicit Http(Options options);
    ~Http();
    Http(const Http&) = delete;
    Http& operator=(const Http&) = delete;

    /// Sends all at once, and returns when each is answered, in their order.
    std::vector<HttpAnswer> perform(std::span<const HttpRequest> requests);

  private:
    struct Transfer;
    struct Batch;
    class Handles;

    void run();
    /// False if there is no memory for it.
    bool start(Transfer& transfer);
    /// Its answer is what libcurl's code says, and who waits for it goes on.
    void finish(Transfer& transfer, int code);
    void judge(Transfer& transfer, int code);

    std::string quotable(std::string_view text) const;
    static int trace(void* easy, int type, char* data, std::size_t size, void* self);

    const Options options_;
    const std::vector<std::string> proxy_secrets_;  ///< as the environment has them
    std::unique_ptr<Handles> handles_;

    Mutex mutex_;
    /// Those of calls of `perform`, which wait for them.
    std::vector<Transfer*> waiting_ VARVE_GUARDED_BY(mutex_);
    bool stopping_ VARVE_GUARDED_BY(mutex_) = false;

    OwnProcess process_;
    BackgroundThread thread_;
};

/// CRC-32 as in x-amz-crc32 (that of zlib).
std::uint32_t crc32(std::string_view bytes);

}  // namespace varve::dynamodb
