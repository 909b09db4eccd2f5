#include "mutants.h"

#include <varve/core/error.h>
#include <varve/transactions/settled_reader.h>

namespace varve::transactions {

SettledReader::SettledReader(Coordinator& coordinator, const std::string& tx, Time since,
                             std::function<void()> while_waiting)
    : c_(coordinator),
      tx_(tx),
      patience_(coordinator.resolver(), coordinator.metrics(), {since, tx}),
      while_waiting_(std::move(while_waiting)) {}

StreamRead SettledReader::settled(const std::string& stream, auto read_once) {
    for (;;) {
        StreamRead read = read_once();
        if (read.unfinalised && !VARVE_MUTANT("to build on what is not finalised")) {
            const store::Key key = slot_key(stream, read.head);
            const std::optional<store::Item> item = c_.store().read({&key, 1}).front();
            if (item && claim_on(key, *item)) settle(key, *item);
        } else if (read.blocking && claim_on(read.blocking->key, read.blocking->item)->tx == tx_) {
            const store::Key& key = read.blocking->key;
            read.next = Free{pending_slot(key, decode_slot(key, std::move(read.blocking->item))).epoch};
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

StreamRead SettledReader::stream(const std::string& stream, Version first) {
    return settled(stream, [&] { return c_.reader().stream(stream, first); });
}

StreamRead SettledReader::head(const std::string& stream) {
    return settled(stream, [&] { return c_.reader().head(stream); });
}

std::vector<Image> SettledReader::rows(std::span<const store::Key> keys) {
    for (;;) {
        const std::vector<std::optional<store::Item>> items = c_.store().read(keys);
        std::vector<Image> images;
        bool waited = false;
        for (std::size_t i = 0; i < keys.size() && !waited; ++i) {
            if (items[i] && claim_on(keys[i], *items[i])) {
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
            if (claim_on(key, item)) {
                waited = !settle(key, item);
            } else {
                Image image = decode_row(key, std::move(item)).image;
                found.push_back({std::move(key), std::move(image)});
            }
        }
        if (found.size() == records.size()) return found;
    }
}

bool SettledReader::settle(const store::Key& key, const store::Item& item) {
    if (patience_.settle(key, item) != Verdict::undecided) return true;
    if (while_waiting_) while_waiting_();
    if (!backoff_) backoff_.emplace(RetryPolicy::waiting(c_.options().lease), c_.runtime());
    if (!backoff_->next()) {
        throw BlockedError(store::to_string(key) + " is held by another transaction that is still running",
                           lost_at(key));
    }
    return false;
}

}  // namespace varve::transactions
