#pragma once

#include <varve/core/error.h>
#include <varve/core/runtime.h>
#include <varve/store/item_store.h>
#include <varve/telemetry/metric.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace varve::store {

/// Passes everything on to another store, and counts what it is asked, how long that takes and how it fails.
///
/// Threads: as the store behind it.
class MeasuredStore final : public ItemStore {
  public:
    /// InvalidError if there is no store.
    MeasuredStore(std::shared_ptr<ItemStore> inner, Runtime runtime);

    ItemStore& inner() const { return *inner_; }
    std::vector<telemetry::Metric> metrics() const;

    void ensure_table(const TableSchema& schema) override { inner_->ensure_table(schema); }
    bool has_table(const TableSchema& schema) override { return inner_->has_table(schema); }
    std::vector<std::optional<Item>> read(std::span<const Key> keys) override;
    std::vector<WriteAnswer> write(std::span<const Write> writes) override;
    Page query(const Query& query) override;
    FoundTogether read_together(std::span<const Key> keys, std::span<const Query> queries) override;
    Page scan(const Scan& scan) override;
    Capabilities capabilities() const override { return inner_->capabilities(); }
    std::vector<Change> changes(const std::string& table, Position after, std::size_t limit) override;
    Position last_change(const std::string& table) override;
    AtomicAnswer write_atomically(std::span<const Write> writes) override;
    std::shared_ptr<void> watch(const std::string& table, std::function<void()> changed) override {
        return inner_->watch(table, std::move(changed));
    }
    std::vector<std::string> concerns() override { return inner_->concerns(); }

  private:
    enum class Request { read, read_together, query, scan, write, write_atomically, changes };
    static constexpr std::size_t requests = 7;
    static constexpr std::size_t failures = static_cast<std::size_t>(ErrorKind::corruption) + 2;  // and any other

    struct Counts {
        telemetry::Counter requests{0};
        telemetry::Histogram duration;
        std::array<telemetry::Counter, failures> failed{};
        std::atomic<bool> is_fast{false};  // the last that was timed
    };
    class Timing;

    Counts& of(Request request) { return counts_[static_cast<std::size_t>(request)]; }
    template <class Call>
    auto measured(Request request, Call call);
    void failed(Request request, ErrorKind kind);

    const std::shared_ptr<ItemStore> inner_;
    const Runtime runtime_;
    std::array<Counts, requests> counts_{};
    telemetry::Counter refused_{0};  // single writes
};

/// The store itself, if this is one that is measured.
const ItemStore& unmeasured(const ItemStore& store);

}  // namespace varve::store
