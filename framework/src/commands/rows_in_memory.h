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
    struct Table {
        const RowTable* type;
        std::map<RowKey, std::string> rows;
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
    /// InvalidError if all rows together would take more than they may.
    void write(const RowTable& table, const RowKey& key, std::optional<std::string> data) override;
    StoredPage range(const RowTable& table, const RowRange& range, const PageOptions& page) override;
    std::optional<StoredRow> find(const RowTable& table, const IndexRange& entry) override;
    StoredPage indexed(const RowTable& table, const IndexRange& range, const PageOptions& page) override;

    const Tables& tables() const { return tables_; }
    std::size_t size() const;
    /// Which rows are written from now on is noted.
    void note_changes() { notes_ = true; }
    const std::set<Name>& changed() const { return changed_; }

  private:
    Table& of(const RowTable& table);

    const std::size_t bytes_max_;
    std::size_t bytes_ = 0;
    Tables tables_;
    bool notes_ = false;
    std::set<Name> changed_;
};

}  // namespace varve::detail
