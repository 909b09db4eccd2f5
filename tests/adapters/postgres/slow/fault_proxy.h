#pragma once

#include "support/loopback.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <sys/socket.h>

namespace varve::postgres {

/// What becomes of one transaction and of its answer on their way.
enum class Fault {
    none,
    request_lost,     ///< the connection is closed, the server never hears of it
    request_reset,    ///< as above, by a reset
    request_cut,      ///< the server hears all of it but its end, and the connection is closed
    answer_lost,      ///< the server did it; the connection is closed
    answer_reset,     ///< the server did it; the connection is reset
    answer_cut,       ///< the connection is closed within the answer
    answer_torn,      ///< the answer comes byte by byte
    farewell_before,  ///< the server ends the session, and has done nothing
    farewell_after,   ///< the server did it, and ends the session before it says so
    refused,          ///< not now: the server is shutting down; the connection is closed
    pooler_crash,     ///< the server did it; a pooler says that it has lost the server
    delayed,          ///< the answer waits a moment
    silent,           ///< the server did it, and no answer comes until the client gives up
};
constexpr std::size_t fault_kinds = static_cast<std::size_t>(Fault::silent) + 1;

/// A proxy on loopback between a client and a PostgreSQL server that does to each transaction what it is told. It knows
/// of the protocol where its messages end, and that a transaction ends with Sync and its answer with ReadyForQuery. No
/// TLS.
///
/// Threads: one for each connection, which calls `fault`.
class FaultProxy {
  public:
    using FaultOf = std::function<Fault(std::size_t number)>;

    /// `fault` is asked once for each transaction, numbered from 0 on.
    FaultProxy(int server_port, FaultOf fault)
        : server_port_(server_port),
          fault_(std::move(fault)),
          listener_([this](const LoopbackSocket& client) { serve(client); }) {}
    ~FaultProxy() {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
        changed_.notify_all();
    }
    FaultProxy(const FaultProxy&) = delete;
    FaultProxy& operator=(const FaultProxy&) = delete;

    std::string address() const { return listener_.address(); }
    std::size_t requests() const { return requests_; }
    std::size_t count(Fault fault) const { return counts_[static_cast<std::size_t>(fault)]; }
    /// All but Fault::none.
    std::size_t faults() const { return requests_ - count(Fault::none); }

  private:
    /// One side of a connection: whole messages of the protocol.
    class Side {
      public:
        explicit Side(const LoopbackSocket& socket) : socket_(socket) {}

        /// The next message, with its type unless it is the first of a session; nullopt: the other end is gone.
        std::optional<std::string> message(bool has_type) {
            const std::size_t head = has_type ? 5 : 4;
            for (;;) {
                if (buffer_.size() >= head) {
                    std::size_t length = 0;
                    for (std::size_t i = head - 4; i < head; ++i)
                        length = length * 256 + static_cast<unsigned char>(buffer_[i]);
                    length += head - 4;
                    if (buffer_.size() >= length) {
                        std::string message = buffer_.substr(0, length);
                        buffer_.erase(0, length);
                        return message;
                    }
                }
                if (!socket_.receive(buffer_)) return std::nullopt;
            }
        }
        /// All messages up to one of this type, which ends them.
        std::optional<std::string> messages(char last) {
            std::string all;
            for (;;) {
                const auto one = message(true);
                if (!one) return std::nullopt;
                all += *one;
                if (one->front() == last || one->front() == terminate) return all;
            }
        }
        bool send(std::string_view bytes) const { return socket_.send(bytes); }
        void reset() const {
            const linger at_once{.l_onoff = 1, .l_linger = 0};
            setsockopt(socket_.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        }
        void wait_until_closed() {
            while (socket_.receive(buffer_)) {
            }
        }

      private:
        const LoopbackSocket& socket_;
        std::string buffer_;
    };

    static constexpr char sync = 'S';
    static constexpr char terminate = 'X';
    static constexpr char ready = 'Z';
    static constexpr std::size_t sync_size = 5;
    static constexpr std::size_t ready_size = 6;

    /// The server says how bad it is twice, for people and for programs; a pooler only once.
    static std::string farewell(std::string_view state, bool is_of_the_server = true) {
        std::string fields = std::string{"SFATAL"} + '\0';
        if (is_of_the_server) fields += std::string{"VFATAL"} + '\0';
        fields += "C" + std::string{state} + '\0' + "Mthe proxy ends it" + '\0' + '\0';
        const std::size_t length = fields.size() + 4;
        return std::string{'E', 0, 0, static_cast<char>(length / 256), static_cast<char>(length % 256)} + fields;
    }

    void serve(const LoopbackSocket& client_socket) {
        try {
            const LoopbackSocket server_socket = LoopbackSocket::connected(server_port_);
            Side client{client_socket};
            Side server{server_socket};
            const auto begin = client.message(false);
            if (!begin || !server.send(*begin)) return;
            const auto welcome = server.messages(ready);
            if (!welcome || !client.send(*welcome)) return;
            for (;;) {
                const auto request = client.messages(sync);
                if (!request || request->front() == terminate || !pass_on(client, server, *request)) return;
            }
        } catch (const std::system_error&) {
            // The server is away; so is this connection.
        }
    }

    /// False if the connection ends with this transaction.
    bool pass_on(Side& client, Side& server, const std::string& request) {
        const std::size_t number = requests_++;
        const Fault fault = fault_(number);
        ++counts_[static_cast<std::size_t>(fault)];
        switch (fault) {
            case Fault::request_lost: return false;
            case Fault::request_reset: client.reset(); return false;
            case Fault::request_cut:
                server.send(std::string_view{request}.substr(0, request.size() - sync_size));
                return false;
            case Fault::farewell_before: client.send(farewell("57P01")); return false;
            case Fault::refused: client.send(farewell("57P03")); return false;
            default: break;
        }
        if (!server.send(request)) return false;
        const auto answer = server.messages(ready);
        if (!answer) return false;
        switch (fault) {
            case Fault::answer_lost: return false;
            case Fault::answer_reset: client.reset(); return false;
            case Fault::answer_cut:
                client.send(std::string_view{*answer}.substr(0, number % answer->size()));
                return false;
            case Fault::answer_torn:
                for (const char& byte : *answer) {
                    if (!client.send({&byte, 1})) return false;
                }
                return true;
            case Fault::farewell_after:
                client.send(answer->substr(0, answer->size() - ready_size) + farewell("57P01"));
                return false;
            case Fault::pooler_crash: client.send(farewell("08P01", false)); return false;
            case Fault::delayed:
                if (!wait_a_moment()) return false;
                break;
            case Fault::silent: client.wait_until_closed(); return false;
            default: break;
        }
        return client.send(*answer);
    }

    /// False if the proxy ends meanwhile.
    bool wait_a_moment() {
        std::unique_lock lock{mutex_};
        return !changed_.wait_for(lock, std::chrono::milliseconds{5}, [this] { return stopping_; });
    }

    const int server_port_;
    const FaultOf fault_;
    std::atomic<std::size_t> requests_ = 0;
    std::array<std::atomic<std::size_t>, fault_kinds> counts_{};

    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopping_ = false;  // guarded by mutex_

    LoopbackServer listener_;  // the last, for what it calls uses the rest
};

}  // namespace varve::postgres
