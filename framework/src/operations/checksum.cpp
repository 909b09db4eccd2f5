#define XXH_INLINE_ALL
#include "operations/checksum.h"

#include <xxhash.h>

namespace varve::operations {

struct Checksum::State {
    XXH3_state_t hash;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
    XXH3_128bits_reset(&state_->hash);
}

Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::add(std::string_view text) noexcept {
    static_cast<void>(XXH3_128bits_update(&state_->hash, text.data(), text.size()));  // fails for a null pointer only
}

std::string Checksum::hex() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->hash));
    std::string text;
    for (const unsigned char byte : canonical.digest) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 0xf];
    }
    return text;
}

}  // namespace varve::operations
