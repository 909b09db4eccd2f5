#pragma once

#include <varve/store/item_store.h>
#include <varve/testing/passing_store.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace varve {

/// What a test wants done there; it may be another while threads pass.
template <class... Arguments>
class Hook {
  public:
    template <class F>
    Hook& operator=(F function) {
        auto shared = std::make_shared<const std::function<void(Arguments...)>>(std::move(function));
        const std::lock_guard lock{mutex_};
        function_ = std::move(shared);
        return *this;
    }
    void operator()(Arguments... arguments) const {
        std::unique_lock lock{mutex_};
        const auto function = function_;
        lock.unlock();
        if (function) (*function)(arguments...);
    }

  private:
    mutable std::mutex mutex_;
    std::shared_ptr<const std::function<void(Arguments...)>> function_;
};

/// Passes everything on; a test may look at each batch of writes before it goes out and replace its answers afterwards,
/// also that of an atomic one, and look at what a query found.
class HookedStore final : public testing::PassingStore {
  public:
    using PassingStore::PassingStore;

    std::atomic<bool> hold_back_writes = false;  ///< `after_write` and `after_atomic_write` give the answers
    Hook<> before_read;
    Hook<std::span<const store::Write>> before_write;
    Hook<std::span<const store::Write>, std::vector<store::WriteAnswer>&> after_write;
    Hook<std::span<const store::Write>, store::AtomicAnswer&> after_atomic_write;
    Hook<const store::Page&> after_query;

    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        before_read();
        return inner().read(keys);
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        before_write(writes);
        std::vector<store::WriteAnswer> answers(writes.size());
        if (!hold_back_writes) answers = inner().write(writes);
        after_write(writes, answers);
        return answers;
    }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override {
        store::AtomicAnswer answer = store::RefusedBatch{};
        if (!hold_back_writes) answer = inner().write_atomically(writes);
        after_atomic_write(writes, answer);
        return answer;
    }
    store::Page query(const store::Query& query) override {
        store::Page page = inner().query(query);
        after_query(page);
        return page;
    }
};

}  // namespace varve
