#include <varve/core/error.h>
#include <varve/core/mutex.h>
#include <varve/core/suggest.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <algorithm>
#include <charconv>

namespace varve {
namespace store {
namespace {

class Registry {
  public:
    static Registry& instance() {
        static Registry registry;
        return registry;
    }

    void add(Adapter adapter) {
        const MutexLock lock{mutex_};
        std::string scheme = adapter.scheme;
        adapters_.insert_or_assign(std::move(scheme), std::move(adapter));
    }

    Adapter find(const std::string& scheme) {
        const MutexLock lock{mutex_};
        const auto found = adapters_.find(scheme);
        if (found != adapters_.end()) return found->second;
        std::vector<std::string> known;
        for (const auto& [name, adapter] : adapters_) known.push_back(name);
        throw ConfigError("no adapter for scheme '" + scheme + "' is linked into this program" +
                          suggest(scheme, known));
    }

  private:
    Mutex mutex_;
    std::map<std::string, Adapter> adapters_ VARVE_GUARDED_BY(mutex_);
};

std::string percent_decoded(std::string_view text) {
    std::string decoded;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            decoded += text[i];
            continue;
        }
        unsigned code = 0;
        const char* const end = text.data() + std::min(i + 3, text.size());
        if (text.size() < i + 3 || std::from_chars(text.data() + i + 1, end, code, 16).ptr != end) {
            throw ConfigError("a store URL has a '%' that is not followed by two hexadecimal digits");
        }
        decoded += static_cast<char>(code);
        i += 2;
    }
    return decoded;
}

/// How a message calls an option. After a '?' in a password, its rest looks like options.
std::string named_option(std::string_view url, const std::string& key) {
    if (url.find('@', url.find('?')) == std::string_view::npos) return "option '" + key + "'";
    return "option '…' (hidden: if it is a part of the password, write %3F for the '?' before it)";
}

}  // namespace

Url parse_url(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0) {
        throw ConfigError("a store URL begins with a scheme and a colon, as in sqlite:bank.db");
    }
    Url url{.scheme = std::string{text.substr(0, colon)}, .location = {}, .options = {}};
    std::string_view rest = text.substr(colon + 1);
    const std::size_t question = rest.find('?');
    url.location = std::string{rest.substr(0, question)};
    if (question == std::string_view::npos) return url;
    rest.remove_prefix(question + 1);
    while (!rest.empty()) {
        const std::string_view option = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(option.size() + 1, rest.size()));
        const std::size_t equals = option.find('=');
        std::string key = percent_decoded(option.substr(0, equals));
        if (equals == std::string_view::npos || key.empty()) {
            throw ConfigError("a store URL's options are written key=value, joined by '&'; one of them is not");
        }
        if (!url.options.emplace(key, percent_decoded(option.substr(equals + 1))).second) {
            throw ConfigError("the store URL gives " + named_option(text, key) + " twice");
        }
    }
    return url;
}

void register_adapter(Adapter adapter) {
    Registry::instance().add(std::move(adapter));
}

}  // namespace store

namespace {

bool knows(const store::Adapter& adapter, const std::string& option) {
    return std::ranges::find(adapter.options, option) != adapter.options.end();
}

std::shared_ptr<store::ItemStore> open(std::string_view text, bool must_exist) {
    store::Url url = store::parse_url(text);
    const store::Adapter adapter = store::Registry::instance().find(url.scheme);
    for (const auto& [key, value] : url.options) {
        if (!knows(adapter, key)) {
            throw ConfigError("the adapter for '" + url.scheme + ":' has no " + store::named_option(text, key) +
                              suggest(key, adapter.options));
        }
    }
    if (must_exist && knows(adapter, "tables")) url.options.try_emplace("tables", "expect");
    return adapter.open(url);
}

}  // namespace

std::shared_ptr<store::ItemStore> open(std::string_view url) {
    return open(url, false);
}

std::shared_ptr<store::ItemStore> open_existing(std::string_view url) {
    return open(url, true);
}

}  // namespace varve
