#pragma once

#include <varve/store/item_store.h>

#include <cstdint>
#include <memory>
#include <mutex>

namespace varve::testing {

/// What a store was asked for.
struct RequestCounts {
    std::uint64_t reads = 0;           ///< keys read one by one
    std::uint64_t read_batches = 0;    ///< calls of read
    std::uint64_t writes = 0;          ///< single writes, those of atomic batches included
    std::uint64_t write_batches = 0;   ///< calls of write
    std::uint64_t atomic_batches = 0;  ///< calls of write_atomically
    std::uint64_t queries = 0;         ///< pages of queries
    std::uint64_t joint_reads = 0;     ///< calls of read_together; its keys count as reads
    std::uint64_t joint_queries = 0;   ///< pages of queries in these
    std::uint64_t scans = 0;           ///< pages of scans
    std::uint64_t change_reads = 0;    ///< calls of changes and last_change
    std::uint64_t refused_writes = 0;  ///< writes answered Refused, or named in a RefusedBatch

    /// Calls that would go over the network to a remote store. Making tables is setup and does not count.
    std::uint64_t round_trips() const {
        return read_batches + write_batches + atomic_batches + queries + joint_reads + scans + change_reads;
    }
    bool operator==(const RequestCounts&) const = default;
};

/// Passes everything on to another store and counts, so that a test can assert what an operation costs.
///
///     auto store = std::make_shared<CountingStore>(varve::open("memory:"));
///     store->start_recording();
///     ... one transfer ...
///     EXPECT_EQ(store->counts().writes, 3u);
///     EXPECT_EQ(store->recorded().front(), "write: put events/alice/2 applied, put events/bob/7 refused");
///
/// Threads: all methods may be called from any thread; concurrent calls are recorded in the order in which they end.
class CountingStore final : public store::ItemStore {
  public:
    explicit CountingStore(std::shared_ptr<store::ItemStore> inner);

    RequestCounts counts() const;
    /// Forgets counts and recorded lines.
    void reset();
    /// From now on every call that counts leaves a line. One that throws leaves none, but counts.
    void start_recording();
    std::vector<std::string> recorded() const;

    void ensure_table(const store::TableSchema& schema) override;
    bool has_table(const store::TableSchema& schema) override;
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override;
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override;
    store::Page query(const store::Query& query) override;
    store::FoundTogether read_together(std::span<const store::Key> keys,
                                       std::span<const store::Query> queries) override;
    store::Page scan(const store::Scan& scan) override;
    store::Capabilities capabilities() const override;
    std::vector<store::Change> changes(const std::string& table, store::Position after, std::size_t limit) override;
    store::Position last_change(const std::string& table) override;
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override;
    std::shared_ptr<void> watch(const std::string& table, std::function<void()> changed) override;

  private:
    template <class Count>
    void count(Count change);
    template <class Line>
    void record(Line line);

    const std::shared_ptr<store::ItemStore> inner_;
    mutable std::mutex mutex_;
    RequestCounts counts_;            // guarded by mutex_
    bool recording_ = false;          // guarded by mutex_
    std::vector<std::string> lines_;  // guarded by mutex_
};

}  // namespace varve::testing
