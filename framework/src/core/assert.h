#pragma once

namespace varve::detail {

/// Names the place and the sentence on standard error, and aborts. A test program may bring its own.
[[noreturn]] void assertion_failed(const char* file, int line, const char* sentence);

}  // namespace varve::detail

/// What must hold here whatever the world does: only a mistake in this code can break it. What stored bytes, another
/// program or a store can break is a CorruptionError instead.
///
///     VARVE_ASSERT(epoch < epoch_max, "an epoch has room to grow");
///
/// On in debug and sanitizer builds, and in the storm. Elsewhere it is compiled and never evaluated.
#ifdef VARVE_ASSERTIONS
#define VARVE_ASSERT(condition, sentence) \
    ((condition) ? static_cast<void>(0) : ::varve::detail::assertion_failed(__FILE__, __LINE__, sentence))
#else
#define VARVE_ASSERT(condition, sentence) static_cast<void>(false && (condition))
#endif
