#include "fault_proxy.h"

#include "http.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <netinet/tcp.h>

namespace varve::dynamodb {
namespace {

constexpr std::chrono::milliseconds moment{3};
constexpr std::size_t late_by = 5;

/// A header's value; empty if it is missing.
std::string_view header(std::string_view head, std::string_view name) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    while (!head.empty()) {
        const std::string_view line = head.substr(0, head.find("\r\n"));
        head.remove_prefix(std::min(line.size() + 2, head.size()));
        if (line.size() <= name.size() || line[name.size()] != ':') continue;
        if (!std::ranges::equal(line.substr(0, name.size()), name, {}, lower)) continue;
        const std::string_view value = line.substr(name.size() + 1);
        return value.substr(std::min(value.find_first_not_of(' '), value.size()));
    }
    return {};
}

std::string answer(std::string_view status, std::string_view body, const std::string& more = "") {
    return "HTTP/1.1 " + std::string{status} + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more +
           "\r\n" + std::string{body};
}

std::string named_error(std::string_view status, std::string_view name) {
    return answer(status, R"({"__type":"com.amazonaws.dynamodb.v20120810#)" + std::string{name} + "\"}");
}

const std::string gateway = answer("503 Service Unavailable", "<html>try again</html>");

std::string body_of(const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
}
std::string status_of(const std::string& answer) {
    const std::size_t from = answer.find(' ') + 1;
    return answer.substr(from, answer.find("\r\n") - from);
}

}  // namespace

std::string_view described(Fault fault) {
    static constexpr std::array<std::string_view, fault_kinds> names{
        "none",           "request_lost",  "request_reset",      "request_late",  "answer_lost",
        "answer_reset",   "answer_cut",    "answer_garbage",     "body_garbage",  "body_damaged",
        "checksum_wrong", "repeated",      "repeated_and_again", "failed_before", "failed_after",
        "gateway_before", "gateway_after", "throttled",          "delayed",       "silent"};
    return names.at(static_cast<std::size_t>(fault));
}

/// One end of a connection.
class FaultProxy::Connection {
  public:
    explicit Connection(const LoopbackSocket& socket) : socket_(&socket) {
        const int on = 1;
        setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }

    bool send(std::string_view bytes) const { return socket_->send(bytes); }
    /// The next request or answer, head and body; nullopt if the other end closes before it is whole.
    std::optional<std::string> receive() {
        std::size_t end = 0;
        while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
            if (!socket_->receive(buffer_)) return std::nullopt;
        }
        const std::string_view head = std::string_view{buffer_}.substr(0, end + 2);
        std::size_t size = 0;
        const std::string_view length = header(head, "content-length");
        std::from_chars(length.data(), length.data() + length.size(), size);
        if (!header(head, "transfer-encoding").empty()) throw std::runtime_error("the proxy knows no chunks");
        size += end + 4;
        while (buffer_.size() < size) {
            if (!socket_->receive(buffer_)) return std::nullopt;
        }
        std::string message = buffer_.substr(0, size);
        buffer_.erase(0, size);
        return message;
    }
    void wait_until_closed() {
        while (socket_->receive(buffer_)) {
        }
    }
    /// What is closed from now on is reset.
    void reset() const {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        setsockopt(socket_->descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }

  private:
    const LoopbackSocket* socket_;
    std::string buffer_;
};

/// A connection of the proxy's own.
struct FaultProxy::Upstream {
    explicit Upstream(int port) : socket(LoopbackSocket::connected(port)), connection(socket) {}

    /// nullopt: none came.
    std::optional<std::string> ask(const std::string& request) {
        return connection.send(request) ? connection.receive() : std::nullopt;
    }

    const LoopbackSocket socket;
    Connection connection;
};

FaultProxy::FaultProxy(int server_port, Options options)
    : server_port_(server_port),
      options_(std::move(options)),
      listener_([this](const LoopbackSocket& client) { serve(client); }) {}

FaultProxy::~FaultProxy() {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    changed_.notify_all();
}

void FaultProxy::heal() {
    healed_ = true;
    deliver_late(std::numeric_limits<std::size_t>::max());
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return delivering_ == 0; });
}

