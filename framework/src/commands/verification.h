#pragma once

#include "commands/consumer.h"
#include "commands/rows_in_memory.h"

#include <varve/commands/application.h>
#include <varve/commands/verified.h>

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace varve::detail {

/// Folds a projection's events again, in memory, and compares what comes of it with its rows, while it goes on.
///
/// First all rows are read while the memory is at one place; what was changed meanwhile, and what is not the same, is
/// then compared row by row in transactions that bring the memory to exactly where these rows are.
///
/// Threads: belongs to one.
class Verification {
  public:
    enum class Kind { follows, inline_ };

    Verification(Application& application, Consumer consumer, Kind kind, std::size_t bytes_max);

    Verified run();

  private:
    struct Compared {
        RowsInMemory::Name name;
        std::optional<std::string> stored, expected;
        bool is_same = false;
    };

    /// Where the rows are as this transaction sees them.
    store::Position place(Transaction& tx) const;
    void fold(Transaction& tx, store::Position to);
    void fold_to_place();
    void refuse_rows_of_others() const;
    StoredPage page(const RowTable& table, std::string next) const;
    /// What is not the same as it stands in both, though perhaps not at one moment.
    std::set<RowsInMemory::Name> suspects();
    /// At one moment.
    std::vector<Compared> compare(std::span<const RowsInMemory::Name> names);
    std::vector<Compared> compare_patiently(std::span<const RowsInMemory::Name> names);
    bool is_same(const RowTable& table, const RowKey& key, const std::optional<std::string>& stored,
                 const std::optional<std::string>& expected) const;

    Application& application_;
    const Consumer consumer_;
    const Kind kind_;
    const feed::Feed feed_;
    RowsInMemory memory_;
    store::Position done_ = 0;
    std::int64_t events_ = 0;
};

}  // namespace varve::detail
