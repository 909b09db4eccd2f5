#include "check.h"

#include "balances.h"
#include "money.h"
#include "turnover.h"

#include <varve/commands/follower_status.h>
#include <varve/events/event_store.h>
#include <varve/store/item_store.h>
#include <varve/transactions/stored.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace bank {

namespace {

using varve::Version;
namespace store = varve::store;
using varve::transactions::Stored;

constexpr std::size_t broken_named_max = 5;

class RuleBuilder {
  public:
    explicit RuleBuilder(std::string name) { rule_.name = std::move(name); }

    void breaks(std::string what) {
        if (++rule_.broken_count <= broken_named_max) rule_.broken.push_back(std::move(what));
    }
    Audit::Rule found(std::string text) && {
        rule_.found = std::move(text);
        return std::move(rule_);
    }

  private:
    Audit::Rule rule_;
};

std::string plural(std::size_t count, std::string_view one, std::string_view many) {
    return count_text(static_cast<std::int64_t>(count)) + " " + std::string{count == 1 ? one : many};
}

std::vector<store::Record> all_items(store::ItemStore& store, std::string_view table) {
    std::vector<store::Record> records;
    store::Scan scan{.table = std::string{table}};
    do {
        store::Page page = store.scan(scan);
        std::ranges::move(page.records, std::back_inserter(records));
        scan.next = std::move(page.next);
    } while (scan.next);
    return records;
}

/// An account as folded from its events by this audit, which trusts no cache and no row.
struct Folded {
    Account account;
    Version head = 0;
};

/// What is known of one transfer from its events.
struct Legs {
    std::int64_t expected = 0;
    std::int64_t found = 0;
    std::int64_t withdrawals = 0;
    Cents sum = 0;  ///< of what came in minus what went out: 0 when whole

    bool whole() const { return found == expected && withdrawals == 1 && sum == 0; }
};

class Auditor {
  public:
    explicit Auditor(varve::Application& bank) : bank_(bank), store_(bank.store()) {}

    Audit run(bool settled) {
        if (!settled) pending_.breaks("not everything was settled in time; is somebody still writing?");
        read_slots();
        for (const auto& [stream, slots] : streams_) fold(stream, slots);
        read_rows();
        compare_rows();
        compare_snapshots();
        if (!bank_.followers().empty()) compare_turnover();
        return result();
    }

  private:
    // Tables and attributes: docs/stored-format.md of varve. An audit looks at what is stored itself.

    void read_slots() {
        for (const store::Record& record : all_items(store_, "events")) {
            const std::string& stream = record.key.partition;
            const auto version = std::get<std::int64_t>(record.key.sort);
            try {
                const Stored stored = varve::transactions::look_at_slot(record.key, record.item);
                if (stored == Stored::pending) {
                    pending_.breaks(stream + " version " + std::to_string(version));
                    ++pending_count_;
                } else if (stored == Stored::committed && !stream.starts_with('$')) {
                    streams_[stream].emplace(version, record.item.contains("effects"));
                }
            } catch (const varve::CorruptionError& error) {
                readable_.breaks(error.what());
            }
        }
    }

    void fold(const std::string& stream, const std::map<Version, bool>& slots) {
        const std::string id{varve::id_of(stream)};
        Folded& folded = accounts_[id];
        for (auto first = slots.begin(); first != slots.end();) {
            if (first->first != folded.head + 1) {
                dense_.breaks(id + ": version " + std::to_string(folded.head + 1) + " is missing");
            }
            auto next = first;
            do {
                folded.head = next->first;
                ++next;
            } while (next != slots.end() && next->first == folded.head + 1);
            fold(id, folded, stream, first->first, folded.head);
            for (; first != next; ++first) {
                if (first->second) read_effects(stream, first->first);
            }
        }
    }

    /// Slots that are all there. Where one cannot be read, the others still count.
    void fold(const std::string& id, Folded& folded, const std::string& stream, Version first, Version last) {
        varve::Stream read;
        try {
            read = bank_.events().load(stream, first, last);
        } catch (const varve::CorruptionError& error) {
            if (first == last) return readable_.breaks(error.what());
            for (Version version = first; version <= last; ++version) fold(id, folded, stream, version, version);
        }
        for (const varve::RecordedEvent& recorded : read.events) {
            try {
                apply(id, folded, recorded);
            } catch (const varve::CorruptionError& error) {
                readable_.breaks(error.what());
            }
        }
    }

    void read_effects(const std::string& stream, Version version) {
        try {
            (void)bank_.events().effects(stream, version);
        } catch (const varve::CorruptionError& error) {
            readable_.breaks(error.what());
        }
    }

