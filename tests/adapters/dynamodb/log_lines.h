#pragma once

#include <varve/core/log.h>

#include <mutex>
#include <string>

namespace varve::dynamodb {

/// Keeps what is logged at any level.
struct Lines final : Log {
    void write(LogLevel, std::string_view message) override {
        const std::lock_guard lock{mutex};
        text.append(message).append("\n");
    }
    std::mutex mutex;
    std::string text;  // guarded by mutex
};

}  // namespace varve::dynamodb
