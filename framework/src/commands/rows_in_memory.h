#pragma once

#include <varve/rows/rows.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace varve::detail {

/// What a projection's rows would be: a projection that runs on these reads and writes nothing of the store.
///
/// Threads: belongs to one.
class RowsInMemory final : public RowsOfTransaction {
  public:
    struct Row {
        std::string data;
        bool is_marked = false;
    };
    struct Table {
        const RowTable* type;
        std::map<RowKey, Row> rows;
        bool is_written = false;
    };
    using Tables = std::map<std::string_view, Table>;  // by name
    struct Name {
        std::string_view table;
        RowKey key;
        auto operator<=>(const Name&) const = default;
    };

    explicit RowsInMemory(std::size_t bytes_max) : bytes_max_(bytes_max) {}

    void ensure(const RowTable& table) override;
    std::optional<std::string> read(const RowTable& table, const RowKey& key) override;
    /// InvalidError if all rows, and the notes, would take more than they may.
    void write(const RowTable& table, const RowKey& key, std::optional<std::string> data) override;
    StoredPage range(const RowTable& table, const RowRange& range, const PageOptions& page) override;
    std::optional<StoredRow> find(const RowTable& table, const IndexRange& entry) override;
    StoredPage indexed(const RowTable& table, const IndexRange& range, const PageOptions& page) override;

    const Tables& tables() const { return tables_; }
    std::size_t size() const;
    /// Marks the row, until it is erased.
    void mark(const Name& name) { tables_.at(name.table).rows.at(name.key).is_marked = true; }
    /// Which rows are written from now on is noted; what was noted before is forgotten.
    void note_changes();
    bool has_changed(const Name& name) const { return changed_.contains(name); }

  private:
    Table& of(const RowTable& table);
    void take(std::size_t bytes);

    const std::size_t bytes_max_;
    std::size_t bytes_ = 0;
    Tables tables_;
    bool notes_ = false;
    std::set<Name> changed_;
    std::size_t changed_bytes_ = 0;
};

}  // namespace varve::detail
