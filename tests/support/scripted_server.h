#pragma once

#include "support/loopback.h"

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace varve {

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

    explicit ScriptedServer(Script script)
        : script_(std::move(script)), listener_([this](const LoopbackSocket& connection) { serve(connection); }) {}

    std::string address() const { return listener_.address(); }
    std::string url() const { return "http://" + address() + "/"; }
    std::vector<Request> requests() const {
        const std::lock_guard lock{mutex_};
        return requests_;
    }
    std::size_t connections() const { return listener_.accepted(); }
    std::size_t open_connections() const { return listener_.open(); }

    /// A whole answer.
    static std::string answer(int status, const std::string& body, const std::string& headers = "") {
        return "HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
               headers + "\r\n" + body;
    }

  private:
    void serve(const LoopbackSocket& connection) {
        std::string buffer;
        const auto receive = [&] { return connection.receive(buffer); };
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
            connection.send(reply.bytes);
            open = !reply.close;
        }
    }

    const Script script_;
    mutable std::mutex mutex_;
    std::vector<Request> requests_;  // guarded by mutex_

    LoopbackServer listener_;  // the last, for what it calls uses the rest
};

}  // namespace varve
