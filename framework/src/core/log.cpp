#include <varve/core/runtime.h>

#include <cstdio>

namespace varve {
namespace {

class StandardError final : public Log {
  public:
    void write(LogLevel level, std::string_view message) override {
        if (level < LogLevel::warning) return;
        const char* name = level == LogLevel::warning ? "warning" : "error";
        std::fprintf(stderr, "varve: %s: %.*s\n", name, static_cast<int>(message.size()), message.data());
    }
};

}  // namespace

Log& Log::standard_error() {
    static StandardError log;
    return log;
}

}  // namespace varve
