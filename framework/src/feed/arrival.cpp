#include "feed/arrival.h"

#include "feed/log.h"
#include "transactions/bell.h"

#include <algorithm>

namespace varve::feed {

using namespace transactions;

Arrival::Arrival(store::ItemStore& store, const std::vector<store::Key>& slots) : store_(store) {
    for (const store::Key& slot : slots) {
        Version& version = watermarks_[watermark_key(slot.partition)];
        version = std::max(version, version_of(slot));
    }
    if (!slots.empty()) return;
    // Whoever rang in a shard has known of it, so this finds all shards that anybody has rung in before.
    const store::Key setting = feed_setting_key();
    const unsigned shards = announced_bell_shards(store.read({&setting, 1}).front());
    std::vector<store::Query> queries;
    for (unsigned shard = 0; shard < shards; ++shard) queries.push_back(bells_in(shard));
    while (!queries.empty()) {
        std::vector<store::Query> more;
        std::size_t i = 0;
        for (store::Page& page : store.read_together({}, queries).pages) {
            for (store::Record& record : page.records) bells_.push_back(std::move(record.key));
            store::Query& query = queries[i++];
            if ((query.next = std::move(page.next))) more.push_back(std::move(query));
        }
        queries = std::move(more);
    }
}

bool Arrival::is_complete() {
    std::vector<store::Key> keys = bells_;
    for (const auto& [key, version] : watermarks_) keys.push_back(key);
    if (keys.empty()) return true;
    const std::vector<std::optional<store::Item>> items = store_.read(keys);
    const std::size_t bells = bells_.size();
    bells_.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i < bells) {
            if (items[i]) bells_.push_back(std::move(keys[i]));
        } else if (watermark(keys[i], items[i]) >= watermarks_.at(keys[i])) {
            watermarks_.erase(keys[i]);
        }
    }
    return bells_.empty() && watermarks_.empty();
}

}  // namespace varve::feed
