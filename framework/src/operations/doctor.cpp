#include "commands/application_parts.h"
#include "feed/feed.h"
#include "locks/stored_lock.h"
#include "transactions/bell.h"
#include "transactions/system_table.h"

#include <varve/operations/doctor.h>
#include <varve/operations/followers.h>
#include <varve/operations/locks.h>
#include <varve/operations/timers.h>
#include <varve/operations/transactions.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace varve::operations {

using Health = Diagnosis::Health;

namespace {

constexpr Duration clocks_differ_by_max = std::chrono::seconds{2};
constexpr Duration is_stuck_after = std::chrono::minutes{1};

std::string counted(std::size_t count, const char* one, const char* many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
}

class Doctor {
  public:
    explicit Doctor(Application& application)
        : application_(application), parts_(detail::parts_of(application)), clock_(application.runtime().clock) {}

    std::vector<Diagnosis> run() {
        look("reach", [this] { reach(); });
        look("format", [this] { format(); });
        look("writes", [this] { writes(); });
        look("settings", [this] { settings(); });
        look("clocks", [this] { clocks(); });
        look("transactions", [this] { transactions(); });
        look("order", [this] { order(); });
        look("followers", [this] { followers(); });
        look("timers", [this] { timers(); });
        return std::move(found_);
    }

  private:
    void look(const char* what, const std::function<void()>& at) {
        what_ = what;
        const std::size_t before = found_.size();
        try {
            at();
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception& error) {
            add(Health::sick, error.what(), "");
        }
        if (found_.size() == before) add(Health::odd, "nothing was found out", "");
    }
    void add(Health health, std::string found, std::string advice = {}) {
        found_.push_back({.health = health, .what = what_, .found = std::move(found), .advice = std::move(advice)});
    }

    void reach() {
        constexpr std::size_t times = 9;
        const store::Key key{transactions::system_table().name, "format"};
        std::vector<Duration> took;
        for (std::size_t i = 0; i < times; ++i) {
            const SteadyTime began = clock_.steady_now();
            (void)parts_.store->read({&key, 1});
            took.push_back(clock_.steady_now() - began);
        }
        std::ranges::sort(took);
        const Duration median = took[times / 2];
        const bool is_slow = median > std::chrono::milliseconds{50};
        add(is_slow ? Health::odd : Health::well, "a read takes " + varve::to_string(median),
            is_slow ? "each command takes at least two of these; run varve nearer to its store" : "");
    }

    void format() {
        const store::Key key{transactions::system_table().name, "format"};
        const std::optional<store::Item> item = parts_.store->read({&key, 1}).front();
        const std::int64_t* const version = item ? store::integer(*item, "varve_format") : nullptr;
        if (version != nullptr && *version == transactions::format_version)
            return add(Health::well, "format " + std::to_string(*version));
        add(Health::sick, "the stored format is not " + std::to_string(transactions::format_version),
            "use the version of varve that wrote it");
    }

    void writes() {
        for (const std::string& table : {transactions::events_table().name, transactions::system_table().name}) {
            store::Write never{.key = {table, "$doctor"}, .action = store::Update{{{"x", 1}}, {}}};
            if (table == transactions::events_table().name) never.key.sort = std::int64_t{1};
            never.condition = store::item_exists() && !store::item_exists();
            const store::WriteAnswer answer = parts_.store->write({&never, 1}).front();
            if (const auto* const failure = std::get_if<Failure>(&answer)) {
                if (failure->kind == ErrorKind::read_only)
                    return add(Health::odd, "not tried: this store was opened for reading only");
                return add(Health::sick, "the table '" + table + "' takes no writes: " + failure->message,
                           "give this program's role what the adapter's README lists");
            }
        }
        add(Health::well, "this program may write");
    }

    void settings() {
        const std::vector<std::string> concerns = parts_.store->concerns();
        for (const std::string& concern : concerns)
            add(Health::sick, concern, "see \"Guarantees\" in the adapter's README");
        if (concerns.empty()) add(Health::well, "no setting of the store weakens what it promises");
    }

    /// The newest times that others have stored: those in the future are of clocks that are ahead of this one.
    void clocks() {
        Duration ahead{0};
        std::string where;
        const auto compare = [&](Time time, const std::string& item) {
            if (time - clock_.now() <= ahead) return;
            ahead = time - clock_.now();
            where = item;
        };
        for (const RecordedEvent& event : newest_events())
            compare(event.time, event.stream + " version " + std::to_string(event.version));
        for (const StoredLock& lock : operations::locks(application_)) {
            const locks::Holder& holder = lock.state.holder;
            if (!holder.is_free()) compare(holder.expires - holder.time_to_live, "the lock '" + lock.name + "'");
        }
        if (ahead <= clocks_differ_by_max) return add(Health::well, "no time in the store is ahead of this clock");
        const Duration retention = parts_.options.transactions.retention;
        const bool is_too_much = ahead > retention / 2;
        add(is_too_much ? Health::sick : Health::odd,
            where + " is " + varve::to_string(ahead) + " ahead of this program's clock" +
                (is_too_much ? ", more than half of the retention, " + varve::to_string(retention) : ""),
            "set the clocks, by NTP; until then give all programs a retention of more than twice the difference");
    }

