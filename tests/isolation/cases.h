#pragma once

#include "isolation/interleaving.h"

#include <varve/store/item_store.h>
#include <varve/testing/seeded_random.h>
#include <varve/varve.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace varve::isolation {

// The ten cases of Hermitage (M. Kleppmann, github.com/ept/hermitage), which tell isolation levels apart, as they look
// in a framework whose levels are levels of READS: all writes are made in transactions, and these are serializable.

/// How a reader reads, and what it does with that.
enum class Level {
    uncommitted,       ///< outside of a transaction
    committed,         ///< outside of a transaction
    expected_version,  ///< committed; whoever writes what he has read names the version that he read
    snapshot,          ///< one call outside of a transaction
    serializable,      ///< within the transaction that writes, if any is written
};

inline constexpr Level levels[] = {Level::uncommitted, Level::committed, Level::expected_version, Level::snapshot,
                                   Level::serializable};

/// What holds the values that a case is about. Each is named; one that nobody has written is 0.
enum class Subject { rows, streams };

/// How transactions commit.
enum class Way {
    native,    ///< as one atomic request, where the store has it
    protocol,  ///< in the framework's steps
    reserved,  ///< in the framework's steps, having reserved the streams first
};

inline const char* to_string(Subject subject) {
    return subject == Subject::rows ? "rows" : "streams";
}
inline const char* to_string(Way way) {
    return way == Way::native ? "native" : way == Way::protocol ? "protocol" : "reserved";
}

/// Two parties and a store between them, on which cases run one after the other.
class World {
  public:
    /// Worlds that share a store need each another seed, or they would give out the same ids.
    World(std::shared_ptr<store::ItemStore> store, Subject subject, Way way, std::uint64_t seed = 1);

    Application& party(std::size_t i) { return *parties_.at(i); }
    /// Commits from within a party's transaction, as somebody else.
    Application& bystander() { return *bystander_; }
    Interleaving& interleaving() { return interleaving_; }
    Subject subject() const { return subject_; }
    /// A name that nobody has used.
    std::string fresh(const std::string& name) {
        static std::atomic<int> names = 0;  // worlds may share a store
        return name + "-" + std::to_string(++names);
    }

    /// As single calls of a reader: all values at once at a level. nullopt: refused, the reader may try again.
    std::optional<std::vector<int>> read(Application& by, const std::vector<std::string>& names, Level level);
    int read(Transaction& tx, const std::string& name) const;
    void write(Transaction& tx, const std::string& name, int value) const;

    /// Reads at a level, then writes what `decide` makes of it. Whether it was committed.
    bool read_then_write(Application& by, const std::vector<std::string>& reads, const std::string& writes, Level level,
                         const std::function<std::optional<int>(const std::vector<int>&)>& decide);

  private:
    struct Seen {
        int value;
        Version version;
    };
    std::vector<Seen> look(Application& by, const std::vector<std::string>& names, Level level) const;
    std::unique_ptr<Application> make(Way way, Duration lease);

    const std::shared_ptr<store::ItemStore> store_;
    const Subject subject_;
    Interleaving interleaving_;
    SteppedClock clock_{interleaving_};
    testing::SeededRandom random_;
    AtOnce at_once_;
    std::array<std::unique_ptr<Application>, 2> parties_;
    std::unique_ptr<Application> bystander_;
};

/// Two parties, and whether what the case is named after has happened.
struct Scenario {
    std::array<std::function<void()>, 2> parties;
    std::function<bool()> happened;
};

struct Case {
    const char* name;   ///< as in Hermitage
    const char* title;  ///< in words
    const char* text;   ///< what two parties do here, and what must not come out of it
    Scenario (*make)(World&, Level);
};

/// In Hermitage's order.
const std::vector<Case>& cases();

/// Read skew of somebody who writes nothing, but rejects by what he has read; within a transaction.
const Case& read_skew_of_a_rejection();

}  // namespace varve::isolation
