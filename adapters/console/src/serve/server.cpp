// The one source with Boost in it.
#if VARVE_SERVE

#include "serve/server.h"

#include <varve/core/error.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace varve::console::serve {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace net = boost::asio;
using Tcp = net::ip::tcp;
using Failed = beast::error_code;
using Steady = net::steady_timer::clock_type;

namespace {

class Session;

/// What all connections share. Its I/O thread alone touches it.
struct Shared {
    Shared(net::io_context& context, const Limits& limits) : io(context), limits(limits), looking(context) {}

    /// False: too much is queued.
    template <class Work>
    bool hand_over(Work work) {
        if (queued >= limits.queue) return false;
        ++queued;
        // Whoever waits for a worker keeps the server from ending. What the work holds, a connection, goes in the I/O
        // thread.
        net::post(*workers, [this, work = std::move(work), busy = net::make_work_guard(io)]() mutable {
            auto then = work();
            net::post(io, [this, then = std::move(then), work = std::move(work)]() mutable {
                --queued;
                then();
            });
        });
        return true;
    }

    void wait(const std::shared_ptr<Session>& session);
    void look_later();

    net::io_context& io;
    const Limits limits;
    Server::Handlers handlers;
    std::optional<net::thread_pool> workers;
    std::set<Session*> sessions;
    std::size_t queued = 0;
    std::size_t refusing = 0;  // connections that are told that there are too many
    std::vector<std::shared_ptr<Session>> waiting;
    net::steady_timer looking;
    bool is_looking = false;
    bool is_ending = false;
};

http::response<http::string_body> message_of(Response&& response, bool is_head) {
    http::response<http::string_body> message{static_cast<http::status>(response.status), 11};
    message.set(http::field::server, "varve");
    // Everything comes from here, nothing of it is executed but the page's own script, and nobody frames it.
    message.set("Content-Security-Policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
                "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
    message.set("X-Content-Type-Options", "nosniff");
    message.set("X-Frame-Options", "DENY");
    message.set("Referrer-Policy", "no-referrer");
    message.set("Cross-Origin-Opener-Policy", "same-origin");
    message.set("Cross-Origin-Resource-Policy", "same-origin");
    message.set(http::field::cache_control, "no-store");
    if (!response.content_type.empty()) message.set(http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    const std::size_t bytes = response.body.size();
    if (!is_head) message.body() = std::move(response.body);
    if (response.status != 204) message.content_length(bytes);
    return message;
}

/// A connection: reads a request, has it answered, and so on.
class Session : public std::enable_shared_from_this<Session> {
  public:
    Session(Tcp::socket&& socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) {
        shared_.sessions.insert(this);
    }
    ~Session() { shared_.sessions.erase(this); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    void start() { await_request(shared_.limits.header_time); }

    /// For one that is too many.
    void refuse() {
        ++shared_.refusing;
        is_refused_ = true;
        write(refusal(503, "overloaded", "there are too many connections"), false);
    }

    /// The server ends: now, or when what is being answered has been written.
    void end(bool at_once) {
        if (at_once || state_ == State::reading) {
            close();
        } else if (state_ == State::waiting) {
            give_up_waiting();
        }
    }

    // While its answer waits.
    std::uint64_t waits_beyond() const { return waits_beyond_; }
    bool is_over() const { return Steady::now() >= wait_until_; }
    /// Asks again.
    void look_again() {
        state_ = State::answering;
        answer();
    }
    void give_up_waiting() { write(std::move(empty_answer_), keeps_alive_); }

  private:
    enum class State { reading, answering, waiting, writing, closing };

    void await_request(std::chrono::milliseconds patience) {
        state_ = State::reading;
        if (shared_.is_ending) return close();
        if (buffer_.size() > 0) return read_header();
        stream_.expires_after(patience);
        stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](Failed failed, std::size_t bytes) {
            self->buffer_.commit(bytes);
            if (failed) return self->close();
            self->read_header();
        });
    }

    void read_header() {
        parser_.emplace();
        parser_->header_limit(static_cast<std::uint32_t>(shared_.limits.header_bytes));
        parser_->body_limit(shared_.limits.body_bytes);
        begun_ = Steady::now();
        wait_until_ = {};
        stream_.expires_at(begun_ + shared_.limits.header_time);
        http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](Failed failed, std::size_t) {
            if (failed) return self->cannot_read(failed);
            self->read_body();
        });
    }

