#pragma once

#include <varve/core/clock.h>
#include <varve/store/adapter.h>
#include <varve/testing/seeded_random.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace varve::testing {

/// How likely each fault is, as a probability in [0, 1]. A request is one write of a batch, one atomic batch, or one
/// call that reads.
struct FaultRates {
    double request_lost = 0;      ///< a write that never arrives; in doubt after the timeout
    double answer_lost = 0;       ///< a write that is done; in doubt after the timeout
    double request_late = 0;      ///< a write that arrives up to `delay_max` later; in doubt after the timeout
    double delivered_again = 0;   ///< a write that arrives once more, or several times, up to `again_after_max` later
    double any_past_request = 0;  ///< at any request, one of all the writes that ever arrived arrives once more
    double error_without_effect = 0;  ///< a write that fails, in doubt, and is not done
    double error_with_effect = 0;     ///< a write that fails, in doubt, and is done
    double answered_again = 0;        ///< a write that arrives twice, up to `latency_max` apart; the second is answered
    double slow_request = 0;          ///< takes up to `latency_max` to arrive
    double slow_answer = 0;           ///< takes up to `latency_max` to come back
    double throttled = 0;             ///< begins a burst in which every request fails, certainly without effect
    double read_failed = 0;           ///< a request that reads throws UnavailableError
    double small_page = 0;            ///< a page of 0 to 3 records; an empty one has a `next`
};

/// How long faults last.
struct FaultTimes {
    Duration timeout = std::chrono::seconds{3};  ///< how long a caller waits for an answer that does not come
    Duration delay_max = std::chrono::seconds{90};
    Duration again_after_max = std::chrono::seconds{120};
    Duration latency_max = std::chrono::milliseconds{200};
    Duration throttle_max = std::chrono::seconds{2};
    unsigned again_times_max = 2;  ///< so often a write is delivered again, at most
};

/// How often each fault of FaultRates happened.
struct FaultCounts {
    std::uint64_t requests = 0;
    std::uint64_t request_lost = 0;
    std::uint64_t answer_lost = 0;
    std::uint64_t request_late = 0;
    std::uint64_t delivered_again = 0;  ///< deliveries that were planned
    std::uint64_t any_past_request = 0;
    std::uint64_t error_without_effect = 0;
    std::uint64_t error_with_effect = 0;
    std::uint64_t answered_again = 0;
    std::uint64_t slow_request = 0;
    std::uint64_t slow_answer = 0;
    std::uint64_t throttled = 0;  ///< requests that failed in a burst
    std::uint64_t read_failed = 0;
    std::uint64_t small_page = 0;
    std::uint64_t empty_page = 0;
    std::uint64_t deliveries = 0;  ///< late, repeated and past requests that arrived
};

/// What lies between the FaultyStores of one simulated cluster and their store: the faults, and the requests that are
/// still on their way. A late request arrives when any of these stores is called at or after its time.
///
/// Time passes only by `clock`, chance only comes from `random`: one seed and the same calls give the same run. Both,
/// and the network itself, must outlive the stores. Use a clock that a sleep moves (ManualClock::Mode::auto_advance),
/// or a scheduler's.
///
/// Threads: any; a run can be repeated only if the calls come in the same order.
class Network {
  public:
    struct World {
        Clock& clock;
        SeededRandom& random;
    };
    explicit Network(World world, const FaultRates& rates = {}, const FaultTimes& times = {});

    /// From now on. What is on its way stays on its way. `set_rates({})` begins a quiet phase.
    void set_rates(const FaultRates& rates);
    FaultCounts counts() const;

    /// Lets everything arrive whose time has come. Returns how many requests arrived.
    std::size_t deliver_all_due();
    /// Lets everything arrive that is still on its way, whatever its time.
    std::size_t deliver_everything();

  private:
    friend class FaultyStore;

    /// A write request as it went over the wire.
    struct Request {
        std::shared_ptr<store::ItemStore> to;
        std::vector<store::Write> writes;
        bool atomic;
    };
    using SharedRequest = std::shared_ptr<const Request>;

    bool happens(double FaultRates::*rate, std::uint64_t FaultCounts::*count);
    bool throttles();
    Duration up_to(Duration longest);
    void wait_in_vain();
    void delay(double FaultRates::*rate, std::uint64_t FaultCounts::*count);
    void deliver_later(SharedRequest request, Duration longest);
    void arrived(const SharedRequest& request);
    void maybe_deliver_again(const SharedRequest& request);
    void maybe_deliver_a_past_one();
    static void deliver(const Request& request);
    std::size_t deliver_until(std::optional<SteadyTime> time);

