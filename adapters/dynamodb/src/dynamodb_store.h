#pragma once

#include "answers.h"
#include "client.h"
#include "table.h"

#include <varve/core/shared_mutex.h>
#include <varve/dynamodb/dynamodb.h>
#include <varve/store/item_store.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace varve::dynamodb {

/// The store: each call of the port becomes requests that are in flight at once.
class DynamoDbStore final : public store::ItemStore {
  public:
    explicit DynamoDbStore(const Options& options);

    void ensure_table(const store::TableSchema& schema) override;
    bool has_table(const store::TableSchema& schema) override;
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override;
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override;
    store::Page query(const store::Query& query) override;
    store::FoundTogether read_together(std::span<const store::Key> keys,
                                       std::span<const store::Query> queries) override;
    store::Page scan(const store::Scan& scan) override;
    store::Capabilities capabilities() const override;

  private:
    /// What `parse` makes of an answer. Its CorruptionError quotes what a server said, so it is made fit for a message.
    auto understood(auto parse) const;
    /// Throws InvalidError if nobody ensured it.
    const Table& table(const std::string& name) const;
    /// Checks each write, before any is sent.
    std::vector<TableWrite> checked(std::span<const store::Write> writes) const;
    /// The items, and the replies to other calls that were in flight at the same time.
    struct ReadBeside {
        std::vector<std::optional<store::Item>> items;
        std::vector<Reply> beside;
    };
    ReadBeside read_distinct(std::span<const TableKey> keys, std::vector<Call> beside);
    /// nullopt: nothing can be in the range.
    std::optional<Call> page_call(const store::Query& query) const;
    using ReadAnswer = std::variant<std::optional<store::Item>, Failure>;
    /// As `read_distinct`, but one that cannot be read is the failure of that one alone.
    std::vector<ReadAnswer> read_each(std::span<const TableKey> keys);
    /// nullopt if the answer does not tell the item that refused the write.
    std::optional<store::WriteAnswer> refused(const Declined& declined, const TableWrite& write);

    void create(const Table& table);
    /// nullopt if there is no such table. Throws ConfigError if it has another shape.
    bool is_ensured(const store::TableSchema& schema) const;
    void remember(const Table& table);
    std::optional<DescribedTable> describe(const Table& table);
    DescribedTable wait_until_active(const Table& table, std::optional<DescribedTable> described);
    void ensure_expiry(const Table& table, std::string_view arn);

    const Options options_;
    Client client_;
    const RetryPolicy retry_;
    /// A refused write came back with its item once, so that one without an item had none.
    std::atomic<bool> tells_items_{false};

    mutable SharedMutex tables_mutex_;
    std::map<std::string, std::unique_ptr<const Table>, std::less<>> tables_
        VARVE_GUARDED_BY(tables_mutex_);  // only grows
};

}  // namespace varve::dynamodb
