#pragma once

#include <varve/store/item_store.h>
#include <varve/testing/passing_store.h>

#include <functional>

namespace varve {

/// Passes everything on; a test may look at each batch of writes before it goes out and replace its answers afterwards,
/// also that of an atomic one, and look at what a query found.
class HookedStore final : public testing::PassingStore {
  public:
    using PassingStore::PassingStore;

    bool hold_back_writes = false;  ///< `after_write` and `after_atomic_write` give the answers
    std::function<void()> before_read = [] {};
    std::function<void(std::span<const store::Write>)> before_write = [](auto) {};
    std::function<void(std::span<const store::Write>, std::vector<store::WriteAnswer>&)> after_write = [](auto, auto&) {
    };

    std::function<void(std::span<const store::Write>, store::AtomicAnswer&)> after_atomic_write = [](auto, auto&) {};
    std::function<void(const store::Page&)> after_query = [](auto&) {};

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
