#include "testing/describe.h"

#include <varve/testing/counting_store.h>

#include <algorithm>

namespace varve::testing {
namespace {

template <class Range, class Text>
std::string joined(const Range& range, Text text) {
    std::string line;
    for (const auto& element : range) {
        if (!line.empty()) line += ", ";
        line += text(element);
    }
    return line;
}

std::string name_of(const store::WriteAnswer& answer) {
    if (std::holds_alternative<store::Applied>(answer)) return "applied";
    if (std::holds_alternative<store::Refused>(answer)) return "refused";
    return std::get<Failure>(answer).in_doubt ? "in doubt" : "failed";
}

std::string name_of(const store::AtomicAnswer& answer) {
    if (std::holds_alternative<store::Applied>(answer)) return "applied";
    if (std::holds_alternative<store::RefusedBatch>(answer)) return "refused";
    return std::get<Failure>(answer).in_doubt ? "in doubt" : "failed";
}

}  // namespace

CountingStore::CountingStore(std::shared_ptr<store::ItemStore> inner) : inner_(std::move(inner)) {}

template <class Count>
void CountingStore::count(Count change) {
    const std::lock_guard lock{mutex_};
    change(counts_);
}

template <class Line>
void CountingStore::record(Line line) {
    const std::lock_guard lock{mutex_};
    if (recording_) lines_.push_back(line());
}

RequestCounts CountingStore::counts() const {
    const std::lock_guard lock{mutex_};
    return counts_;
}

void CountingStore::reset() {
    const std::lock_guard lock{mutex_};
    counts_ = {};
    lines_.clear();
}

void CountingStore::start_recording() {
    const std::lock_guard lock{mutex_};
    recording_ = true;
}

std::vector<std::string> CountingStore::recorded() const {
    const std::lock_guard lock{mutex_};
    return lines_;
}

void CountingStore::ensure_table(const store::TableSchema& schema) {
    inner_->ensure_table(schema);
}

bool CountingStore::has_table(const store::TableSchema& schema) {
    return inner_->has_table(schema);
}

std::vector<std::optional<store::Item>> CountingStore::read(std::span<const store::Key> keys) {
    count([&](RequestCounts& counts) {
        counts.read_batches += 1;
        counts.reads += keys.size();
    });
    auto items = inner_->read(keys);
    record([&] { return "read: " + joined(keys, [](const store::Key& key) { return to_string(key); }); });
    return items;
}

std::vector<store::WriteAnswer> CountingStore::write(std::span<const store::Write> writes) {
    count([&](RequestCounts& counts) {
        counts.write_batches += 1;
        counts.writes += writes.size();
    });
    auto answers = inner_->write(writes);
    count([&](RequestCounts& counts) {
        counts.refused_writes += static_cast<std::uint64_t>(std::ranges::count_if(
            answers, [](const auto& answer) { return std::holds_alternative<store::Refused>(answer); }));
    });
    record([&] {
        std::size_t i = 0;
        return "write: " + joined(writes, [&](const store::Write& write) {
                   return detail::describe(write) + " " + name_of(answers.at(i++));
               });
    });
    return answers;
}

store::Page CountingStore::query(const store::Query& query) {
    count([](RequestCounts& counts) { counts.queries += 1; });
    auto page = inner_->query(query);
    record([&] { return "query: " + query.table + "/" + query.partition; });
    return page;
}

store::FoundTogether CountingStore::read_together(std::span<const store::Key> keys,
                                                  std::span<const store::Query> queries) {
    count([&](RequestCounts& counts) {
        counts.joint_reads += 1;
        counts.reads += keys.size();
        counts.joint_queries += queries.size();
    });
    auto found = inner_->read_together(keys, queries);
    record([&] {
        std::vector<std::string> asked;
        for (const store::Key& key : keys) asked.push_back(to_string(key));
        for (const store::Query& query : queries) asked.push_back("range " + query.table + "/" + query.partition);
        return "read together: " + joined(asked, [](const std::string& one) { return one; });
    });
    return found;
}

store::Page CountingStore::scan(const store::Scan& scan) {
    count([](RequestCounts& counts) { counts.scans += 1; });
    auto page = inner_->scan(scan);
    record([&] {
        return "scan: " + scan.table + " " + std::to_string(scan.segment) + "/" + std::to_string(scan.segments);
    });
    return page;
}

store::Capabilities CountingStore::capabilities() const {
    return inner_->capabilities();
}

std::vector<store::Change> CountingStore::changes(const std::string& table, store::Position after, std::size_t limit) {
    count([](RequestCounts& counts) { counts.change_reads += 1; });
    auto found = inner_->changes(table, after, limit);
    record([&] { return "changes: " + table + " after " + std::to_string(after); });
    return found;
}

store::Position CountingStore::last_change(const std::string& table) {
    count([](RequestCounts& counts) { counts.change_reads += 1; });
    const store::Position last = inner_->last_change(table);
    record([&] { return "last change: " + table; });
    return last;
}

store::AtomicAnswer CountingStore::write_atomically(std::span<const store::Write> writes) {
    count([&](RequestCounts& counts) {
        counts.atomic_batches += 1;
        counts.writes += writes.size();
    });
    auto answer = inner_->write_atomically(writes);
    if (const auto* batch = std::get_if<store::RefusedBatch>(&answer)) {
        count([&](RequestCounts& counts) { counts.refused_writes += batch->refused.size(); });
    }
    record([&] { return "write atomically: " + joined(writes, detail::describe) + " " + name_of(answer); });
    return answer;
}

std::shared_ptr<void> CountingStore::watch(const std::string& table, std::function<void()> changed) {
    return inner_->watch(table, std::move(changed));
}

}  // namespace varve::testing