    void apply(const std::string& id, Folded& folded, const varve::RecordedEvent& recorded) {
        ++events_;
        for (const Account::Event& event : varve::EventVariant<Account::Event>::decode(recorded)) {
            std::visit([&](const auto& one) { folded.account.apply(one); }, event);
            count(event, turnover_[day_of(recorded.time)]);
        }
        if (folded.account.balance < 0) {
            negative_.breaks(id + ": " + money_text(folded.account.balance) + " at version " +
                             std::to_string(recorded.version));
        }
    }

    void count(const Account::Event& event, Turnover& day) {
        if (const auto* deposited = std::get_if<Deposited>(&event)) {
            day.in = add(day.in, deposited->cents);
            ++day.movements;
            count(deposited->cents, deposited->transfer, in_);
        } else if (const auto* withdrawn = std::get_if<Withdrawn>(&event)) {
            day.out = add(day.out, withdrawn->cents);
            ++day.movements;
            count(-withdrawn->cents, withdrawn->transfer, out_);
        }
    }

    void count(Cents cents, const std::optional<Transfer>& transfer, Cents& outside) {
        if (!transfer) {
            outside = add(outside, cents);
            return;
        }
        Legs& legs = transfers_[transfer->id];
        legs.expected = std::max(legs.expected, transfer->legs);
        ++legs.found;
        legs.withdrawals += cents < 0 ? 1 : 0;
        legs.sum = add(legs.sum, cents);
    }

    void read_rows() {
        for (const store::Record& record : all_items(store_, Balance::table)) {
            try {
                if (varve::transactions::look_at_row(record.key, record.item) == Stored::pending) {
                    pending_.breaks("the row of " + record.key.partition);
                    ++pending_count_;
                }
            } catch (const varve::CorruptionError& error) {
                readable_.breaks(error.what());
            }
            const std::string* const data = store::text(record.item, "data");
            if (data == nullptr) continue;  // it was deleted
            auto balance = varve::json::decode<Balance>(*data);
            if (balance) {
                rows_.emplace(record.key.partition, std::move(*balance));
            } else {
                readable_.breaks(store::to_string(record.key) + ": " + balance.error().message);
            }
        }
    }

    void row_breaks(const std::string& id, const std::string& what) {
        rows_as_folded_.breaks(id + ": " + what);
        wrong_rows_.push_back(id);
    }

    void compare_rows() {
        for (const auto& [id, folded] : accounts_) {
            const Balance expected{.owner = folded.account.owner,
                                   .cents = folded.account.balance,
                                   .frozen = folded.account.frozen,
                                   .version = folded.head};
            const auto row = rows_.find(id);
            if (row == rows_.end()) {
                row_breaks(id, "has no row");
            } else if (row->second.cents != expected.cents) {
                row_breaks(
                    id, "the row says " + money_text(row->second.cents) + ", the events " + money_text(expected.cents));
            } else if (row->second != expected) {
                row_breaks(id, "the row says " + varve::json::encode(row->second) + ", the events " +
                                   varve::json::encode(expected));
            }
        }
        for (const auto& [id, row] : rows_) {
            if (!accounts_.contains(id)) row_breaks(id, "has a row but no events");
        }
    }

    void compare_snapshots() {
        for (const auto& [id, folded] : accounts_) {
            try {
                const varve::SnapshotCheck snapshot = bank_.check_snapshot<Account>(id);
                snapshot_count_ += snapshot.version > 0 ? 1 : 0;
                if (snapshot.holds()) continue;
                snapshots_as_folded_.breaks(id + ": the snapshot of version " + std::to_string(snapshot.version) +
                                            " says " + snapshot.stored + ", the events " + snapshot.folded);
            } catch (const varve::CorruptionError&) {
                // Its events cannot be folded: that has been found already.
            }
        }
    }

    /// What a follower has made of the events, whoever was killed while doing so.
    void compare_turnover() {
        turnover_as_folded_.emplace("turnover as the events say");
        if (!bank_.wait_for<SumUpTurnover>({}, std::chrono::minutes{1})) {
            for (const varve::FollowerStatus& one : bank_.followers()) {
                turnover_as_folded_->breaks(
                    "the follower '" + one.name + "' is at " + std::to_string(one.position) + " of " +
                    std::to_string(one.end) + " and " + to_string(one.state) +
                    (one.parked > 0 ? ", accounts set aside: " + std::to_string(one.parked) + " (bank projections)"
                                    : "") +
                    (one.error.empty() ? "" : ": " + one.error));
            }
        }
        std::map<std::string, Turnover> rows;
        for (auto& row : bank_.rows<Turnover>().all()) {
            add(summed_up_, row.value);
            rows.emplace(std::move(row.key.partition), row.value);
        }
        std::erase_if(turnover_, [](const auto& day) { return day.second == Turnover{}; });
        for (const auto& [day, folded] : turnover_) {
            const Turnover& row = rows[day];
            if (row == folded) continue;
            turnover_as_folded_->breaks(day + ": the row says " + varve::json::encode(row) + ", the events " +
                                        varve::json::encode(folded));
        }
        for (const auto& [day, row] : rows) {
            if (!turnover_.contains(day)) turnover_as_folded_->breaks(day + ": has a row but no events");
        }
    }

