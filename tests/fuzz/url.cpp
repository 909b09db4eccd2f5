#include "require.h"

#include <varve/core/error.h>
#include <varve/store/open.h>

#include <cstdint>
#include <string_view>

// Whatever an address holds, it is understood or refused with a ConfigError.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    try {
        const varve::store::Url url = varve::store::parse_url(text);
        require(!url.scheme.empty(), "an address that is understood has a scheme");
        require(text.starts_with(url.scheme), "the scheme is what the address begins with");
        for (const auto& [key, value] : url.options) require(!key.empty(), "every option has a name");
    } catch (const varve::ConfigError& error) {
        require(std::string_view{error.what()}.size() > 10, "a refusal says why");
    }
    return 0;
}
