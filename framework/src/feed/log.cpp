#include "feed/log.h"

#include "core/planted_faults.h"
#include "transactions/attributes.h"
#include "transactions/bell.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <algorithm>
#include <numeric>

namespace varve::feed {

using namespace transactions;

namespace {

constexpr const char* the_only_partition = "0";
constexpr const char* slots_attribute = "slots";

store::Key log_key(store::Position first) {
    return {log_table().name, the_only_partition, static_cast<std::int64_t>(first)};
}

store::Query the_last_one_up_to(store::SortKey at) {
    return {.table = log_table().name,
            .partition = the_only_partition,
            .last = std::move(at),
            .descending = true,
            .limit = 1};
}

store::Query those_from(std::int64_t at) {
    return {.table = log_table().name, .partition = the_only_partition, .first = at, .limit = 100};
}

/// Until there is one, or nothing more.
std::vector<LogItem> query_items(store::ItemStore& store, store::Query query) {
    for (;;) {
        const store::Page page = store.query(query);
        if (!page.records.empty()) {
            std::vector<LogItem> items;
            for (const store::Record& record : page.records) items.push_back(decode_log_item(record));
            return items;
        }
        if (!page.next) return {};
        query.next = page.next;
    }
}

}  // namespace

const store::TableSchema& log_table() {
    static const store::TableSchema schema{.name = "feed_log",
                                           .partition_attribute = "shard",
                                           .sort_attribute = "first",
                                           .sort = store::SortType::integer};
    return schema;
}

store::Query whole_log() {
    return {.table = log_table().name, .partition = the_only_partition};
}

LogItem decode_log_item(const store::Record& record) {
    const auto* first = std::get_if<std::int64_t>(&record.key.sort);
    const std::string* text = text_of(record.key, record.item, slots_attribute);
    if (first == nullptr || *first < 1 || text == nullptr) throw_damaged(record.key, "is no piece of the log");
    auto runs = json::decode<std::vector<Run>>(*text, {.require_all = true});
    if (!runs) throw_damaged(record.key, "has an unreadable list of slots (" + runs.error().message + ")");
    const auto is_none = [](const Run& run) { return run.stream.empty() || run.first < 1 || run.last < run.first; };
    if (runs->empty() || std::ranges::any_of(*runs, is_none))
        throw_damaged(record.key, "has a list of slots of which one is none");
    return {.first = static_cast<store::Position>(*first), .runs = std::move(*runs)};
}

store::Position LogItem::last() const {
    return std::accumulate(runs.begin(), runs.end(), first - 1,
                           [](store::Position sum, const Run& run) { return sum + run.size(); });
}

std::size_t stored_bytes(const Run& run) {
    constexpr std::size_t numbers_and_names_bytes = 80;
    return json::quote(run.stream).size() + numbers_and_names_bytes;
}

void ensure_log_tables(store::ItemStore& store) {
    store.ensure_table(bells_table());
    store.ensure_table(log_table());
    store.ensure_table(watermarks_table());
}

bool is_log_table(std::string_view table) {
    return table == bells_table().name || table == log_table().name || table == watermarks_table().name;
}

store::Write append(const LogItem& item) {
    store::Condition is_free = !store::item_exists();
    if (planted(PlantedFault::the_log_is_written_over)) is_free = {};
    return {log_key(item.first), store::Put{{{slots_attribute, json::encode(item.runs)}}}, std::move(is_free)};
}

std::optional<LogItem> last_item(store::ItemStore& store) {
    std::vector<LogItem> last = query_items(store, the_last_one_up_to({}));
    return last.empty() ? std::nullopt : std::optional{std::move(last.front())};
}

std::vector<LogItem> items_from(store::ItemStore& store, store::Position at, bool begins_one) {
    if (!begins_one) {
        std::vector<LogItem> before = query_items(store, the_last_one_up_to(static_cast<std::int64_t>(at)));
        if (!before.empty() && before.front().last() >= at) return before;
    }
    std::vector<LogItem> items = query_items(store, those_from(static_cast<std::int64_t>(at)));
    for (const LogItem& item : items) {
        if (item.first != at) {
            throw CorruptionError("the log of this store's events has a gap from " + std::to_string(at) + " to " +
                                  store::to_string(log_key(item.first)) +
                                  ": somebody has removed what was there; put it back");
        }
        at = item.last() + 1;
    }
    return items;
}

}  // namespace varve::feed
