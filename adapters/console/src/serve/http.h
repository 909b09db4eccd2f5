#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace varve::console::serve {

/// What a browser, or Prometheus, asks.
struct Request {
    std::string method;
    std::string target;              ///< as it was sent: "/api/streams?prefix=a"
    std::vector<std::string> hosts;  ///< all that were sent; there must be one
    std::string origin;              ///< these: empty if they were not sent
    std::string site;                ///< Sec-Fetch-Site
    std::string content_type;
    std::string authorization;
    std::string cookie;
    std::string body;
};

struct Response {
    int status = 500;
    std::string content_type;
    std::string body;
    std::vector<std::pair<std::string, std::string>> headers = {};  ///< beside those that every answer has
    /// There is nothing beyond this position yet: the answer may wait until there is, and be asked for again.
    std::optional<std::uint64_t> waits_beyond = {};
};

inline constexpr const char* json_type = "application/json";

/// {"error":"…","message":"…"}
Response refusal(int status, const std::string& error, const std::string& message);

}  // namespace varve::console::serve
