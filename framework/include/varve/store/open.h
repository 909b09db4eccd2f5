#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

namespace store {

class ItemStore;

/// A store's address: scheme ':' location ['?' key '=' value {'&' key '=' value}], e.g.
/// "sqlite:bank.db?synchronous=normal". Percent-encoding is undone in keys and values; the location is left to the
/// adapter.
struct Url {
    std::string scheme;
    std::string location;
    std::map<std::string, std::string> options;
};

/// Throws a ConfigError that says what is wrong. Messages show no user, password or option value.
Url parse_url(std::string_view url);

/// What an adapter tells about itself, so that `open` finds it by scheme.
struct Adapter {
    std::string scheme;
    std::vector<std::string> options;  ///< the keys that its URLs may have; others are refused
    std::function<std::shared_ptr<ItemStore>(const Url&)> open;
};

/// Makes a scheme known to `open`. Adapters call it when their library is loaded: linking an adapter is enough.
void register_adapter(Adapter adapter);

}  // namespace store

/// Opens the store at `url`. Linked adapters decide which schemes there are; each adapter's README lists its options.
/// Throws ConfigError for an unknown scheme or option (listing the known ones), and what the adapter throws.
std::shared_ptr<store::ItemStore> open(std::string_view url);

/// The same for a store that should be there: where the adapter has an option `tables` and the URL does not say it, it
/// is `expect`, so that nothing is created and a missing store is a ConfigError.
std::shared_ptr<store::ItemStore> open_existing(std::string_view url);

}  // namespace varve
