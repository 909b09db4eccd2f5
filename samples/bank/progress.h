#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace bank {

/// A bar with a rate on standard error while something takes its time; silent unless that is a terminal.
///
/// Threads: update() may be called from any thread.
class Progress {
  public:
    Progress(std::string what, std::size_t total);
    ~Progress();  ///< wipes the bar
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update(std::size_t done, std::string_view note = {});

  private:
    const std::string what_;
    const std::size_t total_;
    const bool terminal_;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    std::mutex mutex_;
    std::chrono::steady_clock::time_point drawn_ = {};  // guarded by mutex_
};

}  // namespace bank
