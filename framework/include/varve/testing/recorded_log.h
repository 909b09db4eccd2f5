#pragma once

#include <varve/core/runtime.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace varve::testing {

/// Keeps what is logged, at every level, for a test to read.
///
///     RecordedLog log;
///     varve::Application bank{store, {.runtime = {.log = log}}};
///     EXPECT_EQ(log.lines(), std::vector<std::string>{});
///
/// Threads: all methods may be called from any thread.
class RecordedLog final : public Log {
  public:
    void write(LogLevel, std::string_view message) override {
        {
            const std::lock_guard lock{mutex_};
            lines_.emplace_back(message);
        }
        written_.notify_all();
    }
    std::vector<std::string> lines() const {
        const std::lock_guard lock{mutex_};
        return lines_;
    }
    /// All lines, each followed by a line break.
    std::string text() const {
        std::string text;
        for (const std::string& line : lines()) text.append(line).append("\n");
        return text;
    }
    void clear() {
        const std::lock_guard lock{mutex_};
        lines_.clear();
    }
    /// Waits until a line contains `part`, for ever if none will, and returns the first that does.
    std::string wait_for(std::string_view part) {
        std::unique_lock lock{mutex_};
        const auto has_part = [&](const std::string& line) { return line.find(part) != std::string::npos; };
        written_.wait(lock, [&] { return std::ranges::any_of(lines_, has_part); });
        return *std::ranges::find_if(lines_, has_part);
    }

  private:
    mutable std::mutex mutex_;
    std::condition_variable written_;
    std::vector<std::string> lines_;  // guarded by mutex_
};

}  // namespace varve::testing
