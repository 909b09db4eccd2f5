#pragma once

#include "console.h"

#include <varve/core/clock.h>

#include <cstdint>
#include <optional>
#include <string>

namespace varve::console {

/// How far something long has come, on standard error: on a terminal one line that is written over, with the rate and
/// the time left where the total is known; elsewhere a line each ten seconds. Nothing for what takes less than a
/// second.
class Progress {
  public:
    /// `what` is counted: "items".
    Progress(const Console& console, std::string what, std::optional<std::int64_t> total = {});
    ~Progress() { end(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update(std::int64_t count);
    /// Clears the line. Harmless when repeated.
    void end();

  private:
    const std::string program_;
    const std::string what_;
    const std::optional<std::int64_t> total_;
    const bool on_terminal_;
    Clock& clock_;
    const SteadyTime began_;
    SteadyTime next_;
    bool is_shown_ = false;
};

}  // namespace varve::console
