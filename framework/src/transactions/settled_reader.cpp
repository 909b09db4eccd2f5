#include "transactions/settled_reader.h"

#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/read_patiently.h"
#include "transactions/reservation.h"

#include <varve/core/error.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace varve::transactions {

SettledReader::SettledReader(Coordinator& coordinator, const std::string& tx, Time since, SteadyTime until,
                             Reservation* reservation)
    : coordinator_(coordinator),
      tx_(tx),
      patience_(coordinator.resolver(), coordinator.metrics(), {since, tx}),
      until_(until),
      reservation_(reservation) {}

StreamRead SettledReader::settled(const std::string& stream, auto read_once) {
    for (;;) {
        StreamRead read = read_patiently(coordinator_, until_, read_once);
        if (read.unfinalised && !planted(PlantedFault::to_build_on_what_is_not_finalised)) {
            const store::Key key = slot_key(stream, read.head);
            const std::optional<store::Item> item = read_patiently(coordinator_, until_, [&] {
                                                        return coordinator_.store().read({&key, 1});
                                                    }).front();
            if (item && claim_on(key, *item)) settle(key, *item);
        } else if (read.blocking && claim_there(read.blocking->key, read.blocking->item).tx == tx_) {
            const store::Key& key = read.blocking->key;
            read.next = Free{pending_slot(key, decode_slot(key, std::move(read.blocking->item))).epoch};
            read.blocking.reset();
            read.mine = true;
            return read;
        } else if (read.blocking) {
            settle(read.blocking->key, read.blocking->item);
        } else {
            VARVE_ASSERT(!read.unfinalised, "nobody builds on what is not finalised");
            return read;
        }
    }
}

void SettledReader::read_ahead(Ahead ahead) {
    std::erase_if(ahead.keys, [&](const store::Key& key) { return items_ahead_.contains(key); });
    std::erase_if(ahead.streams, [&](const store::Query& query) { return pages_ahead_.contains(query.partition); });
    if (ahead.keys.size() + ahead.streams.size() < 2) return;  // then it is one round trip anyway
    const auto read = [&] { return coordinator_.store().read_together(ahead.keys, ahead.streams); };
    store::FoundTogether found = read_patiently(coordinator_, until_, read);
    // What others have left there is settled together, too; whoever is alive is waited for where it is in the way.
    if (settle_all(ahead, found)) found = read_patiently(coordinator_, until_, read);
    for (std::size_t i = 0; i < ahead.keys.size(); ++i) {
        items_ahead_.insert_or_assign(ahead.keys[i], std::move(found.items[i]));
    }
    for (std::size_t i = 0; i < ahead.streams.size(); ++i) {
        pages_ahead_.insert_or_assign(ahead.streams[i].partition,
                                      std::pair{ahead.streams[i], std::move(found.pages[i])});
    }
}

bool SettledReader::settle_all(const Ahead& ahead, const store::FoundTogether& found) {
    std::vector<Resolver::Claimed> claimed;
    for (std::size_t i = 0; i < ahead.keys.size(); ++i) {
        const std::optional<store::Item>& item = found.items[i];
        if (item && claimed_by_another(ahead.keys[i], *item)) claimed.push_back({ahead.keys[i], *item});
    }
    for (const store::Page& page : found.pages) {
        for (const auto& [key, item] : page.records) {
            if (claimed_by_another(key, item)) claimed.push_back({key, item});
        }
    }
    if (claimed.empty() || planted(PlantedFault::to_build_on_what_is_not_finalised)) return false;
    const std::vector<Verdict> verdicts = patience_.settle(claimed);
    return std::ranges::any_of(verdicts, [](Verdict verdict) { return verdict != Verdict::undecided; });
}

void SettledReader::read_again(Ahead wanted) {
    if (!std::exchange(may_be_gone_, false)) return;
    std::size_t others = 0;
    std::erase_if(items_ahead_, [&](const auto& read) {
        const auto& [key, item] = read;
        if (!item || !claimed_by_another(key, *item)) return false;
        ++others;
        if (std::ranges::find(wanted.keys, key) == wanted.keys.end()) wanted.keys.push_back(key);
        return true;
    });
    std::erase_if(pages_ahead_, [&](const auto& read) {
        const auto& [query, page] = read.second;
        if (std::ranges::none_of(page.records,
                                 [&](const auto& one) { return claimed_by_another(one.key, one.item); })) {
            return false;
        }
        ++others;
        const std::string& stream = query.partition;
        if (std::ranges::find(wanted.streams, stream, &store::Query::partition) == wanted.streams.end())
            wanted.streams.push_back(query);
        return true;
    });
    if (others > 0) read_ahead(std::move(wanted));
}

