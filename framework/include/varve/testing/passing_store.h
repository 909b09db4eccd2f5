#pragma once

#include <varve/store/item_store.h>

#include <functional>
#include <memory>
#include <utility>

namespace varve::testing {

/// Passes everything on to another store. A test derives from it and overrides what should behave differently:
///
///     struct Full final : PassingStore {
///         using PassingStore::PassingStore;
///         std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
///             return std::vector<store::WriteAnswer>(writes.size(), Failure{ErrorKind::unavailable, false, "full"});
///         }
///     };
///     varve::Application application{std::make_shared<Full>(varve::open("memory:"))};
///
/// `read_together` is not passed on: it becomes calls of `read` and `query`, so that these two see all that is read.
///
/// Threads: as the store behind it.
class PassingStore : public store::ItemStore {
  public:
    explicit PassingStore(std::shared_ptr<store::ItemStore> inner) : inner_(std::move(inner)) {}

    void ensure_table(const store::TableSchema& schema) override { inner_->ensure_table(schema); }
    bool has_table(const store::TableSchema& schema) override { return inner_->has_table(schema); }
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        return inner_->read(keys);
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        return inner_->write(writes);
    }
    store::Page query(const store::Query& query) override { return inner_->query(query); }
    store::Page scan(const store::Scan& scan) override { return inner_->scan(scan); }
    store::Capabilities capabilities() const override { return inner_->capabilities(); }
    std::vector<store::Change> changes(const std::string& table, store::Position after, std::size_t limit) override {
        return inner_->changes(table, after, limit);
    }
    store::Position last_change(const std::string& table) override { return inner_->last_change(table); }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override {
        return inner_->write_atomically(writes);
    }
    std::shared_ptr<void> watch(const std::string& table, std::function<void()> changed) override {
        return inner_->watch(table, std::move(changed));
    }
    std::vector<std::string> concerns() override { return inner_->concerns(); }

  protected:
    store::ItemStore& inner() const { return *inner_; }

  private:
    const std::shared_ptr<store::ItemStore> inner_;
};

}  // namespace varve::testing
