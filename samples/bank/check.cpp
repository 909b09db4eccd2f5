#include "check.h"

#include "balances.h"
#include "money.h"

#include <varve/events/stored_slot.h>
#include <varve/transactions/sweeper.h>

#include <algorithm>
#include <map>
#include <set>

namespace bank {

namespace {

using varve::Version;
namespace store = varve::store;
namespace transactions = varve::transactions;

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

/// Whether nothing that died processes left behind is lying about any more.
bool settle(varve::Application& bank, varve::Duration patience) {
    // Nobody else writes, so nothing is gained by going slowly.
    constexpr transactions::ScanOptions at_once{.page_interval = varve::Duration{0}, .pause = varve::Duration{0}};
    transactions::Sweeper sweeper{bank.coordinator(), {std::string{Balance::table}}, at_once};
    varve::Clock& clock = bank.coordinator().runtime().clock;
    const varve::SteadyTime until = clock.steady_now() + patience;
    for (;;) {
        const std::size_t left = sweeper.sweep();
        if (left == 0 && sweeper.is_through()) return true;
        if (left == 0) continue;  // a long history
        if (clock.steady_now() >= until) return false;
        clock.sleep_for(std::chrono::milliseconds{50});
    }
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
    explicit Auditor(varve::Application& bank) : bank_(bank), store_(bank.coordinator().store()) {}

    Audit run(bool settled) {
        if (!settled) pending_.breaks("not everything was settled in time; is somebody still writing?");
        read_slots();
        for (const auto& [stream, slots] : streams_) fold(stream, slots);
        read_rows();
        compare_rows();
        compare_snapshots();
        return result();
    }

  private:
    void read_slots() {
        for (store::Record& record : all_items(store_, transactions::events_table().name)) {
            const std::string& stream = record.key.partition;
            try {
                transactions::Slot slot = transactions::decode_slot(record.key, std::move(record.item));
                if (std::holds_alternative<transactions::Pending>(slot)) {
                    pending_.breaks(stream + " version " + std::to_string(transactions::version_of(record.key)));
                    ++pending_count_;
                }
                if (transactions::is_internal(stream)) continue;
                if (auto* committed = std::get_if<transactions::Committed>(&slot)) {
                    streams_[stream].emplace(transactions::version_of(record.key), std::move(*committed));
                }
            } catch (const varve::CorruptionError& error) {
                readable_.breaks(error.what());
            }
        }
    }

    void fold(const std::string& stream, const std::map<Version, transactions::Committed>& slots) {
        const std::string id{varve::id_of(stream)};
        Folded& folded = accounts_[id];
        for (const auto& [version, slot] : slots) {
            if (version != folded.head + 1) {
                dense_.breaks(id + ": version " + std::to_string(folded.head + 1) + " is missing");
            }
            folded.head = version;
            try {
                for (const varve::RecordedEvent& recorded : varve::events::decode_payload(stream, version, slot)) {
                    apply(id, folded, recorded);
                }
                (void)varve::events::decode_effects(stream, version, slot);
            } catch (const varve::CorruptionError& error) {
                readable_.breaks(error.what());
            }
        }
    }

    void apply(const std::string& id, Folded& folded, const varve::RecordedEvent& recorded) {
        ++events_;
        for (const Account::Event& event : varve::EventVariant<Account::Event>::decode(recorded)) {
            std::visit([&](const auto& one) { folded.account.apply(one); }, event);
            count(event);
        }
        if (folded.account.balance < 0) {
            negative_.breaks(id + ": " + money_text(folded.account.balance) + " at version " +
                             std::to_string(recorded.version));
        }
    }

    void count(const Account::Event& event) {
        if (const auto* deposited = std::get_if<Deposited>(&event)) {
            count(deposited->cents, deposited->transfer, in_);
        } else if (const auto* withdrawn = std::get_if<Withdrawn>(&event)) {
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
                const transactions::Row row = transactions::decode_row(record.key, record.item);
                if (row.intent) {
                    pending_.breaks("the row of " + record.key.partition);
                    ++pending_count_;
                }
                if (!row.image.data) continue;
                auto balance = varve::json::decode<Balance>(*row.image.data);
                if (balance) {
                    rows_.emplace(record.key.partition, std::move(*balance));
                } else {
                    readable_.breaks(store::to_string(record.key) + ": " + balance.error().message);
                }
            } catch (const varve::CorruptionError& error) {
                readable_.breaks(error.what());
            }
        }
    }

    void compare_rows() {
        for (const auto& [id, folded] : accounts_) {
            const Balance expected{.owner = folded.account.owner,
                                   .cents = folded.account.balance,
                                   .frozen = folded.account.frozen,
                                   .version = folded.head};
            const auto row = rows_.find(id);
            if (row == rows_.end()) {
                rows_as_folded_.breaks(id + ": has no row");
            } else if (row->second.cents != expected.cents) {
                rows_as_folded_.breaks(id + ": the row says " + money_text(row->second.cents) + ", the events " +
                                       money_text(expected.cents));
            } else if (row->second != expected) {
                rows_as_folded_.breaks(id + ": the row says " + varve::json::encode(row->second) + ", the events " +
                                       varve::json::encode(expected));
            }
        }
        for (const auto& [id, row] : rows_) {
            if (!accounts_.contains(id)) rows_as_folded_.breaks(id + ": has a row but no events");
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
        audit.rules.push_back(std::move(readable_).found("all stored items"));
        audit.rules.push_back(std::move(pending_).found(plural(pending_count_, "unsettled claim", "unsettled claims")));
        return audit;
    }

    varve::Application& bank_;
    store::ItemStore& store_;
    std::map<std::string, std::map<Version, transactions::Committed>> streams_;
    std::map<std::string, Folded> accounts_;
    std::map<std::string, Balance> rows_;
    std::map<std::string, Legs> transfers_;
    std::size_t events_ = 0;
    std::size_t pending_count_ = 0;
    std::size_t snapshot_count_ = 0;
    Cents in_ = 0;   // from outside
    Cents out_ = 0;  // to outside: negative
    RuleBuilder negative_{"no balance below zero"};
    RuleBuilder dense_{"versions without holes"};
    RuleBuilder rows_as_folded_{"balances as the events say"};
    RuleBuilder snapshots_as_folded_{"snapshots as the events say"};
    RuleBuilder readable_{"everything readable"};
    RuleBuilder pending_{"nothing left pending"};
};

}  // namespace

bool Audit::holds() const {
    return std::ranges::all_of(rules, &Rule::holds);
}

Audit audit(varve::Application& bank, varve::Duration patience) {
    bank.rows<Balance>();  // its table must be there to be read
    bool settled = false;
    try {
        settled = settle(bank, patience);
    } catch (const varve::CorruptionError&) {
        settled = true;  // the audit itself finds it, and names it
    }
    return Auditor{bank}.run(settled);
}

}  // namespace bank
