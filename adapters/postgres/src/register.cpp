#include <varve/core/suggest.h>
#include <varve/postgres/postgres.h>
#include <varve/store/open.h>

#include <array>
#include <charconv>
#include <memory>

#include <libpq-fe.h>

namespace varve::postgres {
namespace {

bool is_off(const std::string& name, const std::string& value) {
    static const std::array<std::string, 2> known{"off", "on"};
    if (value != known[0] && value != known[1])
        throw ConfigError(name + " of a postgres URL is off or on" + suggest(value, known));
    return value == known[0];
}

std::int64_t number(const std::string& name, const std::string& value) {
    std::int64_t result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc{} || end != value.data() + value.size())
        throw ConfigError(name + " of a postgres URL is a number");
    return result;
}

/// The keys that libpq knows in a URI.
const std::vector<std::string>& keys_of_libpq() {
    static const std::vector<std::string> keys = [] {
        const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> all{PQconninfoParse("", nullptr),
                                                                               PQconninfoFree};
        std::vector<std::string> names;
        for (const PQconninfoOption* one = all.get(); one != nullptr && one->keyword != nullptr; ++one)
            names.emplace_back(one->keyword);
        return names;
    }();
    return keys;
}

std::string percent_encoded(std::string_view text) {
    constexpr const char* digits = "0123456789ABCDEF";
    std::string encoded;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                           c == '-' || c == '.';
        if (plain) {
            encoded += c;
        } else {
            encoded += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return encoded;
}

Options options_of(const store::Url& url) {
    Options options;
    options.connection = "postgres:" + url.location;
    if (!url.location.starts_with("//"))
        throw ConfigError("a postgres URL begins with postgres://, as in postgres://bank@db.example/ledger");
    char separator = '?';
    for (const auto& [name, value] : url.options) {
        if (name == "schema") {
            options.schema = value;
        } else if (name == "tables") {
            static const std::array<std::string, 2> known{"create", "expect"};
            if (value != known[0] && value != known[1])
                throw ConfigError("tables of a postgres URL is create or expect" + suggest(value, known));
            options.tables = value == known[0] ? Tables::create : Tables::expect;
        } else if (name == "lock_timeout_ms") {
            options.lock_timeout = std::chrono::milliseconds{number(name, value)};
        } else if (name == "timeout_ms") {
            options.timeout = std::chrono::milliseconds{number(name, value)};
        } else if (name == "connections") {
            const std::int64_t count = number(name, value);
            options.connections = count < 0 || count > 1'000'000 ? 0 : static_cast<unsigned>(count);
        } else if (name == "notify") {
            options.notify = !is_off(name, value);
        } else if (name == "fsync") {
            options.accept_fsync_off = is_off(name, value);
        } else if (name == "synchronous_commit") {
            options.accept_asynchronous_commit = is_off(name, value);
        } else {
            options.connection += separator + name + "=" + percent_encoded(value);
            separator = '&';
        }
    }
    return options;
}

/// Before the objects of the program are made, so that a static one may open a store.
[[gnu::constructor(200)]] void register_scheme() {
    std::vector<std::string> known{"schema",      "tables", "lock_timeout_ms", "timeout_ms",
                                   "connections", "notify", "fsync",           "synchronous_commit"};
    known.insert(known.end(), keys_of_libpq().begin(), keys_of_libpq().end());
    for (const char* scheme : {"postgres", "postgresql"}) {
        store::register_adapter(
            {.scheme = scheme, .options = known, .open = [](const store::Url& url) { return open(options_of(url)); }});
    }
}

}  // namespace
}  // namespace varve::postgres

/// The linker is told to look for this name, so that this file, which nothing else refers to, becomes part of the
/// program.
extern "C" {
extern const bool varve_adapter_postgres;
const bool varve_adapter_postgres = true;
}
