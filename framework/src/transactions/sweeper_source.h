#pragma once

#include <varve/core/error.h>
#include <varve/transactions/sweeper.h>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace varve::transactions {

/// Where a sweeper learns what may have to be settled, and what it does about it.
class Sweeper::Source {
  public:
    explicit Source(Coordinator& coordinator) : c_(coordinator) {}
    virtual ~Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    virtual std::size_t sweep() = 0;
    virtual bool is_through() const = 0;

  protected:
    static constexpr std::size_t page_size = 500;
    static constexpr std::size_t unsettled_max = 10'000;
    static constexpr int pages_per_sweep_max = 20;  // so that a long history does not keep a sweep from ending

    /// Whether a record needs a second look one lease later. What cannot be read does: it must not be passed by.
    bool needs_a_look(const store::Record& record);

    /// Settles what lies under these keys, all of them, so many at a time as go well together; gives those where
    /// nothing is left to be settled, as was just read.
    std::set<store::Key> settle(const std::set<store::Key>& keys);

    /// The image of a row that is a tombstone; nullopt: it is none, or cannot be read.
    std::optional<Image> tombstone(const store::Record& record);
    bool is_over(const Image& tombstone) const;
    /// False if one of the writes was not answered.
    bool write(std::span<const store::Write> writes);

    Coordinator& c_;

  private:
    /// A commit whose participants are not known to be in place.
    struct Unfinished {
        store::Key primary;
        Committed commit;
    };

    void settle_some(std::span<const store::Key> keys, std::set<store::Key>& settled);
    // These two begin with all at once. If that fails because of what one of them is, each is tried by itself: what
    // cannot be settled stays, and the others go on.
    void settle_claims(std::span<const Resolver::Claimed> claimed);
    /// Finalises the participants and marks the primaries done, those of which every answer came; adds these to
    /// `settled`.
    void finish(std::span<const Unfinished> commits, std::set<store::Key>& settled);
    void report(const Error& error);
};

/// Follows the store's order of changes, and saves how far everything is settled, so that a new one goes on from there.
class Sweeper::Changes final : public Source {
  public:
    Changes(Coordinator& coordinator, std::vector<std::string> tables);
    std::size_t sweep() override;
    bool is_through() const override { return is_through_; }

  private:
    /// Something claimed, or a commit not yet marked done, as met at a position.
    struct Met {
        store::Position position;
        store::Key key;
        SteadyTime at;
    };
    /// A tombstone whose expiry no clock that agrees with this one can have written.
    struct Overdated {
        store::Position position;
        store::Key key;
        Image tombstone;
        SteadyTime due;
    };
    struct Table {
        std::string name;
        store::Position seen = 0;        // changes read so far
        store::Position collected = 0;   // tombstones looked at so far
        store::Position saved_seen = 0;  // in the system table
        store::Position saved_collected = 0;
        std::deque<Met> unsettled = {};        // in the order of positions
        std::deque<Overdated> overdated = {};  // in the order of positions
    };

    /// Whether it has come to the end.
    bool read_changes(Table& table);
    void settle_due(Table& table);
    void collect_tombstones(Table& table);
    /// Whether it could put this one aside, to be removed when it has been seen for a whole retention: a clock that was
    /// far ahead keeps neither it nor those behind it for longer.
    bool put_aside(Table& table, const store::Change& change, const Image& tombstone);
    void collect_overdated(Table& table);
    void save(const store::Key& key, store::Position reached, store::Position& saved);

    std::vector<Table> tables_;
    bool is_through_ = false;
};

/// Scans the tables, part by part. Each scan begins at a part drawn at random, so that several sweepers are at
/// different places. It keeps nothing in the store.
class Sweeper::Scans final : public Source {
  public:
    Scans(Coordinator& coordinator, std::vector<std::string> tables, const ScanOptions& options);
    std::size_t sweep() override;
    bool is_through() const override { return has_scanned_ && parts_.empty(); }

  private:
    /// One segment of one table that is still to be read.
    struct Part {
        std::string table;
        std::uint32_t segment;
        std::optional<std::string> next = {};  ///< where to read on
    };

    void read_pages();
    void begin();
    void read_page(Part& part, SteadyTime now);
    void settle_due();

    const std::vector<std::string> tables_;
    const ScanOptions options_;
    std::vector<Part> parts_;                     // of the scan that is running
    std::map<store::Key, SteadyTime> unsettled_;  // by key: when it was met
    bool has_scanned_ = false;                    // once at least
    SteadyTime next_scan_;
    SteadyTime next_page_;
    SteadyTime last_sweep_;
};

}  // namespace varve::transactions
