#include "transactions/reader.h"

#include "core/planted_faults.h"

#include <varve/core/error.h>

#include <algorithm>
#include <map>
#include <utility>

namespace varve::transactions {
namespace {

/// Reads that have to agree with each other are repeated at most so often before a store under constant change is given
/// up.
constexpr RetryPolicy snapshot_policy{.first_delay = std::chrono::milliseconds{1},
                                      .delay_max = std::chrono::milliseconds{20},
                                      .attempts_max = 200,
                                      .time_max = std::chrono::seconds{10}};

[[noreturn]] void throw_never_still(const std::string& message, const store::Key& changed, const Backoff& backoff) {
    ConflictDetails details = lost_at(changed);
    details.attempts = backoff.attempts();
    details.met = store::to_string(changed) + " has changed between two reads";
    throw ConflictError(message, std::move(details));
}

/// Puts a stream together, slot after slot.
class Assembly {
  public:
    Assembly(Resolver& resolver, Version first) : resolver_(resolver) { read.head = first - 1; }

    /// False: this is not the slot that follows, so what was taken so far has been overtaken.
    bool take(store::Record record) {
        auto& [key, item] = record;
        if (ended_ || version_of(key) != read.head + 1) return false;
        const bool claimed = claim_on(key, item).has_value();
        Slot slot = decode_slot(key, claimed ? item : std::move(item));
        ended_ = !std::holds_alternative<Committed>(slot);
        if (auto* committed = std::get_if<Committed>(&slot)) {
            read.slots.push_back({++read.head, std::move(*committed)});
        } else if (const auto* pending = std::get_if<Pending>(&slot)) {
            const Resolver::Resolution resolution = resolver_.look(pending->claim);
            std::optional<store::Item> payload;
            if (resolution.verdict == Verdict::committed) {
                payload = resolver_.payload(key, *pending, std::get<Committed>(resolution.primary));
            }
            if (payload) {
                read.slots.push_back({++read.head, {.write_id = pending->claim.tx, .payload = std::move(*payload)}});
                read.unfinalised = true;
            } else {
                read.blocking = std::move(record);
            }
        } else {
            read.next = free_slot(key, slot);
        }
        return true;
    }

    /// The slot that must have been finalised since, if another one follows it.
    Version overtaken() const { return read.slots.empty() || !read.unfinalised ? read.head + 1 : read.head; }

    void drop_what_was_overtaken() {
        if (read.unfinalised) {
            read.slots.pop_back();
            --read.head;
        }
        read.unfinalised = false;
        read.blocking.reset();
        read.next = {};
        ended_ = false;
    }

    StreamRead read;

