#pragma once

#include <varve/commands/application.h>

#include <cstdint>
#include <string>
#include <vector>

namespace varve::operations {

/// What one look at a store has shown.
struct Diagnosis {
    enum class Health : std::uint8_t {
        sick,  ///< it endangers what varve promises, or keeps it from working
        odd,   ///< somebody should know
        well,
    };
    Health health = Health::sick;
    std::string what;    ///< what was looked at: "reach", "writes", "clocks", "sweeping" …
    std::string found;   ///< a sentence
    std::string advice;  ///< what to do; empty where nothing is to be done
};
const char* to_string(Diagnosis::Health health) noexcept;

/// Looks at how a store is doing: how fast it answers, whether this program may write (by writes whose conditions never
/// hold, unless the application only reads), its format, whether its settings keep promises (ItemStore::concerns),
/// whether clocks agree (by the times and leases that others have stored, and by the application's `retention`),
/// whether dead transactions are swept, events put in order, and followers, effects and timers getting through. Changes
/// nothing.
///
/// Never throws what the store says: that is a finding. Threads: any.
///
///     for (const operations::Diagnosis& one : operations::diagnose(bank))
///         if (one.health == operations::Diagnosis::Health::sick) std::cout << one.what << ": " << one.found << "\n";
std::vector<Diagnosis> diagnose(Application& application);

}  // namespace varve::operations