    std::vector<RecordedEvent> newest_events() {
        const feed::Feed feed{*parts_.store};
        constexpr store::Position slots = 200;
        const store::Position end = feed.end();
        return feed.read(end > slots ? end - slots : 0, slots).events;
    }

    void transactions() {
        std::size_t stuck = 0;
        std::string oldest;
        const std::vector<OpenTransaction> open = open_transactions(application_);
        for (const OpenTransaction& one : open) {
            if (clock_.now() - one.lease <= is_stuck_after) continue;
            if (stuck++ == 0) oldest = one.id;
        }
        if (stuck == 0) return add(Health::well, counted(open.size(), "transaction is open", "transactions are open"));
        add(Health::sick,
            counted(stuck, "transaction has", "transactions have") +
                " been dead for more than a minute, the first is " + oldest,
            "let an application with ApplicationOptions::sweep run, or use: varve transactions settle");
    }

    void order() {
        if (parts_.store->capabilities().ordered_changes)
            return add(Health::well, "the store keeps the order of events");
        const unsigned shards = transactions::read_bell_shards(*parts_.store);
        if (shards == 0) {
            return add(Health::odd, "commits are not announced, so nobody can follow events",
                       "set ApplicationOptions::feed if somebody should");
        }
        const locks::Holder holder = application_.locks().inspect("$sequencer").holder;
        std::size_t bells = 0;
        for (unsigned i = 0; i < shards; ++i) bells += parts_.store->query(transactions::bells_in(i)).records.size();
        // Whoever died has it until somebody else enters.
        const bool is_nobodys = holder.is_free() || clock_.now() - holder.expires > is_stuck_after;
        if (is_nobodys && bells > 0) {
            return add(Health::sick,
                       "nobody puts events in order, and " + counted(bells, "commit waits", "commits wait"),
                       "let an application with ApplicationOptions::sweep run");
        }
        add(Health::well, counted(bells, "commit waits", "commits wait") + " to be put in order");
    }

    void followers() {
        std::size_t behind = 0;
        std::size_t all = 0;
        for (const FollowerStatus& one : operations::followers(application_)) {
            ++all;
            if (one.state == FollowerStatus::State::stopped) {
                add(Health::sick, "'" + one.name + "' has stopped: " + one.error,
                    "repair what it says, and start its program again");
            }
            if (one.parked > 0) {
                add(Health::sick,
                    "'" + one.name + "' has set " + counted(static_cast<std::size_t>(one.parked), "stream", "streams") +
                        " aside",
                    one.name.starts_with("$deliver-") ? "varve effects parked"
                                                      : "varve projections parked " + one.name);
            }
            if (one.position < one.end && one.owner.empty()) {
                ++behind;
                add(Health::odd,
                    "'" + one.name + "' is " + std::to_string(one.end - one.position) +
                        " slots behind, and no program has it",
                    "start the program that does");
            }
        }
        if (all == 0)
            add(Health::well, "nobody follows events");
        else if (found_.back().what != what_)
            add(Health::well, counted(all, "follower gets", "followers get") + " on");
    }

    void timers() {
        std::size_t failed = 0;
        std::size_t late = 0;
        const std::vector<StoredTimer> all = operations::timers(application_, SIZE_MAX);
        for (const StoredTimer& timer : all) {
            if (!timer.error.empty())
                ++failed;
            else if (clock_.now() - timer.due > is_stuck_after)
                ++late;
        }
        if (failed > 0)
            add(Health::sick, counted(failed, "timer has", "timers have") + " failed", "varve timers lists them");
        if (late > 0) {
            add(Health::sick, counted(late, "timer is", "timers are") + " due for more than a minute",
                "start the programs that fire them");
        }
        if (failed + late == 0) add(Health::well, counted(all.size(), "timer waits", "timers wait"));
    }

    Application& application_;
    detail::ApplicationParts& parts_;
    Clock& clock_;
    const char* what_ = "";
    std::vector<Diagnosis> found_;
};

}  // namespace

const char* to_string(Health health) noexcept {
    switch (health) {
        case Health::sick: return "sick";
        case Health::odd: return "odd";
        case Health::well: return "well";
    }
    return "sick";
}

std::vector<Diagnosis> diagnose(Application& application) {
    return Doctor{application}.run();
}

}  // namespace varve::operations
