#pragma once

#include <varve/core/runtime.h>

namespace varve::testing {

/// Drops what is logged: for a test in which failures are the rule. A RecordedLog keeps it instead.
///
///     QuietLog quiet;
///     varve::Application bank{store, {.runtime = {.log = quiet}}};
///
/// Threads: may be called from any thread.
class QuietLog final : public Log {
  public:
    void write(LogLevel, std::string_view) override {}
};

}  // namespace varve::testing