  private:
    Resolver& resolver_;
    bool ended_ = false;  // a slot that is not committed was taken: none can follow
};

}  // namespace

StreamRead Reader::stream(const std::string& stream, Version first, Version last, std::optional<store::Page> read) {
    Assembly assembly{resolver_, first};
    store::Query query{.table = events_table().name, .partition = stream, .first = first, .last = last};
    for (;;) {
        store::Page page = read ? *std::exchange(read, std::nullopt) : store_.query(query);
        const bool whole =
            std::ranges::all_of(page.records, [&](store::Record& record) { return assembly.take(std::move(record)); });
        if (whole && !page.next) return std::move(assembly.read);
        query.next = std::move(page.next);
        if (whole) continue;
        // A page need not be of one moment: it may show slot n as it was before slot n + 1 was written, and slot n + 1
        // too. Then slot n has been finalised since; if it has not, the stream is damaged.
        const Version version = assembly.overtaken();
        const store::Key key = slot_key(stream, version);
        if (!std::holds_alternative<Committed>(decode_slot(key, store_.read({&key, 1}).front()))) {
            throw CorruptionError("the stream '" + stream + "' has a hole: version " + std::to_string(version) +
                                  " is not committed, but there is one after it");
        }
        assembly.drop_what_was_overtaken();
        query.first = assembly.read.head + 1;
        query.next.reset();
    }
}

StreamRead Reader::head(const std::string& stream) {
    store::Query query{
        .table = events_table().name, .partition = stream, .first = Version{1}, .descending = true, .limit = 2};
    for (;;) {
        store::Page page = store_.query(query);
        if (!page.records.empty()) {
            // The newest slot may not be committed: then the head is the one before.
            const Version newest = version_of(page.records.front().key);
            Assembly assembly{resolver_, version_of(page.records.back().key)};
            std::ranges::reverse(page.records);
            const bool whole = std::ranges::all_of(
                page.records, [&](store::Record& record) { return assembly.take(std::move(record)); });
            const bool known = !assembly.read.slots.empty() || newest == 1;
            if (whole && known) return std::move(assembly.read);
            return this->stream(stream, std::max<Version>(newest - 1, 1));
        }
        if (!page.next) return {};
        query.next = std::move(page.next);
    }
}

std::vector<Image> Reader::images(std::span<const store::Key> keys, std::vector<std::optional<store::Item>> items,
                                  Isolation isolation) {
    std::vector<Image> images;
    std::map<store::Key, std::vector<std::pair<std::size_t, Intent>>> intents;  // by their transactions' primaries
    for (std::size_t i = 0; i < keys.size(); ++i) {
        Row row = decode_row(keys[i], items[i]);
        images.push_back(std::move(row.image));
        if (!row.intent || row.intent->reserved) continue;  // what is only held stays as it is, however that ends
        if (isolation == Isolation::uncommitted) {
            images.back() = after_image(*row.intent, resolver_.tombstone_expiry());
        } else {
            intents[row.intent->claim.primary].emplace_back(i, std::move(*row.intent));
        }
    }
    if (intents.empty()) return images;

    std::vector<store::Key> primaries;
    for (const auto& [primary, claimed] : intents) primaries.push_back(primary);
    std::vector<std::optional<store::Item>> found = store_.read(primaries);
    for (std::size_t i = 0; i < primaries.size(); ++i) {
        const Slot slot = decode_slot(primaries[i], std::move(found[i]));
        for (const auto& [index, intent] : intents[primaries[i]]) {
            const Verdict verdict = judge(intent.claim, slot);
            if (planted(PlantedFault::a_reader_ignores_committed_intents)) continue;
            if (verdict == Verdict::committed ||
                (planted(PlantedFault::a_dirty_reader) && verdict == Verdict::undecided)) {
                Image after = after_image(intent, resolver_.tombstone_expiry());
                if (planted(PlantedFault::a_snapshot_compares_the_raw_revisions)) after.rev = images[index].rev;
                images[index] = std::move(after);
            }
        }
    }
    return images;
}

std::vector<Image> Reader::rows(std::span<const store::Key> keys, Isolation isolation) {
    const auto once = [&] { return images(keys, store_.read(keys), isolation); };
    std::vector<Image> read = once();
    if (isolation != Isolation::snapshot || keys.size() < 2 || planted(PlantedFault::a_snapshot_of_one_round))
        return read;
    for (Backoff backoff{snapshot_policy, runtime_};;) {
        std::vector<Image> again = once();
        const auto [moved, now] = std::mismatch(read.begin(), read.end(), again.begin(),
                                                [](const Image& a, const Image& b) { return a.rev == b.rev; });
        if (moved == read.end()) return again;
        const auto changed = static_cast<std::size_t>(moved - read.begin());
        read = std::move(again);
        if (!backoff.next_without_delay()) {
            throw_never_still("no moment could be found at which all " + std::to_string(keys.size()) +
                                  " rows, of them " + store::to_string(keys[changed]) +
                                  ", held still; read fewer at a time, or inside a transaction",
                              keys[changed], backoff);
        }
    }
}

store::Query up_to(store::Query query, const std::optional<store::SortKey>& stopped_at) {
    if (stopped_at) (query.descending ? query.first : query.last) = *stopped_at;
    return query;
}

Reader::Raw Reader::raw(store::Query query, std::size_t limit, Tombstones tombstones) {
    Raw read;
    const std::size_t page_max = query.limit;
    query.limit = std::min(limit, page_max);
    for (std::size_t there = 0;;) {
        store::Page page = store_.query(query);
        for (std::size_t i = 0; i < page.records.size(); ++i) {
            store::Record& record = page.records[i];
            if (is_tombstone(record.item)) {
                if (tombstones == Tombstones::kept) read.records.push_back(std::move(record));
                continue;
            }
            read.records.push_back(std::move(record));
            if (++there < limit || (i + 1 == page.records.size() && !page.next)) continue;
            read.stopped_at = read.records.back().key.sort;
            return read;
        }
        if (!page.next) return read;
        query.next = std::move(page.next);
        query.limit = page_max;
    }
}

std::vector<Reader::FoundRow> Reader::found(std::vector<store::Record> records, Isolation isolation) {
    std::vector<store::Key> keys;
    std::vector<std::optional<store::Item>> items;
    for (store::Record& record : records) {
        keys.push_back(std::move(record.key));
        items.emplace_back(std::move(record.item));
    }
    std::vector<FoundRow> rows;
    std::vector<Image> read = images(keys, std::move(items), isolation);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (read[i].rev) rows.push_back({std::move(keys[i]), std::move(read[i])});
    }
    return rows;
}

Reader::FoundRange Reader::range(const store::Query& whole, Isolation isolation, std::size_t limit) {
    // Of two reads that are compared, tombstones too must be the same.
    Raw first = raw(whole, limit, isolation == Isolation::snapshot ? Tombstones::kept : Tombstones::dropped);
    FoundRange read{found(std::move(first.records), isolation), std::move(first.stopped_at)};
    if (isolation != Isolation::snapshot) return read;
    const store::Query query = up_to(whole, read.stopped_at);
    for (Backoff backoff{snapshot_policy, runtime_};;) {
        std::vector<FoundRow> again = found(raw(query).records, isolation);
        const auto [before, now] =
            std::mismatch(read.rows.begin(), read.rows.end(), again.begin(), again.end(),
                          [](const auto& a, const auto& b) { return a.key == b.key && a.image.rev == b.image.rev; });
        if (before == read.rows.end() && now == again.end()) return read;
        const store::Key changed = now == again.end() ? before->key : now->key;
        read.rows = std::move(again);
        if (!backoff.next_without_delay()) {
            throw_never_still("no moment could be found at which the rows of " + query.table + "/" + query.partition +
                                  ", of them " + store::to_string(changed) +
                                  ", held still; read a smaller range, or inside a transaction",
                              changed, backoff);
        }
    }
}

Reader::Scanned Reader::scan(const std::string& table, Isolation isolation, std::size_t limit,
                             std::optional<std::string> next) {
    Scanned read;
    store::Scan scan{.table = table, .next = std::move(next)};
    const std::size_t page_max = scan.limit;
    for (std::size_t there = 0; there < limit;) {
        scan.limit = std::min(limit - there, page_max);
        store::Page page = store_.scan(scan);
        for (FoundRow& row : found(std::move(page.records), isolation)) {
            if (!row.image.data) continue;
            ++there;
            read.rows.push_back(std::move(row));
        }
        read.next = scan.next = std::move(page.next);
        if (!read.next) break;
    }
    return read;
}

}  // namespace varve::transactions
