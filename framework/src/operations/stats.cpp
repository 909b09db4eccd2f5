#include "commands/application_parts.h"
#include "events/snapshot.h"
#include "events/stored_slot.h"
#include "feed/log.h"
#include "locks/stored_lock.h"
#include "transactions/system_table.h"

#include <varve/operations/stats.h>

#include <unordered_map>
#include <utility>

namespace varve::operations {

namespace {

class Counting {
  public:
    Counting(Application& application, const std::function<void(std::int64_t)>& progress, const std::stop_token& stop)
        : parts_(detail::parts_of(application)), progress_(progress), stop_(stop) {}

    StoreStats run() {
        scan(transactions::events_table().name, [this](const store::Record& record) { count_slot(record); });
        for (const auto& [stream, slots] : slots_) {
            AggregateStats& of = stats_.aggregates[aggregate_of(stream)];
            ++of.streams;
            if (slots <= of.longest_slots) continue;
            of.longest = stream;
            of.longest_slots = slots;
        }
        for (const std::string& table : parts_.row_tables.names_in_store()) scan(table, {});
        for (const store::TableSchema& schema :
             {transactions::system_table(), locks::locks_table(), events::snapshots_table()})
            if (parts_.store->has_table(schema)) scan(schema.name, {});
        if (parts_.coordinator.announces()) {
            for (const store::TableSchema& schema : {transactions::bells_table(), transactions::watermarks_table()})
                scan(schema.name, {});
            scan(feed::log_table().name, {});
        }
        return std::move(stats_);
    }

  private:
    static std::string aggregate_of(std::string_view stream) { return std::string{events::aggregate_of(stream)}; }

    void count_slot(const store::Record& record) {
        AggregateStats& of = stats_.aggregates[aggregate_of(record.key.partition)];
        ++of.slots;
        of.bytes += static_cast<std::int64_t>(store::bytes(record.key, record.item));
        ++slots_[record.key.partition];
        if (transactions::is_internal(record.key.partition)) return;
        transactions::Slot slot = transactions::decode_slot(record.key, record.item);
        if (const auto* const committed = std::get_if<transactions::Committed>(&slot)) {
            of.events += static_cast<std::int64_t>(
                events::decode_payload(record.key.partition, transactions::version_of(record.key), *committed).size());
        }
    }

    void scan(const std::string& table, const std::function<void(const store::Record&)>& look_at) {
        TableStats& of = stats_.tables[table];
        store::Scan scan{.table = table};
        do {
            if (stop_.stop_requested()) return;
            store::Page page = parts_.store->scan(scan);
            for (const store::Record& record : page.records) {
                ++of.items;
                of.bytes += static_cast<std::int64_t>(store::bytes(record.key, record.item));
                if (look_at) look_at(record);
            }
            items_ += static_cast<std::int64_t>(page.records.size());
            if (progress_) progress_(items_);
            scan.next = std::move(page.next);
        } while (scan.next);
    }

    detail::ApplicationParts& parts_;
    const std::function<void(std::int64_t)>& progress_;
    const std::stop_token stop_;
    StoreStats stats_;
    std::unordered_map<std::string, std::int64_t> slots_;  // by stream
    std::int64_t items_ = 0;
};

}  // namespace

StoreStats count(Application& application, const std::function<void(std::int64_t)>& progress,
                 const std::stop_token& stop) {
    return Counting{application, progress, stop}.run();
}

}  // namespace varve::operations
