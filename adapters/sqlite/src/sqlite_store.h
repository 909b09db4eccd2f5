#pragma once

#include "connection.h"
#include "table.h"
#include "writer.h"

#include <varve/core/mutex.h>
#include <varve/core/shared_mutex.h>
#include <varve/store/item_store.h>

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace varve::sqlite {

/// The store: one writing connection behind a queue, as many reading ones as there are readers at once.
class SqliteStore final : public store::ItemStore {
  public:
    explicit SqliteStore(Options options);
    ~SqliteStore() override;

    void ensure_table(const store::TableSchema& schema) override;
    bool has_table(const store::TableSchema& schema) override;
    std::vector<std::string> concerns() override;
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override;
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override;
    store::Page query(const store::Query& query) override;
    store::Page scan(const store::Scan& scan) override;
    store::Capabilities capabilities() const override;
    std::vector<store::Change> changes(const std::string& table, store::Position after, std::size_t limit) override;
    store::Position last_change(const std::string& table) override;
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override;

    Metrics metrics() const { return writer_.metrics(); }
    const Options& options() const { return options_; }

  private:
    /// A reading connection, given back at the end of the scope, unless it failed: then what it remembers of the disk's
    /// errors goes with it.
    class Reader {
      public:
        explicit Reader(SqliteStore& store);
        ~Reader();
        Reader(const Reader&) = delete;
        Reader& operator=(const Reader&) = delete;
        Connection* operator->() { return connection_.get(); }
        Connection& operator*() { return *connection_; }

      private:
        SqliteStore& store_;
        std::unique_ptr<Connection> connection_;
        const int exceptions_ = std::uncaught_exceptions();
    };

    /// Throws InvalidError if nobody ensured it.
    const Table& table(const std::string& name);
    const Table& remember(Table table);
    /// nullptr: there is none.
    const Table* find(const std::string& name);
    /// ConfigError that names both if they differ.
    void compare(const store::TableSchema& stored, const store::TableSchema& schema) const;
    std::vector<PreparedWrite> prepared(std::span<const store::Write> writes);

    const Options options_;
    Writer writer_;

    Mutex readers_mutex_;
    std::vector<std::unique_ptr<Connection>> readers_ VARVE_GUARDED_BY(readers_mutex_);  // idle ones

    SharedMutex tables_mutex_;
    std::map<std::string, std::unique_ptr<const Table>, std::less<>> tables_
        VARVE_GUARDED_BY(tables_mutex_);  // only grows
};

}  // namespace varve::sqlite
