#include "commands/build_emptying.h"

#include "commands/application_parts.h"
#include "commands/checkpoint.h"
#include "commands/parked_row.h"
#include "commands/workspace.h"
#include "core/planted_faults.h"
#include "rows/index_entries.h"
#include "rows/stored_rows.h"

#include <algorithm>
#include <typeinfo>
#include <utility>

namespace varve::detail {

namespace {
constexpr std::size_t rows_at_once = 50;
}

BuildEmptying::BuildEmptying(ApplicationParts& parts, std::string follower, Build build)
    : parts_(parts), follower_(std::move(follower)), build_(std::move(build)) {}

bool BuildEmptying::change(const std::function<void(Transaction&, Builds&, ReplacedBuild&)>& change) {
    bool is_named = false;
    const auto body = [&](Transaction& tx) {
        const RowsInTransaction<Builds> rows = tx.rows<Builds>();
        Builds builds = rows.get(follower_).value_or(Builds{});
        const auto found = std::ranges::find(builds.replaced, build_.number,
                                             [](const ReplacedBuild& one) { return one.build.number; });
        is_named = found != builds.replaced.end();
        if (is_named) change(tx, builds, *found);
    };
    own_transaction(parts_.application, body).value();
    return is_named;
}

bool BuildEmptying::step() {
    if (!began_) {
        const bool is_named = change([&](Transaction& tx, Builds& builds, ReplacedBuild& one) {
            one.emptying = !planted(PlantedFault::a_build_is_emptied_and_nobody_is_told);
            tx.rows<Builds>().put(follower_, builds);
        });
        if (!is_named) return false;
        began_ = true;
        for (const std::string& name : names()) {
            left_.emplace_back([this, name] { return step_in(row_table<ParkedRow>, name); });
        }
        for (const BuildTable& of : build_.tables) {
            const std::string name = build_table(of.name, build_.number);
            const RowTable table{.type = {.name = name, .cpp_name = name, .type = typeid(Builds)},
                                 .sorted = of.sorted,
                                 .rewritten = nullptr};
            parts_.store->ensure_table(schema_of(table));
            for (const auto& [field, state] : parts_.row_tables.indexes().read(table)) {
                left_.emplace_back([this, entries = name + "/" + field] { return step_in(index_rows, entries); });
            }
            left_.emplace_back([this, name] { return step_in(name); });
        }
        return true;
    }
    if (!left_.empty()) {
        if (left_.back()()) return true;
        left_.pop_back();
        next_.reset();
        return true;
    }
    change([&](Transaction& tx, Builds& builds, ReplacedBuild&) {
        for (const std::string& name : names()) tx.rows<Checkpoint>().erase(name);
        std::erase_if(builds.replaced, [&](const ReplacedBuild& one) { return one.build.number == build_.number; });
        tx.rows<Builds>().put(follower_, builds);
    });
    return false;
}

std::vector<std::string> BuildEmptying::names() const {
    std::vector<std::string> names;
    for (feed::Partition one{.number = 1, .of = build_.partitions}; one.number <= one.of; ++one.number)
        names.push_back(partition_name(build_name(follower_, build_.number), one));
    return names;
}

bool BuildEmptying::erase(std::span<const store::Key> keys) {
    if (keys.empty()) return true;
    return change([&](Transaction& tx, Builds&, ReplacedBuild&) {
        for (const store::Key& key : keys) Workspace::of(tx).erase(key);
    });
}

bool BuildEmptying::step_in(const std::string& table) {
    transactions::Reader::Scanned found =
        parts_.coordinator.reader().scan(table, transactions::Isolation::committed, rows_at_once, next_);
    std::vector<store::Key> keys;
    for (transactions::Reader::FoundRow& row : found.rows) {
        if (row.image.data) keys.push_back(std::move(row.key));
    }
    next_ = std::move(found.next);
    return erase(keys) && next_;
}

bool BuildEmptying::step_in(const RowTable& table, const std::string& partition) {
    parts_.ensure(table);
    StoredPage found =
        parts_.range(table, {.partition = partition}, {.limit = rows_at_once, .next = next_.value_or("")},
                     transactions::Isolation::committed);
    std::vector<store::Key> keys;
    for (const StoredRow& row : found.rows) keys.push_back(stored_key(table, row.key));
    const bool goes_on = !found.next.empty();
    next_ = std::move(found.next);
    return erase(keys) && goes_on;
}

}  // namespace varve::detail