    Audit result() {
        Audit audit{.rules = {}, .accounts = accounts_.size(), .events = events_};
        for (const auto& [id, folded] : accounts_) audit.money = add(audit.money, folded.account.balance);
        RuleBuilder sum{"sum of money"};
        if (audit.money != in_ + out_) {
            sum.breaks("the accounts hold " + money_text(audit.money - in_ - out_) + " that nobody brought");
        }
        RuleBuilder whole{"transfers whole or not at all"};
        for (const auto& [id, legs] : transfers_) {
            audit.transfers.emplace(id, legs.whole());
            if (legs.whole()) continue;
            whole.breaks("transfer " + id + ": " + std::to_string(legs.found) + " of " + std::to_string(legs.expected) +
                         " events, " + money_text(legs.sum) + " too much");
        }
        const std::string streams = plural(accounts_.size(), "account", "accounts");
        audit.rules.push_back(std::move(sum).found(money_text(in_) + " in - " + money_text(-out_) +
                                                   " out = " + money_text(audit.money) + " in accounts"));
        audit.rules.push_back(std::move(negative_).found("in all of " + plural(events_, "event", "events")));
        audit.rules.push_back(std::move(dense_).found("1, 2, 3 … in " + streams));
        audit.rules.push_back(std::move(whole).found(plural(transfers_.size(), "transfer", "transfers")));
        audit.rules.push_back(std::move(rows_as_folded_).found(plural(rows_.size(), "row", "rows")));
        audit.rules.push_back(std::move(snapshots_as_folded_).found(plural(snapshot_count_, "snapshot", "snapshots")));
        if (turnover_as_folded_) {
            audit.rules.push_back(std::move(*turnover_as_folded_).found(plural(turnover_.size(), "day", "days")));
        }
        audit.rules.push_back(std::move(readable_).found("all stored items"));
        audit.rules.push_back(std::move(pending_).found(plural(pending_count_, "unsettled claim", "unsettled claims")));
        for (const auto& [day, folded] : turnover_) add(audit.turnover, folded);
        audit.summed_up = summed_up_;
        audit.wrong_rows = std::move(wrong_rows_);
        return audit;
    }

    varve::Application& bank_;
    store::ItemStore& store_;
    std::map<std::string, std::map<Version, bool>> streams_;  // the slots, and whether they have effects
    std::map<std::string, Folded> accounts_;
    std::map<std::string, Balance> rows_;
    std::map<std::string, Legs> transfers_;
    std::map<std::string, Turnover> turnover_;  // by day, as folded
    Turnover summed_up_;                        // of all rows
    std::vector<std::string> wrong_rows_;
    std::size_t events_ = 0;
    std::size_t pending_count_ = 0;
    std::size_t snapshot_count_ = 0;
    Cents in_ = 0;   // from outside
    Cents out_ = 0;  // to outside: negative
    RuleBuilder negative_{"no balance below zero"};
    RuleBuilder dense_{"versions without holes"};
    RuleBuilder rows_as_folded_{"balances as the events say"};
    RuleBuilder snapshots_as_folded_{"snapshots as the events say"};
    std::optional<RuleBuilder> turnover_as_folded_;  // where it is followed
    RuleBuilder readable_{"everything readable"};
    RuleBuilder pending_{"nothing left pending"};
};

}  // namespace

bool Audit::holds() const {
    return std::ranges::all_of(rules, &Rule::holds);
}

Audit audit(varve::Application& bank, varve::Duration patience) {
    // Tables must be known to be settled and read.
    bank.rows<Balance>();
    bank.rows<Turnover>();
    bool settled = false;
    try {
        settled = bank.settle(patience);
    } catch (const varve::CorruptionError&) {
        settled = true;  // the audit itself finds it, and names it
    }
    return Auditor{bank}.run(settled);
}

std::size_t repair_rows(varve::Application& bank, const Audit& audit) {
    std::size_t differed = 0;
    for (const std::string& id : audit.wrong_rows) {
        try {
            differed += bank.refold<Account>(id);
        } catch (const varve::CorruptionError&) {
            // The events themselves are damaged, which the audit tells.
        }
    }
    return differed;
}

}  // namespace bank
