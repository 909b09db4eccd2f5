#pragma once

#include "serve/http.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::console::serve {

/// Whether they are equal, in a time that depends on their lengths alone: who measures it learns nothing of a secret.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// What the operator has said about who may ask.
struct Access {
    std::string address = "127.0.0.1";            ///< that the server listens on
    std::vector<std::string> allowed_hosts = {};  ///< by what names it may be called, with a port or without
    std::string token = {};                       ///< who asks must have it; empty: nobody needs one
};

/// The token in a file, which nobody but its owner may read. ConfigError that says what is wrong with it.
std::string read_token(const std::string& file);

/// Decides who is answered. A page that a browser has from elsewhere must not be able to ask: by a name of its own that
/// leads to this machine (the Host header tells), by a form or script (the Origin header), or by a guessed token.
///
/// Threads: any.
class Guard {
  public:
    /// ConfigError where others than this machine's users could ask without a token. `port`: the server's. `session`:
    /// what a browser shows, once it has logged in, in place of the token; unguessable.
    Guard(Access access, unsigned port, std::string session);

    /// The refusal, or nullopt: it may be answered. `is_public`: also to those who have no token.
    std::optional<Response> refused(const Request& request, bool is_public) const;
    /// Answers POST /login with a cookie for the right token.
    Response log_in(const Request& request) const;

  private:
    bool is_known_host(const std::string& host) const;
    bool has_token(const Request& request) const;

    const Access access_;
    const std::string session_;
    const std::string cookie_;  ///< its name. Browsers keep cookies by host, for all of its ports
    std::vector<std::string> hosts_;
};

/// Whether only this machine's users reach it: "127.0.0.1", "::1", "localhost".
bool is_loopback(const std::string& address);

}  // namespace varve::console::serve
