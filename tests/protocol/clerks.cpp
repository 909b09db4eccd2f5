#include "protocol/clerks.h"

#include "commands/checkpoint.h"
#include "commands/timers.h"
#include "events/stored_slot.h"
#include "transactions/slot.h"

#include <varve/core/json.h>

#include <algorithm>
#include <set>

namespace varve::protocol {
namespace {

/// What happened to one deposit's timer, and beside it.
struct Story {
    int noted = 0;
    int rang = 0;
    int silenced = 0;
    int counted = 0;
    int counted_again = 0;
    int chimes = 0;
};

class Stories {
  public:
    Stories(Application& application, Ledger& ledger) {
        for (std::int64_t desk = 0; desk < 3; ++desk) {
            for (const RecordedEvent& one : application.history<Clerk>(std::to_string(desk)).events)
                std::visit([this](const auto& e) { take(e); }, EventVariant<Clerk::Event>::decode(one).front());
        }
        for (const char* id : tallies) {
            for (const std::int64_t number : application.load<Tally>(id).state.numbers)
                ++(number > 0 ? stories_[number].counted : stories_[-number].counted_again);
        }
        for (store::Record& record : ledger.contents({"events"})) {
            const transactions::Slot slot = transactions::decode_slot(record.key, std::move(record.item));
            const auto* committed = std::get_if<transactions::Committed>(&slot);
            if (committed == nullptr) continue;
            const Version version = transactions::version_of(record.key);
            for (const Effect& effect : events::decode_effects(record.key.partition, version, *committed)) {
                if (effect.effect.type == event_name<Chime>())
                    ++stories_[json::decode<Chime>(effect.effect.data).value().operation].chimes;
            }
        }
    }

    std::vector<std::string> judged(const std::set<std::int64_t>& deposits) {
        for (const std::int64_t operation : deposits) stories_.try_emplace(operation);
        for (const auto& [operation, story] : stories_) {
            const int times = deposits.contains(operation) ? 1 : 0;
            const bool is_right = story.noted == times && story.counted == times && story.chimes == times &&
                                  story.rang + story.silenced == times && story.counted_again == story.rang;
            if (is_right) continue;
            found_.push_back("process: the deposit of operation " + std::to_string(operation) + " is there " +
                             std::to_string(times) + " times; noted " + std::to_string(story.noted) + ", counted " +
                             std::to_string(story.counted) + ", chimes " + std::to_string(story.chimes) + ", rang " +
                             std::to_string(story.rang) + ", silenced " + std::to_string(story.silenced) +
                             ", counted again " + std::to_string(story.counted_again));
        }
        return std::move(found_);
    }

  private:
    void take(const Noted& e) { ++stories_[e.operation].noted; }
    void take(const Rang& e) {
        ++stories_[e.operation].rang;
        if (e.at < e.due)
            found_.push_back("timer: that of operation " + std::to_string(e.operation) + " rang at " +
                             varve::to_string(e.at) + ", before " + varve::to_string(e.due));
    }
    void take(const Silenced& e) {
        ++stories_[e.operation].silenced;
        if (!e.in_time)
            found_.push_back("timer: that of operation " + std::to_string(e.operation) +
                             " could not be silenced, and has not rung");
    }

    std::map<std::int64_t, Story> stories_;
    std::vector<std::string> found_;
};

std::set<std::int64_t> deposits(Ledger& ledger) {
    std::set<std::int64_t> operations;
    for (store::Record& record : ledger.contents({"events"})) {
        if (events::aggregate_of(record.key.partition) != Account::name) continue;
        const transactions::Slot slot = transactions::decode_slot(record.key, std::move(record.item));
        const auto* committed = std::get_if<transactions::Committed>(&slot);
        if (committed == nullptr) continue;
        for (const RecordedEvent& one :
             events::decode_payload(record.key.partition, transactions::version_of(record.key), *committed)) {
            const auto event = EventVariant<Account::Event>::decode(one).front();
            const auto* deposited = std::get_if<Deposited>(&event);
            if (deposited != nullptr && deposited->operation != 0) operations.insert(deposited->operation);
        }
    }
    return operations;
}

void judge_schedule(Application& application, const Record& record, std::vector<std::string>& found) {
    std::map<std::int64_t, int> done;
    for (const std::int64_t number : application.load<Tally>(scheduled_tally).state.numbers) ++done[number];
    for (const auto& [operation, command] : record.commands) {
        if (!command.schedules) continue;
        const Told told = command.told();
        const int times = done[operation];
        const bool may_be = told != Told::aborted && !command.is_cancelled;
        const bool must_be = told == Told::committed && !command.is_cancelled && command.cancels_begun == 0;
        if (times > (may_be ? 1 : 0) || times < (must_be ? 1 : 0))
            found.push_back("schedule: what operation " + std::to_string(operation) + " has scheduled was done " +
                            std::to_string(times) + " times");
        done.erase(operation);
    }
    for (const auto& [operation, times] : done) {
        if (times > 0) found.push_back("schedule: nobody has scheduled " + std::to_string(operation));
    }
}

template <class Row>
void judge_is_empty(Application& application, std::vector<std::string>& found) {
    for (const auto& row : application.rows<Row>().all())
        found.push_back("timer: " + std::string{Row::table} + " " + row.key.partition + "/" + row.key.sort +
                        " is left");
}

}  // namespace

bool is_clerical(std::string_view aggregate) {
    return aggregate == Clerk::name || aggregate == Tally::name;
}

std::vector<std::string> judge_clerks(Application& application, Ledger& ledger, const Record& record) {
    std::vector<std::string> found = Stories{application, ledger}.judged(deposits(ledger));
    judge_schedule(application, record, found);
    judge_is_empty<detail::TimerRow>(application, found);
    judge_is_empty<detail::TimerBucket>(application, found);
    judge_is_empty<detail::TimerAside>(application, found);
    return found;
}

void lose_place(Application& application, testing::SeededRandom& random, std::size_t partitions) {
    std::string name = process_name<Clerk>();
    if (partitions > 1) name += "#" + std::to_string(1 + random.below(partitions));
    application.transact([&](Transaction& tx) { tx.rows<detail::Checkpoint>().erase(name); }).value();
}

}  // namespace varve::protocol
