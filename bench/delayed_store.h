#pragma once

#include <varve/store/item_store.h>

#include <chrono>
#include <memory>
#include <thread>

namespace bench {

/// As far away as a store in the network: each request takes a while, any number of them at the same time.
class DelayedStore : public varve::store::ItemStore {
  public:
    DelayedStore(std::shared_ptr<varve::store::ItemStore> inner, std::chrono::microseconds delay)
        : inner_(std::move(inner)), delay_(delay) {}

    void ensure_table(const varve::store::TableSchema& schema) override { inner_->ensure_table(schema); }
    bool has_table(const varve::store::TableSchema& schema) override { return inner_->has_table(schema); }
    std::vector<std::optional<varve::store::Item>> read(std::span<const varve::store::Key> keys) override {
        return wait(), inner_->read(keys);
    }
    std::vector<varve::store::WriteAnswer> write(std::span<const varve::store::Write> writes) override {
        return wait(), inner_->write(writes);
    }
    varve::store::Page query(const varve::store::Query& query) override { return wait(), inner_->query(query); }
    varve::store::FoundTogether read_together(std::span<const varve::store::Key> keys,
                                              std::span<const varve::store::Query> queries) override {
        return wait(), inner_->read_together(keys, queries);
    }
    varve::store::Page scan(const varve::store::Scan& scan) override { return wait(), inner_->scan(scan); }
    varve::store::Capabilities capabilities() const override { return inner_->capabilities(); }
    std::vector<varve::store::Change> changes(const std::string& table, varve::store::Position after,
                                              std::size_t limit) override {
        return wait(), inner_->changes(table, after, limit);
    }
    varve::store::Position last_change(const std::string& table) override { return wait(), inner_->last_change(table); }
    varve::store::AtomicAnswer write_atomically(std::span<const varve::store::Write> writes) override {
        return wait(), inner_->write_atomically(writes);
    }

  private:
    void wait() const { std::this_thread::sleep_for(delay_); }

    const std::shared_ptr<varve::store::ItemStore> inner_;
    const std::chrono::microseconds delay_;
};

}  // namespace bench
