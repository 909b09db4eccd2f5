#pragma once

#include "serve/http.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace varve::console::serve {

/// What one connection, and all together, may take. Times are of the steady clock.
struct Limits {
    std::size_t header_bytes = 8 * 1024;
    std::size_t body_bytes = 64 * 1024;
    std::chrono::milliseconds header_time{5'000};    ///< from the first byte, or the connection's begin
    std::chrono::milliseconds request_time{10'000};  ///< until all of it has come
    std::chrono::milliseconds idle_time{60'000};     ///< between two requests
    std::chrono::milliseconds answer_time{10'000};   ///< until the reader has taken all of it
    std::chrono::milliseconds wait_time{8'000};      ///< of an answer that waits (Response::waits_beyond)
    std::chrono::milliseconds look_interval{200};    ///< how often the store is asked whether there is more, then
    std::chrono::milliseconds end_time{2'000};       ///< for those who are being answered when the server ends
    std::size_t connections = 200;                   ///< one more is answered with 503, and closed
    std::size_t queue = 64;                          ///< requests that wait for a worker, or are with one
    std::size_t workers = 4;                         ///< threads that wait for the store
};

/// HTTP/1.1 on one address: reads requests, has them answered by its workers, and writes answers, each with the headers
/// that keep a browser from doing more with it than show it. One thread reads and writes.
///
///     Server server{"127.0.0.1", 0, {}};
///     std::printf("http://127.0.0.1:%u/\n", server.port());
///     server.run({.answer = …, .end = …, .log = …});     // until stop(), SIGINT or SIGTERM
class Server {
  public:
    /// Called by workers, several at a time.
    struct Handlers {
        std::function<Response(const Request&)> answer;  ///< throws nothing but std::bad_alloc
        std::function<std::uint64_t()> end;              ///< of all events; may throw
    };

    /// Listens. Port 0: one that is free. ConfigError if it cannot, as where somebody else does.
    Server(const std::string& address, unsigned port, const Limits& limits);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    unsigned port() const;
    /// Answers until it is stopped; once.
    void run(Handlers handlers);
    /// Takes no more, lets those who are being answered end, and returns before that. Threads: any.
    void stop();

  private:
    struct Parts;
    const std::unique_ptr<Parts> parts_;
};

}  // namespace varve::console::serve
