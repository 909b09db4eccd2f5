#include "endpoint.h"

#include "messages.h"

#include <varve/core/error.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace varve::dynamodb {
namespace {

constexpr std::size_t prefix_size_max = 50;

bool is_of(std::string_view text, std::string_view others) {
    return std::ranges::all_of(text, [others](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               others.find(c) != std::string_view::npos;
    });
}

bool is_number(std::string_view text, unsigned max) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() && number <= max;
}

struct Host {
    std::string_view name;
    std::string_view port;
};

Host split(std::string_view host) {
    const std::size_t colon = host.rfind(':');
    const bool in_brackets = host.ends_with(']');
    if (colon == std::string_view::npos || in_brackets) return {host, {}};
    return {host.substr(0, colon), host.substr(colon + 1)};
}

std::optional<std::string> variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

std::optional<std::string> file(const std::string& path) {
    std::error_code unknown;
    if (!std::filesystem::exists(path, unknown)) return std::nullopt;
    const auto fail = [&path](const char* why) {
        throw ConfigError("'" + quotable(path) +
                          "' should be a file with credentials or settings of AWS's tools, and " + why);
    };
    if (std::filesystem::is_directory(path, unknown)) fail("is a directory");
    std::ifstream stream{path, std::ios::binary};
    std::string contents{std::istreambuf_iterator<char>{stream}, {}};
    if (!stream) fail("cannot be read");
    return contents;
}

Surroundings surroundings() {
    return {.variable = variable, .file = file, .fetch = [](const HttpRequest& request) {
                Http http{{}};
                return http.perform({&request, 1}).front();
            }};
}

void check_region(const std::string& region) {
    const bool lower = std::ranges::none_of(region, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (region.empty() || region.size() > 32 || !lower || !is_of(region, "-")) {
        throw ConfigError("a region is named as in eu-west-1");
    }
}

std::string region_of(const Options& options, bool loopback) {
    if (!options.region.empty()) return options.region;
    for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
        if (const auto region = variable(name); region && !region->empty()) return *region;
    }
    const std::string profile = options.profile.empty() ? profile_of(surroundings()) : options.profile;
    if (const auto found = profile_from_files(surroundings(), profile); found && found->region) return *found->region;
    if (loopback) return "us-east-1";
    throw ConfigError("no region: a dynamodb URL says ?region=eu-west-1, or AWS_REGION does");
}

/// A server on this machine checks no signatures, but wants to see one. No stranger is asked for credentials on its
/// behalf.
CredentialsSource local_credentials(const std::string& profile) {
    return [profile]() -> DatedCredentials {
        if (!profile.empty()) return credentials_of(surroundings(), profile)();
        if (auto found = credentials_from_environment(surroundings())) return *std::move(found);
        return {.credentials = {"local", "local"}};
    };
}

}  // namespace

bool is_loopback(std::string_view host) {
    const std::string_view name = split(host).name;
    if (name == "localhost" || name == "[::1]") return true;
    if (!name.starts_with("127.")) return false;
    std::size_t parts = 0;
    for (std::string_view rest = name; parts < 5; ++parts) {
        const std::string_view part = rest.substr(0, rest.find('.'));
        if (!is_number(part, 255)) return false;
        if (part.size() == rest.size()) return parts == 3;
        rest.remove_prefix(part.size() + 1);
    }
    return false;
}

void check(const Options& options) {
    if (options.prefix.empty() || options.prefix.size() > prefix_size_max || !is_of(options.prefix, "_-")) {
        throw ConfigError(
            "a dynamodb URL names a prefix of 1 to 50 of a-z A-Z 0-9 _ - for its tables, as in "
            "dynamodb://127.0.0.1:8000/bank?region=eu-west-1");
    }
    const auto [name, port] = split(options.host);
    const bool in_brackets = name.starts_with('[') && name.ends_with(']') && name.size() > 2;
    const bool good_name =
        in_brackets ? name.find_first_not_of("0123456789abcdefABCDEF:.", 1) == name.size() - 1 : is_of(name, ".-");
    const bool no_port = port.empty() && !options.host.ends_with(':');
    if (!options.host.empty() && (name.empty() || !good_name || (!no_port && !is_number(port, 65'535)))) {
        throw ConfigError(
            "a dynamodb URL's host is a name, an IPv4 address or an IPv6 address in brackets, and may have a "
            "port: dynamodb://HOST:PORT/PREFIX");
    }
    if (!options.region.empty()) check_region(options.region);
    if (options.timeout <= std::chrono::milliseconds::zero()) throw ConfigError("the timeout of a request is positive");
    if (options.retry_budget == 0) throw ConfigError("the retry budget is at least 1 repetition");
}

Client::Parts client_parts(const Options& options) {
    check(options);
    const bool loopback = is_loopback(options.host);
    const bool tls = options.host.empty() || (!loopback && !options.insecure) || !options.ca_file.empty();
    const std::string region = region_of(options, loopback);
    check_region(region);
    const std::string domain = region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
    const std::string host = options.host.empty() ? "dynamodb." + region + "." + domain : options.host;
    return {
        .endpoint = {.url = (tls ? "https://" : "http://") + host + "/",
                     .host = host,
                     .region = region,
                     .timeout = options.timeout},
        .credentials = loopback ? local_credentials(options.profile) : credentials_of(surroundings(), options.profile),
        .retry_budget = options.retry_budget,
        .runtime = options.runtime,
        .http = {.ca_file = options.ca_file,
                 .direct = loopback,
                 .trace = options.trace ? &options.runtime.log.get() : nullptr}};
}

}  // namespace varve::dynamodb
