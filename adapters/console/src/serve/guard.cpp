#include "serve/guard.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace varve::console::serve {

namespace {

constexpr std::size_t token_bytes_min = 16;

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

std::string in_url(const std::string& host) {
    return host.find(':') == std::string::npos || host.starts_with('[') ? host : "[" + host + "]";
}

bool has_port(const std::string& host) {
    const std::size_t colon = host.rfind(':');
    return colon != std::string::npos && host.find(']', colon) == std::string::npos;
}

/// The value of a cookie; empty if it is not there.
std::string_view value_of(std::string_view cookies, std::string_view name) {
    while (!cookies.empty()) {
        const std::size_t end = std::min(cookies.find(';'), cookies.size());
        std::string_view one = cookies.substr(0, end);
        while (one.starts_with(' ')) one.remove_prefix(1);
        if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) return one.substr(name.size() + 1);
        cookies.remove_prefix(std::min(end + 1, cookies.size()));
    }
    return {};
}

struct Login {
    std::string token;
};

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
    // Volatile, so that no compiler ends the loop at the first difference.
    volatile unsigned char difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const auto mine = static_cast<unsigned char>(a[i]);
        const auto theirs = b.empty() ? static_cast<unsigned char>(~mine) : static_cast<unsigned char>(b[i % b.size()]);
        difference = static_cast<unsigned char>(difference | (mine ^ theirs));
    }
    return difference == 0;
}

bool is_loopback(const std::string& address) {
    return address == "localhost" || address == "::1" || address.starts_with("127.");
}

std::string read_token(const std::string& file) {
    const std::string what = "the token file '" + file + "' ";
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) throw ConfigError(what + "cannot be read");
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened{fdopen(descriptor, "r"), std::fclose};
    if (!opened) {
        close(descriptor);
        throw ConfigError(what + "cannot be read");
    }
    struct stat found {};
    // Of what is open, not of what has the name by now.
    if (fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) throw ConfigError(what + "is no file");
    if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        throw ConfigError(what + "can be read by others than its owner; chmod 600 it, and make a new token");
    if (found.st_uid != geteuid()) throw ConfigError(what + "belongs to another user");
    char buffer[1024];
    std::string token{buffer, std::fread(buffer, 1, sizeof buffer, opened.get())};
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    if (token.size() < token_bytes_min || token.size() >= sizeof buffer)
        throw ConfigError(what + "must have 16 to 1,000 characters, as `openssl rand -hex 32` prints them");
    if (!std::ranges::all_of(token, [](unsigned char c) { return c > 0x20 && c < 0x7f; }))
        throw ConfigError(what + "must have one line of printable characters without blanks");
    return token;
}

Guard::Guard(Access access, unsigned port, std::string session)
    : access_(std::move(access)), session_(std::move(session)), cookie_("varve-" + std::to_string(port)) {
    if (access_.token.empty() && !is_loopback(access_.address)) {
        throw ConfigError("others than this machine's users could ask at " + access_.address +
                          "; give --token-file FILE, or stay at 127.0.0.1");
    }
    if (access_.token.empty() && !access_.allowed_hosts.empty()) {
        throw ConfigError(
            "who calls this server by another name comes through a proxy, from anywhere; give --token-file "
            "FILE with --allowed-host");
    }
    if (session_.size() < token_bytes_min) throw ConfigError("a session's secret is too short");
    const std::string with_port = ":" + std::to_string(port);
    std::vector<std::string> names{"localhost", "127.0.0.1", "[::1]"};
    if (access_.address != "0.0.0.0" && access_.address != "::") names.push_back(in_url(access_.address));
    for (const std::string& name : names) {
        hosts_.push_back(lower(name) + with_port);
        if (port == 80) hosts_.push_back(lower(name));
    }
    for (const std::string& name : access_.allowed_hosts) {
        hosts_.push_back(lower(name));
        if (!has_port(name)) hosts_.push_back(lower(name) + with_port);
    }
}

bool Guard::is_known_host(const std::string& host) const {
    return std::ranges::find(hosts_, lower(host)) != hosts_.end();
}

bool Guard::has_token(const Request& request) const {
    if (access_.token.empty()) return true;
    constexpr std::string_view scheme = "bearer ";
    const std::string& sent = request.authorization;
    if (sent.size() > scheme.size() && lower(sent.substr(0, scheme.size())) == scheme)
        return equal_in_constant_time(std::string_view{sent}.substr(scheme.size()), access_.token);
    return equal_in_constant_time(value_of(request.cookie, cookie_), session_);
}

std::optional<Response> Guard::refused(const Request& request, bool is_public) const {
    if (request.hosts.size() != 1) return refusal(400, "bad_request", "a request has one Host header");
    const std::string& host = request.hosts.front();
    if (!is_known_host(host)) {
        return refusal(421, "unknown_host",
                       "this server is not known by this name; --allowed-host NAME makes it known, if it is its own");
    }
    const bool is_post = request.method == "POST";
    if (is_post || !request.origin.empty()) {
        // By TLS where something before this server ends it; then by an allowed name.
        const bool is_own = lower(request.origin) == "http://" + lower(host) ||
                            (!access_.allowed_hosts.empty() && lower(request.origin) == "https://" + lower(host));
        if (!is_own) return refusal(403, "other_origin", "this was asked for by another page than this server's");
    }
    const bool is_of_another_site =
        !request.site.empty() && request.site != "same-origin" && request.site != "none" && !is_public;
    if (is_of_another_site) return refusal(403, "other_origin", "this was asked for by another site's page");
    if (is_post) {
        const std::string type = lower(request.content_type.substr(0, request.content_type.find(';')));
        // Of what forms can send, a browser asks nobody before it sends it.
        if (type != json_type) return refusal(415, "no_json", "the Content-Type must be application/json");
    }
    if (!is_public && !has_token(request)) {
        Response response = refusal(401, "no_token", "the token is needed: Authorization: Bearer TOKEN, or log in");
        response.headers.emplace_back("WWW-Authenticate", "Bearer");
        return response;
    }
    return std::nullopt;
}

Response Guard::log_in(const Request& request) const {
    const auto login = json::decode<Login>(request.body, {.require_all = true});
    if (!login) return refusal(400, "bad_request", "a login is {\"token\":\"…\"}");
    if (!access_.token.empty() && !equal_in_constant_time(login->token, access_.token))
        return refusal(401, "no_token", "this is not the token");
    return {.status = 204,
            .content_type = {},
            .body = {},
            .headers = {{"Set-Cookie", cookie_ + "=" + session_ + "; Path=/; HttpOnly; SameSite=Strict"}}};
}

}  // namespace varve::console::serve
