#include "mutants.h"

#include <varve/core/error.h>
#include <varve/transactions/reservation.h>
#include <varve/transactions/settled_reader.h>

namespace varve::transactions {

SettledReader::SettledReader(Coordinator& coordinator, const std::string& tx, Time since, Reservation* reservation)
    : c_(coordinator),
      tx_(tx),
      patience_(coordinator.resolver(), coordinator.metrics(), {since, tx}),
      reservation_(reservation) {}

StreamRead SettledReader::settled(const std::string& stream, auto read_once) {
    for (;;) {
        StreamRead read = read_once();
        if (read.unfinalised && !VARVE_MUTANT("to build on what is not finalised")) {
            const store::Key key = slot_key(stream, read.head);
            const std::optional<store::Item> item = c_.store().read({&key, 1}).front();
            if (item && claim_on(key, *item)) settle(key, *item);
        } else if (read.blocking && claim_on(read.blocking->key, read.blocking->item)->tx == tx_) {
            const Slot slot = decode_slot(read.blocking->key, std::move(read.blocking->item));
            read.next = Free{std::get<Pending>(slot).epoch};
            read.blocking.reset();
            read.mine = true;
            return read;
        } else if (read.blocking) {
            settle(read.blocking->key, read.blocking->item);
        } else {
            return read;
        }
    }
}

void SettledReader::fetch(const std::vector<store::Key>& keys) {
    if (keys.empty()) return;
    std::vector<std::optional<store::Item>> items = c_.store().read(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) fetched_.insert_or_assign(keys[i], std::move(items[i]));
}

std::optional<StreamRead> SettledReader::fetched(const std::string& stream, Version first) const {
    StreamRead read{.head = first - 1};
    for (;;) {
        const store::Key key = slot_key(stream, read.head + 1);
        const auto found = fetched_.find(key);
        if (found == fetched_.end()) return std::nullopt;
        Slot slot = decode_slot(key, found->second);
        if (auto* committed = std::get_if<Committed>(&slot)) {
            read.slots.push_back({++read.head, std::move(*committed)});
            continue;
        }
        const auto* pending = std::get_if<Pending>(&slot);
        if (pending != nullptr && pending->claim.tx != tx_) return std::nullopt;
        read.mine = pending != nullptr;
        read.next = read.mine ? Free{pending->epoch} : std::get<Free>(slot);
        return read;
    }
}

StreamRead SettledReader::stream(const std::string& stream, Version first) {
    if (std::optional<StreamRead> read = fetched(stream, first)) return std::move(*read);
    return settled(stream, [&] { return c_.reader().stream(stream, first); });
}

StreamRead SettledReader::head(const std::string& stream) {
    return settled(stream, [&] { return c_.reader().head(stream); });
}

std::vector<Image> SettledReader::rows(std::span<const store::Key> keys) {
    const auto is_fetched = [&](const store::Key& key) {
        const auto found = fetched_.find(key);
        return found != fetched_.end() && !(found->second && claimed_by_another(key, *found->second));
    };
    if (std::ranges::all_of(keys, is_fetched)) {
        std::vector<Image> images;
        for (const store::Key& key : keys) images.push_back(decode_row(key, fetched_.at(key)).image);
        return images;
    }
    for (;;) {
        const std::vector<std::optional<store::Item>> items = c_.store().read(keys);
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

std::vector<Reader::FoundRow> SettledReader::range(const store::Query& query) {
    for (;;) {
        std::vector<store::Record> records = c_.reader().raw(query);
        std::vector<Reader::FoundRow> found;
        bool waited = false;
        for (std::size_t i = 0; i < records.size() && !waited; ++i) {
            auto& [key, item] = records[i];
            if (claimed_by_another(key, item)) {
                waited = !settle(key, item);
            } else {
                // Where the attempt has reserved what was never there, there is nothing yet.
                Image image = decode_row(key, std::move(item)).image;
                if (image.rev) found.push_back({std::move(key), std::move(image)});
            }
        }
        if (!waited) return found;
    }
}

bool SettledReader::claimed_by_another(const store::Key& key, const store::Item& item) const {
    const std::optional<Claim> claim = claim_on(key, item);
    return claim && claim->tx != tx_;
}

bool SettledReader::settle(const store::Key& key, const store::Item& item) {
    if (patience_.settle(key, item) != Verdict::undecided) return true;
    if (reservation_ != nullptr) reservation_->renew_leases();
    if (!backoff_) backoff_.emplace(RetryPolicy::waiting(c_.options().lease), c_.runtime());
    if (!backoff_->next()) {
        throw BlockedError(store::to_string(key) + " is held by another transaction that is still running");
    }
    return false;
}

}  // namespace varve::transactions
