#include "commands/application_parts.h"
#include "transactions/handle.h"
#include "transactions/system_table.h"

#include <varve/operations/transactions.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace varve::operations {

using namespace transactions;

namespace {

constexpr std::size_t page_limit = 500;
constexpr std::size_t claims_max = 1000;

struct Met {
    Claim claim;
    std::vector<store::Key> keys;
};

/// Goes through what may have a claim.
class Claims {
  public:
    Claims(detail::ApplicationParts& parts, std::size_t transactions_max)
        : store_(parts.coordinator.store()), transactions_max_(transactions_max) {}

    void read(const std::string& table) {
        if (store_.capabilities().ordered_changes) {
            read_changes(table);
        } else {
            scan(table);
        }
    }
    std::map<std::string, Met> take() && { return std::move(met_); }

  private:
    void read_changes(const std::string& table) {
        const store::Key settled = checkpoint_key("sweeper", table);
        const std::optional<store::Item> item = store_.read({&settled, 1}).front();
        const std::int64_t* const position = item ? store::integer(*item, "position") : nullptr;
        for (store::Position at = position == nullptr ? 0 : static_cast<store::Position>(*position);;) {
            const std::vector<store::Change> changes = store_.changes(table, at, page_limit);
            if (changes.empty()) return;
            for (const store::Change& change : changes) look_at(change.record);
            at = changes.back().position;
        }
    }
    void scan(const std::string& table) {
        store::Scan scan{.table = table, .limit = page_limit};
        do {
            store::Page page = store_.scan(scan);
            for (const store::Record& record : page.records) look_at(record);
            scan.next = std::move(page.next);
        } while (scan.next);
    }
    void look_at(const store::Record& record) {
        const std::optional<Claim> claim = claim_on(record.key, record.item);
        if (!claim) return;
        auto found = met_.find(claim->tx);
        if (found == met_.end()) {
            if (met_.size() == transactions_max_) return;
            found = met_.emplace(claim->tx, Met{*claim, {}}).first;
        }
        if (found->second.keys.size() < claims_max) found->second.keys.push_back(record.key);
    }

    store::ItemStore& store_;
    const std::size_t transactions_max_;
    std::map<std::string, Met> met_;  // by the transaction's id
};

}  // namespace

std::vector<OpenTransaction> open_transactions(Application& application, std::size_t transactions_max) {
    detail::ApplicationParts& parts = detail::parts_of(application);
    Claims claims{parts, transactions_max};
    claims.read(events_table().name);
    for (const std::string& table : parts.row_tables.names_in_store()) claims.read(table);
    std::vector<OpenTransaction> open;
    for (auto& [id, met] : std::move(claims).take()) {
        open.push_back({.id = id,
                        .verdict = parts.coordinator.resolver().look(met.claim).verdict,
                        .primary = met.claim.primary,
                        .since = met.claim.priority,
                        .lease = met.claim.lease,
                        .handle = handle_of(met.claim),
                        .claims = std::move(met.keys)});
    }
    std::ranges::sort(open, {}, [](const OpenTransaction& one) { return std::pair{one.since, one.id}; });
    return open;
}

Verdict settle(Application& application, const OpenTransaction& transaction) {
    const Verdict verdict = application.resolve(transaction.handle);
    if (verdict == Verdict::undecided) return verdict;
    Coordinator& coordinator = detail::parts_of(application).coordinator;
    const std::vector<std::optional<store::Item>> items = coordinator.store().read(transaction.claims);
    std::vector<Resolver::Claimed> left;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (!items[i]) continue;
        const std::optional<Claim> claim = claim_on(transaction.claims[i], *items[i]);
        if (claim && claim->tx == transaction.id) left.push_back({transaction.claims[i], *items[i]});
    }
    if (!left.empty()) (void)coordinator.resolver().settle(left);
    return verdict;
}

std::vector<SettledTransaction> settle_dead(Application& application, Duration patience) {
    constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
    const std::vector<OpenTransaction> before = open_transactions(application, all);
    if (before.empty()) return {};
    application.settle(patience);
    std::set<std::string> open;
    for (const OpenTransaction& one : open_transactions(application, all)) open.insert(one.id);
    std::vector<SettledTransaction> settled;
    Resolver& resolver = detail::parts_of(application).coordinator.resolver();
    for (const OpenTransaction& one : before) {
        if (!open.contains(one.id)) settled.push_back({one.id, resolver.look(claim_of(one.handle)).verdict});
    }
    return settled;
}

}  // namespace varve::operations