std::vector<std::optional<store::Item>> SettledReader::items(std::span<const store::Key> keys) {
    read_again({.keys = {keys.begin(), keys.end()}, .streams = {}});
    if (items_ahead_.empty())
        return read_patiently(coordinator_, until_, [&] { return coordinator_.store().read(keys); });
    std::vector<std::optional<store::Item>> items(keys.size());
    std::vector<store::Key> missing;
    std::vector<std::size_t> place_of;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (auto read = items_ahead_.extract(keys[i])) {
            items[i] = std::move(read.mapped());
        } else {
            missing.push_back(keys[i]);
            place_of.push_back(i);
        }
    }
    if (missing.empty()) return items;
    std::vector<std::optional<store::Item>> read =
        read_patiently(coordinator_, until_, [&] { return coordinator_.store().read(missing); });
    for (std::size_t i = 0; i < missing.size(); ++i) items[place_of[i]] = std::move(read[i]);
    return items;
}

std::optional<store::Page> SettledReader::page_ahead(const std::string& stream, Version first) {
    read_again({.keys = {}, .streams = {{.table = events_table().name, .partition = stream, .first = first}}});
    auto read = pages_ahead_.extract(stream);
    if (!read) return std::nullopt;
    auto& [query, page] = read.mapped();
    if (!query.descending) return query.first == store::SortKey{first} ? std::optional{std::move(page)} : std::nullopt;
    const bool reaches_back = !page.next || (!page.records.empty() && version_of(page.records.back().key) <= first);
    if (!reaches_back) return std::nullopt;
    std::ranges::reverse(page.records);
    std::erase_if(page.records, [&](const store::Record& record) { return version_of(record.key) < first; });
    page.next.reset();
    return std::move(page);
}

StreamRead SettledReader::stream(const std::string& stream, Version first, Version last) {
    return settled(stream,
                   [&] { return coordinator_.reader().stream(stream, first, last, page_ahead(stream, first)); });
}

StreamRead SettledReader::head(const std::string& stream) {
    return settled(stream, [&] { return coordinator_.reader().head(stream); });
}

std::vector<Image> SettledReader::rows(std::span<const store::Key> keys) {
    for (;;) {
        const std::vector<std::optional<store::Item>> items = this->items(keys);
        std::vector<Image> images;
        bool waited = false;
        for (std::size_t i = 0; i < keys.size() && !waited; ++i) {
            if (items[i] && claimed_by_another(keys[i], *items[i])) {
                waited = !settle(keys[i], *items[i]);
            } else {
                images.push_back(decode_row(keys[i], items[i]).image);
            }
        }
        if (images.size() == keys.size()) return images;
    }
}

Reader::FoundRange SettledReader::range(const store::Query& query, std::size_t limit) {
    for (;;) {
        Reader::Raw raw = read_patiently(coordinator_, until_, [&] { return coordinator_.reader().raw(query, limit); });
        Reader::FoundRange found{{}, std::move(raw.stopped_at)};
        bool as_it_stands = true;
        bool waited = false;
        for (std::size_t i = 0; i < raw.records.size() && !waited; ++i) {
            auto& [key, item] = raw.records[i];
            if (claimed_by_another(key, item)) {
                as_it_stands = false;
                waited = !settle(key, item);
            } else {
                // Where the attempt holds what was never there, there is nothing yet.
                Image image = decode_row(key, std::move(item)).image;
                if (image.rev) found.rows.push_back({std::move(key), std::move(image)});
            }
        }
        if (as_it_stands) return found;
    }
}

bool SettledReader::claimed_by_another(const store::Key& key, const store::Item& item) const {
    const std::optional<Claim> claim = claim_on(key, item);
    return claim && claim->tx != tx_;
}

bool SettledReader::settle(const store::Key& key, const store::Item& item) {
    may_be_gone_ = true;
    if (patience_.settle(key, item) != Verdict::undecided) return true;
    if (reservation_ != nullptr && reservation_->holds_anything()) {
        if (patience_.is_outranked(claim_there(key, item)))  // it may be waiting for what is held here
            throw BlockedError(store::to_string(key) + " is held by an older transaction", lost_at(key));
        reservation_->renew_leases();
    }
    if (!backoff_) {
        const Duration left = until_ - coordinator_.runtime().clock.get().steady_now();
        backoff_.emplace(RetryPolicy::waiting(std::min(coordinator_.wait_max(), left)), coordinator_.runtime());
    }
    if (!backoff_->next()) {
        throw BlockedError(store::to_string(key) + " is held by another transaction that is still running",
                           lost_at(key));
    }
    return false;
}

}  // namespace varve::transactions
