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

/// That item stays then, and the others go on.
bool concerns_one_item(const Error& error) {
    return error.kind() == ErrorKind::corruption || error.kind() == ErrorKind::invalid;
}

}  // namespace

bool Sweeper::Source::needs_a_look(const store::Record& record) try {
    return claim_on(record.key, record.item) || unfinished_commit(record.key, record.item);
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
    for (std::size_t i = 0; i < commits.size(); ++i) {
        for (store::Key& key : c_.resolver().participants(commits[i].commit)) {
            participants.push_back(std::move(key));
            commit_of.push_back(i);
        }
    }
    if (participants.empty()) return;
    const std::vector<std::optional<store::Item>> items = c_.store().read(participants);
    std::vector<store::Write> writes;
    std::vector<std::size_t> written_for;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const Committed& commit = commits[commit_of[i]].commit;
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
