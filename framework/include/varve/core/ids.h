#pragma once

#include <varve/core/runtime.h>

#include <optional>
#include <string>
#include <string_view>

namespace varve {

/// A new UUID version 7 (RFC 9562) in its 36-character form: 48 bits of Unix time in milliseconds, 74 random bits. Ids
/// made later by clocks that agree sort later. Two ids of the same millisecond are equal with a probability of 2^-74. A
/// forked child draws other ids than its parent. Everything that must be unique rests on this.
std::string uuid7(Runtime runtime);

/// When the UUID version 7 at the beginning of `id` was made, by its maker's clock; nullopt if `id` begins with none.
std::optional<Time> time_of(std::string_view id);

}  // namespace varve
