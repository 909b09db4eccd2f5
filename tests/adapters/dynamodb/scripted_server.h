#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace varve::dynamodb {

/// An HTTP server on loopback that answers as a test says: with any bytes, whole or not.
class ScriptedServer {
  public:
    struct Request {
        std::string head;
        std::string body;

        /// The value of a header, by its lower case name as clients of ours write it; empty if it is missing.
        std::string header(const std::string& name) const {
            const std::size_t at = head.find("\r\n" + name + ": ");
            if (at == std::string::npos) return {};
            const std::size_t from = at + name.size() + 4;
            return head.substr(from, head.find("\r\n", from) - from);
        }
    };
    struct Reply {
        std::string bytes;
        bool close = false;
    };
    /// Called with each request and its number, from 0 on; by several connections at once.
    using Script = std::function<Reply(const Request& request, std::size_t number)>;

    explicit ScriptedServer(Script script) : script_(std::move(script)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
            listen(listener_, SOMAXCONN) != 0 ||
            getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
            throw std::runtime_error("no port to listen on");
        }
        port_ = ntohs(address.sin_port);
        acceptor_ = std::thread{[this] { accept_all(); }};
    }
    ~ScriptedServer() {
        shutdown(listener_, SHUT_RDWR);
        acceptor_.join();
        {
            const std::lock_guard lock{mutex_};
            for (const int open : open_) shutdown(open, SHUT_RDWR);
        }
        for (std::thread& connection : connections_) connection.join();
        close(listener_);
    }
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;

    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    std::string url() const { return "http://" + address() + "/"; }
    std::vector<Request> requests() const {
        const std::lock_guard lock{mutex_};
        return requests_;
    }
    std::size_t connections() const {
        const std::lock_guard lock{mutex_};
        return accepted_;
    }

    /// A whole answer.
    static std::string answer(int status, const std::string& body, const std::string& headers = "") {
        return "HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
               headers + "\r\n" + body;
    }

  private:
    void accept_all() {
        for (;;) {
            const int connection = accept(listener_, nullptr, nullptr);
            if (connection < 0) return;
            const std::lock_guard lock{mutex_};
            ++accepted_;
            open_.insert(connection);
            connections_.emplace_back([this, connection] { serve(connection); });
        }
    }

    void serve(int connection) {
        std::string buffer;
        const auto receive = [&] {
            char bytes[4096];
            const ssize_t count = recv(connection, bytes, sizeof bytes, 0);
            if (count > 0) buffer.append(bytes, static_cast<std::size_t>(count));
            return count > 0;
        };
        for (bool open = true; open;) {
            std::size_t end = 0;
            while (open && (end = buffer.find("\r\n\r\n")) == std::string::npos) open = receive();
            if (!open) break;
            Request request{.head = buffer.substr(0, end + 2), .body = {}};
            buffer.erase(0, end + 4);
            const std::string length = request.header("Content-Length");
            const std::size_t size = length.empty() ? 0 : std::stoul(length);
            while (open && buffer.size() < size) open = receive();
            if (!open) break;
            request.body = buffer.substr(0, size);
            buffer.erase(0, size);
            std::size_t number = 0;
            {
                const std::lock_guard lock{mutex_};
                number = requests_.size();
                requests_.push_back(request);
            }
            const Reply reply = script_(request, number);
            std::size_t sent = 0;
            while (sent < reply.bytes.size()) {
                const ssize_t count =
                    send(connection, reply.bytes.data() + sent, reply.bytes.size() - sent, MSG_NOSIGNAL);
                if (count <= 0) break;
                sent += static_cast<std::size_t>(count);
            }
            open = !reply.close;
        }
        const std::lock_guard lock{mutex_};
        open_.erase(connection);
        close(connection);
    }

    const Script script_;
    const int listener_;
    int port_ = 0;
    std::thread acceptor_;
    mutable std::mutex mutex_;
    std::vector<Request> requests_;         // guarded by mutex_
    std::size_t accepted_ = 0;              // guarded by mutex_
    std::set<int> open_;                    // guarded by mutex_
    std::vector<std::thread> connections_;  // guarded by mutex_ until the acceptor has ended
};

}  // namespace varve::dynamodb
