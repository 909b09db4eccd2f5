#include "sweeper_source.h"

#include <varve/core/error.h>

#include <algorithm>

namespace varve::transactions {

Sweeper::Sweeper(Coordinator& coordinator, std::vector<std::string> row_tables, const ScanOptions& scan) {
    row_tables.insert(row_tables.begin(), events_table().name);
    if (coordinator.store().capabilities().ordered_changes) {
        source_ = std::make_unique<Changes>(coordinator, std::move(row_tables));
    } else {
        source_ = std::make_unique<Scans>(coordinator, std::move(row_tables), scan);
    }
}

Sweeper::~Sweeper() = default;

std::size_t Sweeper::sweep() {
    return source_->sweep();
}

bool Sweeper::is_through() const {
    return source_->is_through();
}

namespace {

/// A commit that has rows and no done mark: these may not be in place yet.
std::optional<Committed> unfinished_commit(const store::Key& key, const store::Item& item) {
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

/// Whether participant `index` is a slot that was reserved in vain: it becomes void, and then anybody's.
bool may_be_anybodys(const store::Key& primary, const Committed& commit, std::size_t index) {
    const std::string prefix = copied_attribute(index, "");
    const auto copied = commit.payload.lower_bound(prefix);
    return primary.partition == transaction_stream(commit.write_id) &&
           (copied == commit.payload.end() || !copied->first.starts_with(prefix));
}

/// A participating slot is the commit's own for ever, from before it committed: what is not was changed from outside.
/// The images of a row come and go.
void check_is_own(const store::Key& slot, const std::optional<store::Item>& item, const Committed& commit) {
    const Slot found = decode_slot(slot, item);
    std::string what = " is gone";
    if (const auto* pending = std::get_if<Pending>(&found)) {
        if (pending->claim.tx == commit.write_id) return;
        what = " is claimed by " + pending->claim.tx;
    } else if (const auto* committed = std::get_if<Committed>(&found)) {
        if (committed->write_id == commit.write_id) return;
        what = " holds what " + committed->write_id + " wrote";
    } else if (item) {
        what = " was emptied";
    }
    throw CorruptionError("transaction " + commit.write_id + " has committed, but its slot " + store::to_string(slot) +
                          what +
                          ": it was changed from outside before it was finalised. It is left as it is, and the "
                          "transaction without its done mark; restore the slot from a backup");
}

/// That item stays then, and the others go on.
bool concerns_one_item(const Error& error) {
    return error.kind() == ErrorKind::corruption || error.kind() == ErrorKind::invalid;
}

}  // namespace

bool Sweeper::Source::needs_a_look(const store::Record& record) try {
    const std::optional<Claim> claim = claim_on(record.key, record.item);
    if (claim) c_.resolver().lease_is_over(*claim);  // from now on it is known to stand there
    return claim || unfinished_commit(record.key, record.item);
} catch (const CorruptionError&) {
    return true;
}

std::set<store::Key> Sweeper::Source::settle(const std::set<store::Key>& keys) {
    std::set<store::Key> settled;
    std::vector<store::Key> some;
    for (auto key = keys.begin(); key != keys.end();) {
        some.push_back(*key++);
        if (some.size() < page_size && key != keys.end()) continue;
        settle_some(some, settled);
        some.clear();
    }
    return settled;
}

void Sweeper::Source::settle_some(std::span<const store::Key> keys, std::set<store::Key>& settled) {
    const std::vector<std::optional<store::Item>> items = c_.store().read(keys);
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
        if (participants < page_size) continue;
        finish(unfinished, settled);
        unfinished.clear();
        participants = 0;
    }
    settle_claims(claimed);
    finish(unfinished, settled);
}

void Sweeper::Source::settle_claims(std::span<const Resolver::Claimed> claimed) try {
    for (const Verdict verdict : c_.resolver().settle(claimed, nullptr)) {
        if (verdict != Verdict::undecided) ++c_.metrics().swept;
    }
} catch (const Error& error) {
    if (!concerns_one_item(error)) throw;
    if (claimed.size() == 1) return report(error);
    for (std::size_t i = 0; i < claimed.size(); ++i) settle_claims(claimed.subspan(i, 1));
}

void Sweeper::Source::finish(std::span<const Unfinished> commits, std::set<store::Key>& settled) try {
    std::vector<store::Key> participants;
    std::vector<std::size_t> commit_of;
    std::vector<bool> stays_own;  // of each participant
    for (std::size_t i = 0; i < commits.size(); ++i) {
        std::vector<store::Key> keys = c_.resolver().participants(commits[i].commit);
        for (std::size_t k = 0; k < keys.size(); ++k) {
            stays_own.push_back(keys[k].table == events_table().name &&
                                !may_be_anybodys(commits[i].primary, commits[i].commit, k));
            participants.push_back(std::move(keys[k]));
            commit_of.push_back(i);
        }
    }
    if (participants.empty()) return;
    const std::vector<std::optional<store::Item>> items = c_.store().read(participants);
    std::vector<store::Write> writes;
    std::vector<std::size_t> written_for;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const Committed& commit = commits[commit_of[i]].commit;
        if (stays_own[i]) check_is_own(participants[i], items[i], commit);
        const std::optional<Claim> claim = items[i] ? claim_on(participants[i], *items[i]) : std::nullopt;
        if (!claim || claim->tx != commit.write_id) continue;
        writes.push_back(c_.resolver().finalise(participants[i], *items[i], commit));
        written_for.push_back(commit_of[i]);
    }
    std::vector<bool> in_place(commits.size(), true);
    if (!writes.empty()) {
        const std::vector<store::WriteAnswer> answers = c_.store().write(writes);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            if (std::holds_alternative<Failure>(answers[i])) in_place[written_for[i]] = false;
            if (std::holds_alternative<store::Applied>(answers[i])) ++c_.metrics().finalised_for_others;
        }
    }
    std::vector<store::Write> marks;
    for (std::size_t i = 0; i < commits.size(); ++i) {
        if (in_place[i]) marks.push_back(mark_done(commits[i].primary, commits[i].commit.write_id));
    }
    if (marks.empty()) return;
    const std::vector<store::WriteAnswer> answers = c_.store().write(marks);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        if (std::holds_alternative<Failure>(answers[i])) continue;
        settled.insert(marks[i].key);
        ++c_.metrics().swept;
    }
} catch (const Error& error) {
    if (!concerns_one_item(error)) throw;
    if (commits.size() == 1) return report(error);
    for (std::size_t i = 0; i < commits.size(); ++i) finish(commits.subspan(i, 1), settled);
}

void Sweeper::Source::report(const Error& error) {
    c_.runtime().log.write(LogLevel::error, std::string{"the sweeper cannot settle an item: "} + error.what());
}

std::optional<Image> Sweeper::Source::tombstone(const store::Record& record) try {
    Image image = decode_row(record.key, record.item).image;
    if (!image.expires) return std::nullopt;
    return image;
} catch (const CorruptionError& error) {  // the others go on
    c_.runtime().log.write(LogLevel::error, std::string{"the sweeper cannot read a row: "} + error.what());
    return std::nullopt;
}

bool Sweeper::Source::is_over(const Image& tombstone) const {
    const auto now = std::chrono::floor<std::chrono::seconds>(c_.runtime().clock.now());
    return *tombstone.expires <= now.time_since_epoch().count();
}

bool Sweeper::Source::write(std::span<const store::Write> writes) {
    if (writes.empty()) return true;
    return std::ranges::none_of(c_.store().write(writes), [](const store::WriteAnswer& answer) {
        return std::holds_alternative<Failure>(answer);
    });
}

}  // namespace varve::transactions
