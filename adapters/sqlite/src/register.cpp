#include <varve/core/suggest.h>
#include <varve/sqlite/sqlite.h>
#include <varve/store/open.h>

#include <array>
#include <charconv>

namespace varve::sqlite {
namespace {

Options options_of(const store::Url& url) {
    Options options{.path = url.location};
    for (const auto& [name, value] : url.options) {
        if (name == "synchronous") {
            static const std::array<std::string, 2> known{"full", "normal"};
            if (value != known[0] && value != known[1]) {
                throw ConfigError("synchronous of a sqlite URL is full or normal" + suggest(value, known));
            }
            options.synchronous = value == known[0] ? Synchronous::full : Synchronous::normal;
        } else if (name == "tables") {
            static const std::array<std::string, 2> known{"create", "expect"};
            if (value != known[0] && value != known[1])
                throw ConfigError("tables of a sqlite URL is create or expect" + suggest(value, known));
            options.tables = value == known[0] ? Tables::create : Tables::expect;
        } else if (name == "mode") {
            const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.mode, 8);
            if (error != std::errc{} || end != value.data() + value.size() || (options.mode & ~0666U) != 0 ||
                (options.mode & 0600U) != 0600U) {
                throw ConfigError(
                    "mode of a sqlite URL is the file's permissions in octal, as 0600 or 0640: its owner may read and "
                    "write, nobody may execute");
            }
        } else {
            std::int64_t milliseconds = 0;
            const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), milliseconds);
            constexpr std::int64_t day = 86'400'000;
            if (error != std::errc{} || end != value.data() + value.size() || milliseconds < 0 || milliseconds > day) {
                throw ConfigError("busy_timeout_ms of a sqlite URL is a number from 0 to " + std::to_string(day));
            }
            options.busy_timeout = std::chrono::milliseconds{milliseconds};
        }
    }
    return options;
}

/// Before the objects of the program are made, so that a static one may open a store.
[[gnu::constructor(200)]] void register_scheme() {
    store::register_adapter({.scheme = "sqlite",
                             .options = {"synchronous", "busy_timeout_ms", "mode", "tables"},
                             .open = [](const store::Url& url) { return open(options_of(url)); }});
}

}  // namespace
}  // namespace varve::sqlite

/// The linker is told to look for this name, so that this file, which nothing else refers to, becomes part of the
/// program.
extern "C" {
extern const bool varve_adapter_sqlite;
const bool varve_adapter_sqlite = true;
}
