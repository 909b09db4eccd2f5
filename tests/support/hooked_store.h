#pragma once

#include <varve/store/item_store.h>

#include <functional>
#include <memory>

namespace varve {

/// Passes everything on; a test may look at each batch of writes before it goes out and replace its answers afterwards,
/// and at what a query found.
class HookedStore final : public store::ItemStore {
  public:
    explicit HookedStore(std::shared_ptr<store::ItemStore> inner) : inner_(std::move(inner)) {}

    bool hold_back_writes = false;  ///< `after_write` gives the answers
    std::function<void()> before_read = [] {};
    std::function<void(std::span<const store::Write>)> before_write = [](auto) {};
    std::function<void(std::span<const store::Write>, std::vector<store::WriteAnswer>&)> after_write = [](auto, auto&) {
    };

    std::function<void(const store::Page&)> after_query = [](auto&) {};

    void ensure_table(const store::TableSchema& schema) override { inner_->ensure_table(schema); }
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        before_read();
        return inner_->read(keys);
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        before_write(writes);
        std::vector<store::WriteAnswer> answers(writes.size());
        if (!hold_back_writes) answers = inner_->write(writes);
        after_write(writes, answers);
        return answers;
    }
    store::Page query(const store::Query& query) override {
        store::Page page = inner_->query(query);
        after_query(page);
        return page;
    }
    store::Page scan(const store::Scan& scan) override { return inner_->scan(scan); }
    store::Capabilities capabilities() const override { return inner_->capabilities(); }
    std::vector<store::Change> changes(const std::string& table, store::Position after, std::size_t limit) override {
        return inner_->changes(table, after, limit);
    }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override {
        return inner_->write_atomically(writes);
    }

  private:
    std::shared_ptr<store::ItemStore> inner_;
};

}  // namespace varve
