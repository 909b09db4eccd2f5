#pragma once

#include <varve/core/executor.h>

#include <utility>
#include <vector>

namespace varve {

/// Keeps background work back until it is drained: what precedes an acknowledgement stays apart from what follows it,
/// and an owner that dies in between simply never drains.
class Later final : public Executor {
  public:
    void post(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
    void drain() override {
        while (!tasks_.empty()) {
            for (auto& task : std::exchange(tasks_, {})) task();
        }
    }
    void forget() { tasks_.clear(); }

  private:
    std::vector<std::function<void()>> tasks_;
};

}  // namespace varve