    void read_body() {
        stream_.expires_at(begun_ + shared_.limits.request_time);
        http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](Failed failed, std::size_t) {
            if (failed) return self->cannot_read(failed);
            self->take();
        });
    }

    void cannot_read(Failed failed) {
        if (failed == beast::error::timeout) return close();
        if (failed == http::error::header_limit)
            return write(refusal(431, "too_large", "the request's header is too large"), false);
        if (failed == http::error::body_limit)
            return write(refusal(413, "too_large", "the request's body is too large"), false);
        if (failed.category() == beast::error_code{http::error::bad_method}.category() &&
            failed != http::error::end_of_stream && failed != http::error::partial_message)
            return write(refusal(400, "bad_request", "this is no HTTP request"), false);
        close();
    }

    void take() {
        stream_.expires_never();
        const auto& message = parser_->get();
        keeps_alive_ = message.keep_alive();
        const auto text = [&](http::field field) {
            const auto value = message[field];
            return std::string{value.data(), value.size()};
        };
        request_ = {.method = std::string{message.method_string()},
                    .target = std::string{message.target()},
                    .hosts = {},
                    .origin = text(http::field::origin),
                    .site = {},
                    .content_type = text(http::field::content_type),
                    .authorization = text(http::field::authorization),
                    .cookie = text(http::field::cookie),
                    .body = message.body()};
        const auto site = message["Sec-Fetch-Site"];
        request_.site.assign(site.data(), site.size());
        const auto [first, last] = message.equal_range(http::field::host);
        for (auto at = first; at != last; ++at) request_.hosts.emplace_back(at->value().data(), at->value().size());
        answer();
    }

    void answer() {
        state_ = State::answering;
        const bool is_taken = shared_.hand_over([self = shared_from_this(), request = request_] {
            Response response;
            try {
                response = self->shared_.handlers.answer(request);
            } catch (const std::bad_alloc&) {
                response = {.status = 503, .content_type = {}, .body = {}};
            }
            return [self, response = std::move(response)]() mutable { self->answered(std::move(response)); };
        });
        if (!is_taken) write(refusal(503, "overloaded", "too many requests wait to be answered"), keeps_alive_);
    }

    void answered(Response&& response) {
        if (state_ != State::answering) return;  // it was closed meanwhile
        if (wait_until_ == Steady::time_point{}) wait_until_ = Steady::now() + shared_.limits.wait_time;
        if (!response.waits_beyond || shared_.is_ending || is_over()) return write(std::move(response), keeps_alive_);
        waits_beyond_ = *response.waits_beyond;
        empty_answer_ = std::move(response);
        state_ = State::waiting;
        shared_.wait(shared_from_this());
    }

    void write(Response&& response, bool keeps_alive) {
        state_ = State::writing;
        // Who is refused need not hold a connection.
        const bool is_refused = response.status == 401 || response.status == 403 || response.status == 421;
        keeps_alive_ = keeps_alive && !is_refused && !shared_.is_ending;
        message_ = std::make_unique<http::response<http::string_body>>(
            message_of(std::move(response), request_.method == "HEAD"));
        message_->keep_alive(keeps_alive_);
        serializer_ = std::make_unique<http::response_serializer<http::string_body>>(*message_);
        // A HEAD's answer tells a length of what it does not have.
        stream_.expires_after(shared_.limits.answer_time);
        const auto written = [self = shared_from_this()](Failed failed, std::size_t) {
            if (failed) return self->close();
            if (self->keeps_alive_) return self->await_request(self->shared_.limits.idle_time);
            self->take_leave();
        };
        if (request_.method == "HEAD") return http::async_write_header(stream_, *serializer_, written);
        http::async_write(stream_, *serializer_, written);
    }

    /// Reads what is still coming, for a moment: who closes with something unread takes back what was written.
    void take_leave() {
        state_ = State::closing;
        Failed ignored;
        stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
        stream_.expires_after(std::chrono::seconds{1});
        drain();
    }
    void drain() {
        constexpr std::size_t drained_max = 256 * 1024;
        buffer_.clear();
        stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](Failed failed, std::size_t bytes) {
            self->drained_ += bytes;
            if (failed || self->drained_ > drained_max) return self->close();
            self->drain();
        });
    }

    void close() {
        state_ = State::closing;
        Failed ignored;
        stream_.socket().close(ignored);
        if (std::exchange(is_refused_, false)) --shared_.refusing;
    }

    beast::tcp_stream stream_;
    Shared& shared_;
    beast::flat_buffer buffer_{128 * 1024};
    std::optional<http::request_parser<http::string_body>> parser_;
    std::unique_ptr<http::response<http::string_body>> message_;
    std::unique_ptr<http::response_serializer<http::string_body>> serializer_;
    Request request_;
    Response empty_answer_;
    State state_ = State::reading;
    bool keeps_alive_ = false;
    bool is_refused_ = false;
    std::size_t drained_ = 0;
    std::uint64_t waits_beyond_ = 0;
    Steady::time_point begun_ = {};
    Steady::time_point wait_until_ = {};
};

void Shared::wait(const std::shared_ptr<Session>& session) {
    waiting.push_back(session);
    if (!is_looking) look_later();
}

/// One look serves all who wait; nobody looks where nobody does.
void Shared::look_later() {
    is_looking = true;
    looking.expires_after(limits.look_interval);
    looking.async_wait([this](Failed failed) {
        if (failed || waiting.empty()) {
            is_looking = false;
            return;
        }
        const bool is_taken = hand_over([this] {
            std::uint64_t end = 0;  // where the store does not say it, nobody is told of anything new
            try {
                end = handlers.end();
            } catch (const std::exception&) {
                end = 0;
            }
            return [this, end] {
                std::vector<std::shared_ptr<Session>> left;
                for (std::shared_ptr<Session>& one : std::exchange(waiting, {})) {
                    if (end > one->waits_beyond()) {
                        one->look_again();
                    } else if (one->is_over()) {
                        one->give_up_waiting();
                    } else {
                        left.push_back(std::move(one));
                    }
                }
                waiting.insert(waiting.end(), left.begin(), left.end());
                is_looking = false;
                if (!waiting.empty()) look_later();
            };
        });
        if (!is_taken) look_later();
    });
}

}  // namespace

