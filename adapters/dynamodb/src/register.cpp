#include <varve/core/error.h>
#include <varve/core/suggest.h>
#include <varve/dynamodb/dynamodb.h>
#include <varve/store/open.h>

#include <charconv>
#include <map>

namespace varve::dynamodb {
namespace {

template <class T>
T one_of(const std::string& option, const std::string& value, const std::map<std::string, T>& known) {
    const auto found = known.find(value);
    if (found != known.end()) return found->second;
    std::vector<std::string> names;
    std::string list;
    for (const auto& [name, meaning] : known) {
        names.push_back(name);
        list += (list.empty() ? "" : ", ") + name;
    }
    throw ConfigError(option + " of a dynamodb URL is one of " + list + suggest(value, names));
}

unsigned number_of(const std::string& option, const std::string& value, unsigned max) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number == 0 || number > max) {
        throw ConfigError(option + " of a dynamodb URL is a number from 1 to " + std::to_string(max));
    }
    return number;
}

Options options_of(const store::Url& url) {
    Options options{.prefix = {}};
    const std::string_view location = url.location;
    const std::size_t slash = location.find('/', 2);
    if (!location.starts_with("//") || slash == std::string_view::npos) {
        throw ConfigError("a dynamodb URL is dynamodb://HOST:PORT/PREFIX, or dynamodb:///PREFIX for AWS");
    }
    options.host = location.substr(2, slash - 2);
    options.prefix = location.substr(slash + 1);
    for (const auto& [name, value] : url.options) {
        if (name == "region") {
            options.region = value;
        } else if (name == "profile") {
            options.profile = value;
        } else if (name == "tables") {
            options.tables = one_of<Tables>(name, value, {{"create", Tables::create}, {"expect", Tables::expect}});
        } else if (name == "insecure") {
            options.insecure = one_of<bool>(name, value, {{"allow", true}, {"refuse", false}});
        } else if (name == "ca_file") {
            options.ca_file = value;
        } else if (name == "retry_budget") {
            options.retry_budget = number_of(name, value, 1'000'000);
        } else {
            options.timeout = std::chrono::milliseconds{number_of(name, value, 3'600'000)};
        }
    }
    return options;
}

/// Before the objects of the program are made, so that a static one may open a store.
[[gnu::constructor(200)]] void register_scheme() {
    store::register_adapter(
        {.scheme = "dynamodb",
         .options = {"region", "profile", "tables", "insecure", "ca_file", "timeout_ms", "retry_budget"},
         .open = [](const store::Url& url) { return open(options_of(url)); }});
}

}  // namespace
}  // namespace varve::dynamodb

/// The linker is told to look for this name, so that this file, which nothing else refers to, becomes part of the
/// program.
extern "C" {
extern const bool varve_adapter_dynamodb;
const bool varve_adapter_dynamodb = true;
}
