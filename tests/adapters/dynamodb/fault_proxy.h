#pragma once

#include "support/loopback.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace varve::dynamodb {

/// What becomes of one request and of its answer on their way.
enum class Fault {
    none,
    request_lost,        ///< the connection is closed, the server never hears of it
    request_reset,       ///< as above, by a reset
    request_late,        ///< the connection is closed; the server hears of it some requests later
    answer_lost,         ///< the server did it; the connection is closed
    answer_reset,        ///< the server did it; the connection is reset
    answer_cut,          ///< the connection is closed within the answer
    answer_garbage,      ///< bytes that are no HTTP, then the connection is closed
    body_garbage,        ///< a whole answer with status 200 whose body is no JSON
    body_damaged,        ///< one byte of the body is another; x-amz-crc32 is that of what the server said
    checksum_wrong,      ///< the body is right, its x-amz-crc32 is not
    repeated,            ///< delivered twice; the first answer comes back
    repeated_and_again,  ///< delivered twice; the second answer comes back
    failed_before,       ///< InternalServerError, and the server never hears of it
    failed_after,        ///< the server did it, and the answer is InternalServerError
    gateway_before,      ///< 503 in HTML, and the server never hears of it
    gateway_after,       ///< the server did it, and the answer is 503 in HTML
    throttled,           ///< ProvisionedThroughputExceededException
    delayed,             ///< the answer waits a moment
    silent,              ///< the server did it, and no answer comes until the client gives up
};
constexpr std::size_t fault_kinds = static_cast<std::size_t>(Fault::silent) + 1;
/// "answer_cut"
std::string_view described(Fault fault);

/// A proxy on loopback between a client and a server of DynamoDB's protocol that does to each request what it is told.
///
///     FaultProxy proxy{server.port(), {.fault = [&](std::size_t number) { return number % 7 == 0 ? … : Fault::none;
///     }}};
///
/// Threads: one for each connection, which calls `fault`.
class FaultProxy {
  public:
    struct Options {
        /// Asked once for each request, numbered from 0 on.
        std::function<Fault(std::size_t number)> fault = [](std::size_t) { return Fault::none; };
        /// What becomes of the body of each answer that nothing else happens to; empty: nothing.
        std::function<void(std::string& body)> rewrite = {};
        /// Of each answer: how far away the server is.
        std::chrono::milliseconds round_trip{0};
    };

    FaultProxy(int server_port, Options options);
    ~FaultProxy();
    FaultProxy(const FaultProxy&) = delete;
    FaultProxy& operator=(const FaultProxy&) = delete;

    std::string address() const { return listener_.address(); }
    /// From now on nothing happens to requests any more; what is late arrives before this returns.
    void heal();

    std::size_t requests() const { return requests_; }
    std::size_t count(Fault fault) const { return counts_[static_cast<std::size_t>(fault)]; }
    /// All but Fault::none.
    std::size_t faults() const;

  private:
    class Connection;
    struct Upstream;
    struct Late {
        std::size_t due;  ///< before the request of this number
        std::string request;
    };

    void serve(const LoopbackSocket& client);
    bool pass_on(Connection& client, std::unique_ptr<Upstream>& server, const std::string& request);
    /// nullptr if the server is gone.
    std::unique_ptr<Upstream> connect() const;
    void deliver_late(std::size_t until);
    void deliver(const std::string& request);
    /// False if the proxy ends meanwhile.
    bool wait(std::chrono::milliseconds time);

    const int server_port_;
    const Options options_;
    std::atomic<bool> healed_ = false;
    std::atomic<std::size_t> requests_ = 0;
    std::array<std::atomic<std::size_t>, fault_kinds> counts_{};

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Late> late_;      // guarded by mutex_
    std::size_t delivering_ = 0;  // guarded by mutex_; late ones that are on their way
    bool stopping_ = false;       // guarded by mutex_

    LoopbackServer listener_;  // the last, for what it calls uses the rest
};

}  // namespace varve::dynamodb
