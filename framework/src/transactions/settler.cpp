#include "transactions/settler.h"

#include "transactions/in_place.h"
#include "transactions/in_turn.h"

#include <varve/core/error.h>

#include <algorithm>

namespace varve::transactions {
namespace {

// At most so much is settled together.
constexpr std::size_t keys_max = 500;
constexpr std::size_t keys_bytes_max = std::size_t{8} << 20;
constexpr std::size_t participants_max = 500;

/// Whether participant `index` is a slot that was reserved in vain: it becomes void, and then anybody's.
bool may_be_anybodys(const store::Key& primary, const Committed& commit, std::size_t index) {
    const std::string prefix = copied_attribute(index, "");
    const auto copied = commit.payload.lower_bound(prefix);
    return primary.partition == transaction_stream(commit.write_id) &&
           (copied == commit.payload.end() || !copied->first.starts_with(prefix));
}

/// That item stays then, and the others go on.
bool concerns_one_item(const Error& error) {
    return error.kind() == ErrorKind::corruption || error.kind() == ErrorKind::invalid;
}

}  // namespace

std::size_t settle_each(Resolver& resolver, std::span<const Resolver::Claimed> claimed,
                        const std::function<void(const Error&)>& report) try {
    if (claimed.empty()) return 0;
    return claimed.size() - static_cast<std::size_t>(std::ranges::count(resolver.settle(claimed), Verdict::undecided));
} catch (const Error& error) {
    if (!concerns_one_item(error)) throw;
    std::size_t settled = 0;
    if (claimed.size() == 1) {
        report(error);
    } else {
        for (std::size_t i = 0; i < claimed.size(); ++i)
            settled += settle_each(resolver, claimed.subspan(i, 1), report);
    }
    return settled;
}

/// One that has rows and no done mark: these rows may not be in place yet.
std::optional<Committed> Settler::unfinished_commit(const store::Key& key, const store::Item& item) {
    if (key.table != events_table().name) return std::nullopt;
    Slot slot = decode_slot(key, item);
    auto* committed = std::get_if<Committed>(&slot);
    if (committed == nullptr || committed->done) return std::nullopt;
    const bool has_rows =
        committed->continued > 0 || std::ranges::any_of(committed->participants, [](const store::Key& participant) {
            return participant.table != events_table().name;
        });
    return has_rows ? std::optional{std::move(*committed)} : std::nullopt;
}

std::optional<Duration> Settler::look_after(const store::Record& record) try {
    if (const std::optional<Claim> claim = claim_on(record.key, record.item)) {
        coordinator_.resolver().lease_is_over(record.key, *claim);  // from now on it is known to stand there
        return coordinator_.options().lease;
    }
    if (!unfinished_commit(record.key, record.item)) return std::nullopt;
    // What is in place tells that, as a mark would.
    return coordinator_.marks_done() ? coordinator_.options().lease : Duration::zero();
} catch (const CorruptionError&) {
    return coordinator_.options().lease;
}

std::set<store::Key> Settler::settle(const std::map<store::Key, std::size_t>& keys) {
    std::set<store::Key> settled;
    std::vector<store::Key> some;
    std::size_t bytes = 0;
    for (auto met = keys.begin(); met != keys.end();) {
        some.push_back(met->first);
        bytes += met->second;
        if (++met != keys.end() && some.size() < keys_max && bytes + met->second <= keys_bytes_max) continue;
        settle_some(some, settled);
        some.clear();
        bytes = 0;
    }
    return settled;
}

void Settler::settle_some(std::span<const store::Key> keys, std::set<store::Key>& settled) {
    const std::vector<std::optional<store::Item>> items = coordinator_.store().read(keys);
    std::vector<Resolver::Claimed> claimed;
    std::vector<Unfinished> unfinished;
    std::size_t participants = 0;  // of these
    for (std::size_t i = 0; i < keys.size(); ++i) {
        try {
            if (!items[i]) {
                settled.insert(keys[i]);
            } else if (claim_on(keys[i], *items[i])) {
                claimed.push_back({keys[i], *items[i]});  // until the next pass has seen it without a claim
            } else if (std::optional<Committed> commit = unfinished_commit(keys[i], *items[i])) {
                participants += commit->participants.size();
                unfinished.push_back({keys[i], std::move(*commit)});
            } else {
                settled.insert(keys[i]);
            }
        } catch (const CorruptionError& error) {
            report(error);
        }
        if (participants < participants_max) continue;
        finish(unfinished, settled);
        unfinished.clear();
        participants = 0;
    }
    settle_claims(claimed);
    finish(unfinished, settled);
}

void Settler::settle_claims(std::span<const Resolver::Claimed> claimed) {
    coordinator_.metrics().swept +=
        settle_each(coordinator_.resolver(), claimed, [&](const Error& error) { report(error); });
}

void Settler::finish(std::span<const Unfinished> commits, std::set<store::Key>& settled) try {
    std::vector<store::Key> participants;
    std::vector<std::size_t> commit_of;
    std::vector<bool> stays_own;  // of each participant
    for (std::size_t i = 0; i < commits.size(); ++i) {
        std::vector<store::Key> keys = coordinator_.resolver().participants(commits[i].commit);
        for (std::size_t k = 0; k < keys.size(); ++k) {
            stays_own.push_back(keys[k].table == events_table().name &&
                                !may_be_anybodys(commits[i].primary, commits[i].commit, k));
            participants.push_back(std::move(keys[k]));
            commit_of.push_back(i);
        }
    }
    if (participants.empty()) return;
    std::vector<bool> in_place(commits.size(), true);
    const auto told = [&](std::size_t commit, const store::Write& write, const store::WriteAnswer& answer) {
        if (!is_in_place(commits[commit].commit.write_id, write, answer)) in_place[commit] = false;
        if (std::holds_alternative<store::Applied>(answer)) ++coordinator_.metrics().finalised_for_others;
    };
    WritesInTurn<std::size_t> writes;
    read_in_turn(coordinator_.store(), participants, [&](std::size_t i, const std::optional<store::Item>& item) {
        const Committed& commit = commits[commit_of[i]].commit;
        if (stays_own[i]) check_is_own(participants[i], item, commit.write_id);
        if (participants[i].table != events_table().name) {
            check_is_there(participants[i], item, commit.write_id, coordinator_.runtime().clock.get().now(),
                           coordinator_.options().retention);
        }
        const std::optional<Claim> claim = item ? claim_on(participants[i], *item) : std::nullopt;
        if (!claim || claim->tx != commit.write_id) return;
        if (!coordinator_.marks_done()) {
            in_place[commit_of[i]] = false;  // its claim is met in the changes of its own table
            return;
        }
        writes.add(coordinator_.resolver().finalise(participants[i], *item, commit), commit_of[i]);
        if (writes.are_many()) writes.send(coordinator_.store(), told);
    });
    writes.send(coordinator_.store(), told);
    std::vector<store::Write> marks;
    for (std::size_t i = 0; i < commits.size(); ++i) {
        if (!in_place[i]) continue;
        if (coordinator_.marks_done()) {
            marks.push_back(mark_done(commits[i].primary, commits[i].commit.write_id));
        } else {
            settled.insert(commits[i].primary);
        }
    }
    if (marks.empty()) return;
    const std::vector<store::WriteAnswer> answers = coordinator_.store().write(marks);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        if (std::holds_alternative<Failure>(answers[i])) continue;
        settled.insert(marks[i].key);
        ++coordinator_.metrics().swept;
    }
} catch (const Error& error) {
    if (!concerns_one_item(error)) throw;
    if (commits.size() == 1) return report(error);
    for (std::size_t i = 0; i < commits.size(); ++i) finish(commits.subspan(i, 1), settled);
}

void Settler::report(const Error& error) {
    coordinator_.runtime().log.get().write(LogLevel::error,
                                           std::string{"the sweeper cannot settle an item: "} + error.what());
}

}  // namespace varve::transactions
