#include "mutants.h"

#include <varve/core/error.h>
#include <varve/transactions/reader.h>

#include <algorithm>
#include <map>

namespace varve::transactions {
namespace {

/// Reads that have to agree with each other are repeated at most so often before a store under constant change is given
/// up.
constexpr RetryPolicy snapshot_policy{.first_delay = std::chrono::milliseconds{1},
                                      .delay_max = std::chrono::milliseconds{20},
                                      .attempts_max = 200,
                                      .time_max = std::chrono::seconds{10}};

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
            read.next = std::get<Free>(slot);
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

StreamRead Reader::stream(const std::string& stream, Version first, Version last) {
    Assembly assembly{resolver_, first};
    store::Query query{.table = events_table().name, .partition = stream, .first = first, .last = last};
    for (;;) {
        store::Page page = store_.query(query);
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
            if (VARVE_MUTANT("a reader ignores committed intents")) continue;
            if (verdict == Verdict::committed || (VARVE_MUTANT("a dirty reader") && verdict == Verdict::undecided)) {
                Image after = after_image(intent, resolver_.tombstone_expiry());
                if (VARVE_MUTANT("a snapshot compares the raw revisions")) after.rev = images[index].rev;
                images[index] = std::move(after);
            }
        }
    }
    return images;
}

std::vector<Image> Reader::rows(std::span<const store::Key> keys, Isolation isolation) {
    const auto once = [&] { return images(keys, store_.read(keys), isolation); };
    std::vector<Image> read = once();
    if (isolation != Isolation::snapshot || keys.size() < 2 || VARVE_MUTANT("a snapshot of one round")) return read;
    for (Backoff backoff{snapshot_policy, runtime_};;) {
        std::vector<Image> again = once();
        const bool same = std::equal(read.begin(), read.end(), again.begin(),
                                     [](const Image& a, const Image& b) { return a.rev == b.rev; });
        if (same) return again;
        read = std::move(again);
        if (!backoff.next_at_once()) {
            throw ConflictError("no moment could be found at which all " + std::to_string(keys.size()) +
                                " rows, of them " + store::to_string(keys.front()) +
                                ", held still; read fewer at a time, or inside a transaction");
        }
    }
}

std::vector<store::Record> Reader::raw(store::Query query) {
    std::vector<store::Record> records;
    do {
        store::Page page = store_.query(query);
        std::move(page.records.begin(), page.records.end(), std::back_inserter(records));
        query.next = std::move(page.next);
    } while (query.next);
    return records;
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

std::vector<Reader::FoundRow> Reader::range(const store::Query& query, Isolation isolation) {
    std::vector<FoundRow> read = found(raw(query), isolation);
    if (isolation != Isolation::snapshot) return read;
    for (Backoff backoff{snapshot_policy, runtime_};;) {
        std::vector<FoundRow> again = found(raw(query), isolation);
        const bool same =
            std::equal(read.begin(), read.end(), again.begin(), again.end(),
                       [](const auto& a, const auto& b) { return a.key == b.key && a.image.rev == b.image.rev; });
        if (same) return again;
        read = std::move(again);
        if (!backoff.next_at_once()) {
            throw ConflictError("no moment could be found at which the rows of " + query.table + "/" + query.partition +
                                " held still; read a smaller range, or inside a transaction");
        }
    }
}

std::vector<Reader::FoundRow> Reader::scan(const std::string& table, Isolation isolation) {
    std::vector<FoundRow> rows;
    store::Scan scan{.table = table};
    do {
        store::Page page = store_.scan(scan);
        std::vector<FoundRow> some = found(std::move(page.records), isolation);
        std::move(some.begin(), some.end(), std::back_inserter(rows));
        scan.next = std::move(page.next);
    } while (scan.next);
    return rows;
}

}  // namespace varve::transactions