struct Server::Parts {
    explicit Parts(const Limits& limits) : shared(io, limits), acceptor(io), signals(io), retry(io), ending(io) {}

    void accept() {
        acceptor.async_accept([this](Failed failed, Tcp::socket socket) {
            if (failed == net::error::operation_aborted || shared.is_ending) return;
            if (failed) {
                // There are too many open files, perhaps; asking again at once would turn in circles.
                retry.expires_after(std::chrono::milliseconds{100});
                retry.async_wait([this](Failed stopped) {
                    if (!stopped) accept();
                });
                return;
            }
            take(std::move(socket));
            accept();
        });
    }

    void take(Tcp::socket socket) {
        constexpr std::size_t refusing_max = 50;
        const bool is_full = shared.sessions.size() - shared.refusing >= shared.limits.connections;
        if (is_full && shared.refusing >= refusing_max) return;  // which closes it
        Failed ignored;
        socket.set_option(Tcp::no_delay{true}, ignored);
        const auto session = std::make_shared<Session>(std::move(socket), shared);
        if (is_full) return session->refuse();
        session->start();
    }

    void end() {
        if (std::exchange(shared.is_ending, true)) return;
        Failed ignored;
        acceptor.close(ignored);
        signals.cancel(ignored);
        signals.clear(ignored);  // a second signal ends the process as ever
        retry.cancel();
        shared.looking.cancel();
        const std::vector<std::shared_ptr<Session>> all = sessions();
        shared.waiting.clear();
        for (const std::shared_ptr<Session>& one : all) one->end(false);
        ending.expires_after(shared.limits.end_time);
        ending.async_wait([this](Failed) { end_at_once(); });
        until_quiet();
    }
    void end_at_once() {
        for (const std::shared_ptr<Session>& one : sessions()) one->end(true);
    }
    /// Held, since one that ends may be nobody's any more.
    std::vector<std::shared_ptr<Session>> sessions() const {
        std::vector<std::shared_ptr<Session>> all;
        for (Session* const one : shared.sessions) all.push_back(one->shared_from_this());
        return all;
    }
    /// The timer of those who are slow must not hold up the end of those who are not.
    void until_quiet() {
        if (shared.sessions.empty()) {
            ending.cancel();
            return;
        }
        retry.expires_after(std::chrono::milliseconds{10});
        retry.async_wait([this](Failed failed) {
            if (!failed) until_quiet();
        });
    }

    net::io_context io{1};
    Shared shared;
    Tcp::acceptor acceptor;
    net::signal_set signals;
    net::steady_timer retry;
    net::steady_timer ending;
};

Server::Server(const std::string& address, unsigned port, const Limits& limits)
    : parts_(std::make_unique<Parts>(limits)) {
    Failed failed;
    const net::ip::address at = net::ip::make_address(address == "localhost" ? "127.0.0.1" : address, failed);
    if (failed) throw ConfigError("'" + address + "' is no address of this machine, as 127.0.0.1 or 0.0.0.0 are");
    const Tcp::endpoint endpoint{at, static_cast<unsigned short>(port)};
    Tcp::acceptor& acceptor = parts_->acceptor;
    acceptor.open(endpoint.protocol(), failed);
    if (!failed) acceptor.set_option(net::socket_base::reuse_address{true}, failed);
    if (!failed) acceptor.bind(endpoint, failed);
    if (!failed) acceptor.listen(net::socket_base::max_listen_connections, failed);
    if (!failed) return;
    throw ConfigError("cannot listen at " + address + " port " + std::to_string(port) + ": " + failed.message() +
                      "; --port 0 takes one that is free");
}

Server::~Server() = default;

unsigned Server::port() const {
    Failed ignored;
    return parts_->acceptor.local_endpoint(ignored).port();
}

void Server::run(Handlers handlers) {
    Shared& shared = parts_->shared;
    shared.handlers = std::move(handlers);
    shared.workers.emplace(shared.limits.workers);
    Failed ignored;
    parts_->signals.add(SIGINT, ignored);
    parts_->signals.add(SIGTERM, ignored);
    parts_->signals.async_wait([this](Failed failed, int) {
        if (!failed) parts_->end();
    });
    parts_->accept();
    /// However this ends, nobody works with the handlers any more when it has.
    struct Joined {
        net::thread_pool& workers;
        ~Joined() {
            workers.stop();
            workers.join();
        }
    } joined{*shared.workers};
    parts_->io.run();
    shared.workers->join();
}

void Server::stop() {
    net::post(parts_->io, [parts = parts_.get()] { parts->end(); });
}

}  // namespace varve::console::serve

#endif
