#pragma once

#include <varve/core/runtime.h>

#include <string>

namespace varve {

/// A new UUID version 7 (RFC 9562) in its 36-character form: 48 bits of Unix time in milliseconds, 74 random bits.
/// Ids made later by clocks that agree sort later. Two that were made in the same millisecond are equal with a
/// probability of 2^-74; a forked child draws others than its parent. Everything that must be unique rests on that.
std::string uuid7(Runtime runtime);

}  // namespace varve