    const World world_;
    const FaultTimes times_;
    mutable std::mutex mutex_;
    FaultRates rates_;                                       // guarded by mutex_
    FaultCounts counts_;                                     // guarded by mutex_
    std::multimap<SteadyTime, SharedRequest> on_their_way_;  // guarded by mutex_; equal times keep their order
    std::vector<SharedRequest> past_;                        // guarded by mutex_
    std::optional<SteadyTime> throttled_until_;              // guarded by mutex_
    std::map<std::string, store::TableSchema> schemas_;      // guarded by mutex_
};

/// Thrown through the code under test when a hook says so: the simulated process is dead from here on. Not a
/// std::exception, so that no handler of errors catches it.
struct ProcessStopped {
    std::uint64_t request;
};

/// One request, as FaultyStore's hook sees it.
struct RequestInfo {
    enum class Kind { read, write, write_atomically, query, scan, changes };
    enum class Moment { before, after };
    std::uint64_t number;  ///< 1, 2, 3 … of this FaultyStore; the same before and after
    Kind kind;
    Moment moment;
    std::span<const store::Write> writes;  ///< one, or those of an atomic batch; none for a read
};
enum class Next { proceed, stop };

/// What a FaultyStore hides of the store behind it.
struct Disguise {
    std::size_t item_bytes_max = SIZE_MAX;     ///< a smaller limit than the store's
    std::size_t atomic_writes_max = SIZE_MAX;  ///< fewer than the store takes; 0: none
    bool no_changes = false;
};

/// A store as one process of a simulated cluster sees it over a bad network. Each write of a batch is a request of its
/// own with a fate of its own, and they are executed in random order; the caller waits for all lost answers together.
///
///     ManualClock clock{ManualClock::Mode::auto_advance};
///     SeededRandom random{seed};
///     Network network{{clock, random}, {.answer_lost = 0.05, .delivered_again = 0.2}};
///     auto alice = std::make_shared<FaultyStore>(store, network);
///     auto bob = std::make_shared<FaultyStore>(store, network);
///
/// Without faults it keeps the port's contract to the letter. With `answered_again` it behaves like an adapter that
/// repeats what was not answered: the answer to a write may be that of its second delivery, which may be refused
/// because of the first, or of what came after it.
class FaultyStore final : public store::ItemStore {
  public:
    FaultyStore(std::shared_ptr<store::ItemStore> inner, Network& network, const Disguise& disguise = {});

    /// Called before and after each request takes effect; `stop` throws ProcessStopped from there. A request stopped
    /// before is never sent. One stopped after had its effect, unless a fault took it. Set it before the first call.
    void on_request(std::function<Next(const RequestInfo&)> hook) { hook_ = std::move(hook); }
    /// How many requests there were. A crash grid enumerates them.
    std::uint64_t requests() const;

    void ensure_table(const store::TableSchema& schema) override;
    bool has_table(const store::TableSchema& schema) override;
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override;
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override;
    store::Page query(const store::Query& query) override;
    store::Page scan(const store::Scan& scan) override;
    store::Capabilities capabilities() const override;
    std::vector<store::Change> changes(const std::string& table, store::Position after, std::size_t limit) override;
    store::Position last_change(const std::string& table) override;
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override;
    std::shared_ptr<void> watch(const std::string& table, std::function<void()> changed) override;

  private:
    RequestInfo begin(RequestInfo::Kind kind, std::span<const store::Write> writes = {});
    void end(RequestInfo info);
    void tell(const RequestInfo& info) const;
    void check_batch(std::span<const store::Write> writes, store::Batch kind);
    std::optional<Failure> beyond_limit(std::span<const store::Write> writes);
    template <class Answer, class Apply>
    Answer send(std::span<const store::Write> writes, bool& in_vain, Apply apply);
    template <class Call>
    auto ask(RequestInfo::Kind kind, Call call);
    template <class Request, class Call>
    store::Page page_of(Request request, Call call);

    const std::shared_ptr<store::ItemStore> inner_;
    Network& network_;
    const Disguise disguise_;
    std::function<Next(const RequestInfo&)> hook_;
    mutable std::mutex mutex_;
    std::uint64_t requests_ = 0;  // guarded by mutex_
};

}  // namespace varve::testing
