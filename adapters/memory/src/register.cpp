#include <varve/core/error.h>
#include <varve/memory/memory.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <charconv>

namespace varve::memory {
namespace {

std::shared_ptr<store::ItemStore> open_url(const store::Url& url) {
    Options options;
    if (const auto given = url.options.find("item_bytes_max"); given != url.options.end()) {
        const std::string& digits = given->second;
        const char* const end = digits.data() + digits.size();
        const auto [rest, error] = std::from_chars(digits.data(), end, options.item_bytes_max);
        if (error != std::errc{} || rest != end || options.item_bytes_max == 0) {
            throw ConfigError("the option item_bytes_max of a memory: URL is not a positive number");
        }
    }
    return open(url.location, options);
}

/// Before the objects of the program are made, so that a static one may open a store.
[[gnu::constructor(200)]] void register_scheme() {
    store::register_adapter({.scheme = "memory", .options = {"item_bytes_max"}, .open = open_url});
}

}  // namespace
}  // namespace varve::memory

/// The link options of the CMake target refer to it, which makes linking the library enough to register the scheme.
extern "C" {
extern const bool varve_memory_registered;
const bool varve_memory_registered = true;
}
