#include <varve/core/runtime.h>
#include <varve/core/threads.h>

#include <thread>
#include <utility>

namespace varve {
namespace {

class SystemThreads final : public Threads {
  public:
    std::unique_ptr<Running> start(std::function<void(const std::stop_token&)> run) override {
        return std::make_unique<SystemThread>(std::move(run));
    }

  private:
    class SystemThread final : public Running {
      public:
        explicit SystemThread(std::function<void(const std::stop_token&)> run)
            : thread_([run = std::move(run)](const std::stop_token& stop) { run(stop); }) {}
        void request_stop() noexcept override { thread_.request_stop(); }

      private:
        std::jthread thread_;
    };
};

}  // namespace

Threads& system_threads() {
    static SystemThreads threads;
    return threads;
}

}  // namespace varve
