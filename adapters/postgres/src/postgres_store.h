#pragma once

#include "announcer.h"
#include "pool.h"
#include "table.h"
#include "writer.h"

#include <varve/core/shared_mutex.h>
#include <varve/store/item_store.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace varve::postgres {

/// The store: connections for writing behind a queue, and a pool of them for reading.
class PostgresStore final : public store::ItemStore {
  public:
    explicit PostgresStore(Options options);

    void ensure_table(const store::TableSchema& schema) override;
    bool has_table(const store::TableSchema& schema) override;
    std::vector<std::string> concerns() override;
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

    /// As postgres::ddl.
    std::string ddl(std::string_view role);

  private:
    /// Throws InvalidError if nobody ensured it.
    const Table& table(const std::string& name);
    const Table& remember(Table table);
    /// ConfigError that names both if they differ.
    void compare(const store::TableSchema& stored, const store::TableSchema& schema) const;
    bool has_catalogue(Connection& connection) const;
    std::optional<Table> find_table(Connection& connection, const std::string& name);
    /// By a row of `columns_`. Throws CorruptionError.
    Table described_table(const Result& rows, int row) const;
    void create(Connection& connection, const Table& table);
    /// The results of statements that only read: on another connection if one is lost.
    std::vector<Result> run(std::span<const Statement> statements);
    Result run(const std::string& sql, Parameters parameters = {});
    std::vector<PreparedWrite> prepared(std::span<const store::Write> writes);

    const Options options_;
    const std::string space_;    // the schema's name, quoted
    const std::string columns_;  // what the catalogue says of all tables
    Pool readers_;
    Announcer announcer_;
    Writer writer_;

    SharedMutex tables_mutex_;
    std::map<std::string, std::unique_ptr<const Table>, std::less<>> tables_
        VARVE_GUARDED_BY(tables_mutex_);  // only grows
};

}  // namespace varve::postgres
