#pragma once

#include <varve/core/error.h>
#include <varve/testing/passing_store.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace varve {

/// Answers nothing any more from some request on. Of what is written by that one, some may still be applied.
class DyingStore final : public testing::PassingStore {
  public:
    /// `applies`: bit i says whether the last batch's write i is; bit 0 whether an atomic one is.
    DyingStore(std::shared_ptr<store::ItemStore> inner, int dies_at, std::uint64_t applies)
        : PassingStore(std::move(inner)), dies_at_(dies_at), applies_(applies) {}

    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        live();
        return inner().read(keys);
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        if (next() > dies_at_) return silence(writes.size());
        if (met_ < dies_at_) return inner().write(writes);
        for (std::size_t i = 0; i < writes.size(); ++i) {
            if ((applies_ >> (i % 64)) & 1) static_cast<void>(inner().write(writes.subspan(i, 1)));
        }
        return silence(writes.size());
    }
    store::Page query(const store::Query& query) override {
        live();
        return inner().query(query);
    }
    std::vector<store::Change> changes(const std::string& table, store::Position after, std::size_t limit) override {
        live();
        return inner().changes(table, after, limit);
    }
    store::Position last_change(const std::string& table) override {
        live();
        return inner().last_change(table);
    }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override {
        if (next() > dies_at_) return Failure{ErrorKind::unavailable, true, "it is dead"};
        store::AtomicAnswer answer = Failure{ErrorKind::unavailable, true, "it is dead"};
        if (met_ < dies_at_) return inner().write_atomically(writes);
        if (applies_ & 1) static_cast<void>(inner().write_atomically(writes));
        return answer;
    }
    bool is_dead() const { return met_ >= dies_at_; }

  private:
    int next() { return ++met_; }
    void live() {
        if (next() >= dies_at_) throw UnavailableError("it is dead");
    }
    static std::vector<store::WriteAnswer> silence(std::size_t count) {
        return std::vector<store::WriteAnswer>(count, Failure{ErrorKind::unavailable, true, "it is dead"});
    }

    const int dies_at_;
    const std::uint64_t applies_;
    std::atomic<int> met_ = 0;
};

}  // namespace varve
