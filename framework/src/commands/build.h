#pragma once

#include "feed/partition.h"

#include <varve/core/clock.h>
#include <varve/core/shared_mutex.h>
#include <varve/rows/rows.h>
#include <varve/store/item_store.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Builds of a projection: how its rows are made anew beside those that are read.
//
// A read model that says `kept_by = "turnover"` has rows in several builds, numbered from 1. Those of build 1 are in
// the table of its own name, those of build n in TABLE.build-n. One row, `Builds` under the follower's name, says which
// build is live, which one is next, and which are replaced. It decides:
//
//  B1 Who may write. A transaction writes rows of build n for their keeper only if it has read the Builds row, and this
//     says that n is live, or next, of the keeper's version, and split as the keeper is. It empties them only if n is
//     replaced, and the row says so before the first row goes. The row is part of what the transaction has read: if it
//     changes, the transaction does not commit. So an owner who slept through a swap writes nothing, and nobody needs
//     to tell him.
//  B2 What is read. A reader takes all rows from one build, and looks at the Builds row in the same request or after
//     it: where that does not say that this build is live, it reads again. In a transaction the row is validated with
//     all the rest. A list of several pages stays in the build that it began in, until that is emptied: then it is
//     refused. So nobody sees rows of two builds together.
//  B3 When it changes. The swap is one transaction: it takes the last events into the next build, reads both
//     builds' checkpoints, and makes the next build live only if no checkpoint of its own is behind one of the live
//     build, and if it has set no stream aside that the live one has not. So nobody goes back in time, and what was
//     waited for is there.
//  B4 It never goes back. Numbers are given once; a build that was replaced is never live again, and no build is begun
//     for a version below the live one.
//  B5 How it is split. A build has as many partitions as it began with, in whatever program it is kept: who wants
//     another number begins another build. Where there is nothing yet, that is written down on condition that no
//     checkpoint is there; and a first checkpoint is written on condition that the row says what its writer takes it
//     to say (advance.h, checkpoint_of). So two who differ cannot both begin. A subscription has this row, too, if it
//     is split.
//
// The follower of a build's partition is a Follower as any other, with a checkpoint, a lock and parked streams of its
// own, under the name of partition_name(). So it goes on after a crash, has each event once, and one process at a time
// has it.

namespace varve::detail {

/// Which build a follower keeps.
struct BuildOf {
    std::string follower;
    std::int64_t number = 1;
    std::int64_t version = 1;  ///< of the projection that makes it
    std::int64_t partitions = 1;
};

/// A read model that a build has rows of.
struct BuildTable {
    std::string name;
    bool sorted = false;
    bool operator==(const BuildTable&) const = default;
};

struct Build {
    std::int64_t number = 1;
    std::int64_t version = 1;
    std::int64_t partitions = 1;
    std::vector<BuildTable> tables = {};  ///< that it has written to
};

struct ReplacedBuild {
    Build build;
    Time until = {};        ///< not to be emptied before
    bool emptying = false;  ///< from here on its rows are not whole
};

/// The row that decides: under the follower's name, in a table of the framework's own. Without it build 1 is live, of
/// version 1.
struct Builds {
    static constexpr std::string_view table = "followers.builds";

    Build live = {};
    std::optional<Build> next = {};  ///< is being made
    bool paused = false;             ///< no process goes on with the next one
    std::int64_t last = 1;           ///< the highest number that was given
    std::vector<ReplacedBuild> replaced = {};

    /// The build that this one may write, or null.
    Build* written_by(const BuildOf& keeper);
    /// Whether all rows of this build are there.
    bool is_whole(std::int64_t number) const;
    /// Begins the next build, and gives it a number; one that was begun before is given up.
    void begin(Build build, Time now);
    /// The next build is live from now on.
    void swap(Time keep_until);
};

/// "turnover", "turnover@2"
std::string build_name(std::string_view follower, std::int64_t number);
/// "turnover" if that is all of it, else "turnover#3", "turnover@2#3"
std::string partition_name(std::string_view build_name, const feed::Partition& partition);
/// What build_name and partition_name have put together.
struct NameOfFollower {
    std::string follower;
    std::int64_t build = 1;
    std::int64_t partition = 1;
};
NameOfFollower split_name(std::string_view name);
/// The same of build_table: the table, and the build's number.
std::pair<std::string, std::int64_t> split_build_table(std::string_view name);
/// Whether the name is the follower's, or of one of the partitions of its first build.
bool is_partition_of(std::string_view name, std::string_view follower);
/// "daily_revenue", "daily_revenue.build-2"
std::string build_table(std::string_view table, std::int64_t number);
/// Whether build_table may have made this name, or build_name, or partition_name.
bool is_name_of_build_table(std::string_view name);
bool is_name_of_build(std::string_view name);
bool is_name_of_partition(std::string_view name);
store::Key builds_key(std::string_view follower);
Builds decode_builds(std::string_view follower, const std::optional<std::string>& data);

/// A page of a list stays in the build that the list began in: its token says which, unless that is the first.
struct PageOfBuild {
    std::optional<std::int64_t> number;  ///< nullopt: the list begins here
    PageOptions page;                    ///< with the token of the build's own list

    explicit PageOfBuild(const PageOptions& page);
    static StoredPage of(StoredPage page, std::int64_t number);
};
[[noreturn]] void throw_list_is_gone(const RowTable& table);

/// `table.kept_by` is not the follower who wants to write there.
[[noreturn]] void throw_not_kept(const RowTable& table, const BuildOf& writer);
/// Somebody else wants to.
[[noreturn]] void throw_kept(const RowTable& table);
/// Neither live nor next, so that its keeper may not go on.
[[noreturn]] void throw_replaced(const BuildOf& keeper, const Builds& builds);
/// A subscription that others have begun with another number of partitions.
[[noreturn]] void throw_split(const BuildOf& keeper, const Builds& builds);
/// A lower version may never become live again.
std::string refused_version(std::string_view follower, std::int64_t version, const Builds& builds);

/// Which build of each follower was live when it was last looked at: where a reader looks first.
///
/// Threads: all methods may be called from any thread.
class LastSeenBuilds {
  public:
    std::int64_t live(std::string_view follower) const;
    void learn(std::string_view follower, std::int64_t number);

  private:
    mutable SharedMutex mutex_;
    std::map<std::string, std::int64_t, std::less<>> live_ VARVE_GUARDED_BY(mutex_);
};

}  // namespace varve::detail