std::size_t FaultProxy::faults() const {
    return requests_ - count(Fault::none);
}

void FaultProxy::serve(const LoopbackSocket& socket) {
    Connection client{socket};
    std::unique_ptr<Upstream> server;
    while (const auto request = client.receive()) {
        if (!pass_on(client, server, *request)) break;
    }
}

/// False if the connection ends with this request.
bool FaultProxy::pass_on(Connection& client, std::unique_ptr<Upstream>& server, const std::string& request) {
    const std::size_t number = requests_++;
    const Fault fault = healed_ ? Fault::none : options_.fault(number);
    ++counts_[static_cast<std::size_t>(fault)];
    deliver_late(number);
    if (options_.round_trip.count() > 0 && !wait(options_.round_trip)) return false;
    switch (fault) {
        case Fault::request_lost: return false;
        case Fault::request_reset: client.reset(); return false;
        case Fault::request_late: {
            const std::lock_guard lock{mutex_};
            late_.push_back({number + late_by, request});
            return false;
        }
        case Fault::failed_before: return client.send(named_error("500 x", "InternalServerError"));
        case Fault::gateway_before: return client.send(gateway);
        case Fault::throttled: return client.send(named_error("400 x", "ProvisionedThroughputExceededException"));
        default: break;
    }
    if (!server) server = connect();
    const auto first = server ? server->ask(request) : std::nullopt;
    if (!first) return false;
    if (fault == Fault::none && options_.rewrite) {
        std::string other = body_of(*first);
        options_.rewrite(other);
        return client.send(answer(status_of(*first), other));
    }
    const std::string body = body_of(*first);
    const std::string right_checksum = "x-amz-crc32: " + std::to_string(crc32(body)) + "\r\n";
    switch (fault) {
        case Fault::answer_lost: return false;
        case Fault::answer_reset: client.reset(); return false;
        case Fault::answer_cut: client.send(std::string_view{*first}.substr(0, number % first->size())); return false;
        case Fault::answer_garbage: client.send("\x16\x03\x01 this is no answer\r\n\r\n"); return false;
        case Fault::body_garbage: return client.send(answer("200 OK", "{\"Item\":" + std::to_string(number)));
        case Fault::body_damaged: {
            std::string damaged = body;
            if (!damaged.empty()) damaged[number % damaged.size()] ^= 1;
            return client.send(answer(status_of(*first), damaged, right_checksum));
        }
        case Fault::checksum_wrong:
            return client.send(
                answer(status_of(*first), body, "x-amz-crc32: " + std::to_string(crc32(body) + 1) + "\r\n"));
        case Fault::repeated: deliver(request); break;
        case Fault::repeated_and_again: {
            const auto second = server->ask(request);
            return second && client.send(*second);
        }
        case Fault::failed_after: return client.send(named_error("500 x", "InternalServerError"));
        case Fault::gateway_after: return client.send(gateway);
        case Fault::delayed:
            if (!wait(moment)) return false;
            break;
        case Fault::silent: client.wait_until_closed(); return false;
        default: break;
    }
    return client.send(*first);
}

std::unique_ptr<FaultProxy::Upstream> FaultProxy::connect() const {
    try {
        return std::make_unique<Upstream>(server_port_);
    } catch (const std::system_error&) {
        return nullptr;
    }
}

void FaultProxy::deliver_late(std::size_t until) {
    for (;;) {
        std::string request;
        {
            const std::lock_guard lock{mutex_};
            const auto due = std::ranges::find_if(late_, [until](const Late& late) { return late.due <= until; });
            if (due == late_.end()) return;
            request = std::move(due->request);
            late_.erase(due);
            ++delivering_;
        }
        deliver(request);
        const std::lock_guard lock{mutex_};
        --delivering_;
        changed_.notify_all();
    }
}

void FaultProxy::deliver(const std::string& request) {
    const auto server = connect();
    if (server) (void)server->ask(request);
}

bool FaultProxy::wait(std::chrono::milliseconds time) {
    std::unique_lock lock{mutex_};
    return !changed_.wait_for(lock, time, [this] { return stopping_; });
}

}  // namespace varve::dynamodb
