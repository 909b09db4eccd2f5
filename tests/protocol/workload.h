#pragma once

#include "protocol/domain.h"
#include "protocol/record.h"

#include <varve/testing/seeded_random.h>

#include <functional>
#include <map>
#include <string>

namespace varve::protocol {

/// How large a seed's world is.
struct Scale {
    std::uint64_t keys = 4;          ///< of each kind
    std::uint64_t participants = 3;  ///< at most, of one transaction
    std::int64_t money = 1000;       ///< on each account in the beginning
    bool own_rows = false;           ///< balances come along with their accounts
    bool schedules = false;          ///< commands at a time
    bool bursts = false;             ///< several commands on one aggregate are on their way at the same time
    Duration lock_time_to_live = std::chrono::seconds{1};
};

/// One client: commands by chance, and what it was told.
///
/// Threads: belongs to its process's thread.
class Workload {
  public:
    /// `moment` gives numbers that grow with real time; `next_operation` unique ones.
    struct Shared {
        const Scale& scale;
        Record& record;
        std::function<std::int64_t()> moment;
        std::function<std::int64_t()> next_operation;
        std::function<void(Duration)> sleep;
    };
    Workload(Application& application, Shared shared, testing::SeededRandom& random, std::int64_t process)
        : app_(application), shared_(shared), random_(random), process_(process) {}

    void one_command();

    // What one_command chooses from.
    void transfer();
    /// A transfer under a command id once more; perhaps its first execution still runs, was in doubt, or died.
    void repeat();
    /// A transaction that reads all accounts and their balances, and perhaps moves money by what it has seen.
    void audit();
    /// Reads of lists and appends to them, in one transaction.
    void lists();
    /// Several appends to one list at the same time, through its lane; some under an id and then perhaps twice.
    void burst();
    /// Inside a lock, if it can be had: commands that are fenced by it, while it may be lost.
    void section();
    /// A command at a time, or one that was scheduled is cancelled.
    void schedule();
    /// All rows of a read model that is made anew at any time, a page with one row after the other.
    void list_folds();

    /// Puts the money on the accounts.
    static void set_up(Application& application, const Scale& scale);
    static void use_tables(Application& application, const Scale& scale);

  private:
    Record::Theme theme();
    void transfer(const Record::Transfer& transfer, bool under_an_id);
    /// `crossing` reads one list and appends to another: two of these must not pass each other. `hot` appends to some
    /// of a few streams: they share secondaries, and differ in their primaries.
    enum class Shape { mixed, crossing, hot, one_row, all_rows };
    void lists(Shape shape);
    void read_lists();
    void read_money();
    void notes();
    void read_folds();
    void saw_fold(const std::string& id, std::int64_t events, const std::map<std::string, std::int64_t>& seen_before);

    std::string account() { return std::to_string(random_.below(shared_.scale.keys)); }
    std::string list() { return (random_.chance(0.5) ? "s" : "r") + std::to_string(random_.below(shared_.scale.keys)); }
    /// Executes and tells what came of this execution. What the world does to it is no violation.
    Told attempt(std::int64_t operation, const std::function<Outcome()>& execute);
    void enter_commit(std::int64_t operation, const std::string& transaction);
    void check_effects(std::int64_t operation, const Receipt& receipt);

    Application& app_;
    Shared shared_;
    testing::SeededRandom& random_;
    const std::int64_t process_;
};

}  // namespace varve::protocol
