#pragma once

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace varve {

/// A TCP socket of this machine's own network, which closes with the object.
class LoopbackSocket {
  public:
    /// Accepted or made elsewhere.
    explicit LoopbackSocket(int descriptor) : descriptor_(descriptor) {}
    LoopbackSocket(LoopbackSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    ~LoopbackSocket() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    LoopbackSocket& operator=(LoopbackSocket&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }

    /// On a port that was free.
    static LoopbackSocket bound() {
        LoopbackSocket socket{make()};
        const sockaddr_in address = address_of(0);
        if (bind(socket.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("bind");
        return socket;
    }
    /// To whoever listens on the port; throws std::system_error if nobody does.
    static LoopbackSocket connected(int port) {
        LoopbackSocket socket{make()};
        const sockaddr_in address = address_of(port);
        if (connect(socket.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            fail("connect");
        return socket;
    }

    int descriptor() const { return descriptor_; }
    int port() const {
        sockaddr_in address{};
        socklen_t size = sizeof address;
        if (getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) != 0) fail("getsockname");
        return ntohs(address.sin_port);
    }

    /// False if the other end is gone.
    bool send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (count <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
        return true;
    }
    /// Waits for more, and appends it; false if the other end has closed.
    bool receive(std::string& to) const {
        char bytes[16 * 1024];
        const ssize_t count = recv(descriptor_, bytes, sizeof bytes, 0);
        if (count > 0) to.append(bytes, static_cast<std::size_t>(count));
        return count > 0;
    }

  private:
    static int make() {
        const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (descriptor < 0) fail("socket");
        return descriptor;
    }
    static sockaddr_in address_of(int port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        return address;
    }
    [[noreturn]] static void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

    int descriptor_;
};

/// Listens on a free port of loopback, and gives each connection a thread that calls `serve`. Ends them all, and waits
/// for them, when it is destroyed: what they use must outlive it.
class LoopbackServer {
  public:
    using Serve = std::function<void(const LoopbackSocket& connection)>;

    explicit LoopbackServer(Serve serve) : serve_(std::move(serve)), listener_(LoopbackSocket::bound()) {
        if (listen(listener_.descriptor(), SOMAXCONN) != 0) throw std::runtime_error("listen");
        port_ = listener_.port();
        acceptor_ = std::thread{[this] { accept_all(); }};
    }
    ~LoopbackServer() {
        shutdown(listener_.descriptor(), SHUT_RDWR);
        acceptor_.join();
        std::unique_lock lock{mutex_};
        for (const int open : open_) shutdown(open, SHUT_RDWR);
        ended_.wait(lock, [this] { return open_.empty(); });
    }
    LoopbackServer(const LoopbackServer&) = delete;
    LoopbackServer& operator=(const LoopbackServer&) = delete;

    int port() const { return port_; }
    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    /// Connections so far.
    std::size_t accepted() const {
        const std::lock_guard lock{mutex_};
        return accepted_;
    }
    /// Connections that are not closed yet.
    std::size_t open() const {
        const std::lock_guard lock{mutex_};
        return open_.size();
    }

  private:
    void accept_all() {
        for (;;) {
            const int connection = accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
            if (connection < 0) return;
            const std::lock_guard lock{mutex_};
            ++accepted_;
            open_.insert(connection);
            // A test may open thousands of them: their threads are counted instead of kept.
            std::thread{[this, connection] {
                std::optional<LoopbackSocket> socket{connection};
                serve_(*socket);
                // As soon as it is closed its number may be another's, who waits here to be entered.
                const std::lock_guard ended{mutex_};
                socket.reset();
                open_.erase(connection);
                ended_.notify_all();
            }}.detach();
        }
    }

    const Serve serve_;
    const LoopbackSocket listener_;
    int port_ = 0;
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    std::set<int> open_;        // guarded by mutex_
    std::size_t accepted_ = 0;  // guarded by mutex_
    std::thread acceptor_;
};

}  // namespace varve
