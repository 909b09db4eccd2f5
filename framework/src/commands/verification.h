#pragma once

#include "commands/application_parts.h"
#include "commands/consumer.h"
#include "commands/rows_in_memory.h"

#include <varve/commands/application.h>
#include <varve/commands/verified.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace varve::detail {

/// Folds a projection's events again, in memory, and compares what comes of it with its rows, while it goes on.
///
/// A page of rows is read, the memory brought to the present, and what is not the same then, or was changed meanwhile,
/// is compared at one moment, before the next page; so are in the end the rows that no page had. For a follower, a
/// transaction reads its rows and its place, and brings the memory to exactly there. An inline projection has no place:
/// a row that has not moved while the feed came up to the present is what the events up to there say.
///
/// Threads: belongs to one.
class Verification {
  public:
    enum class Kind { follows, inline_ };

    Verification(Application& application, Consumer consumer, Kind kind, std::size_t bytes_max);

    Verified run();

  private:
    struct Compared {
        RowKey key;
        std::optional<std::string> stored, expected;
        bool is_same = false;
    };

    /// Where the rows are as this transaction sees them, for each partition.
    using Places = std::vector<store::Position>;
    Places place(Transaction& tx) const;
    void fold(Transaction& tx, const Places& to);
    void fold_to_place();
    void refuse_rows_of_others() const;
    StoredPage page(const RowTable& table, std::string next) const;

    bool is_full() const { return differences_.size() == Verified::differences_max; }
    void compare(std::string_view table);
    /// Takes their differences down.
    void compare(std::span<const RowKey> rows, const RowTable& table);
    std::vector<Compared> compare_at_place(std::span<const RowKey> rows, const RowTable& table);
    std::vector<Compared> compare_standing(std::span<const RowKey> rows, const RowTable& table);
    /// One that others keep changing: they wait meanwhile.
    Compared compare_held(const RowKey& row, const RowTable& table);
    Compared compared(const RowKey& row, const RowTable& table, std::optional<std::string> stored) const;
    /// Until all that was acknowledged before can be folded.
    void wait_for_feed(const std::function<void()>& meanwhile) const;
    std::vector<transactions::Image> images(std::span<const RowKey> rows, const RowTable& table) const;
    bool is_same(const RowTable& table, const RowKey& key, const std::optional<std::string>& stored,
                 const std::optional<std::string>& expected) const;

    Application& application_;
    ApplicationParts& parts_;
    const Consumer consumer_;
    const std::vector<Consumer> partitions_;
    const Kind kind_;
    const feed::Feed feed_;
    RowsInMemory memory_;
    Places done_;
    std::int64_t events_ = 0;
    std::vector<RowDifference> differences_;
};

}  // namespace varve::detail
