#include "protocol/loose_store.h"

#include <utility>

namespace varve::protocol {

const LooseStore::Late* LooseStore::late(const store::Key& key) const {
    const auto found = late_.find(key);
    return found == late_.end() || found->second.until <= scheduler_.now() ? nullptr : &found->second;
}

void LooseStore::pause() {
    const std::uint64_t us_max[] = {0, 0, 0, 0, 0, 1'000, 1'000, 10'000};
    scheduler_.sleep(Duration{static_cast<Duration::rep>(random_.below(us_max[random_.below(8)] + 1))});
}

std::vector<std::optional<store::Item>> LooseStore::read(std::span<const store::Key> keys) {
    std::vector<std::optional<store::Item>> items;
    for (const store::Key& key : keys) {
        if (!items.empty()) pause();
        const Late* const is_late = late(key);
        items.push_back(is_late != nullptr ? is_late->before : inner().read({&key, 1}).front());
    }
    return items;
}

std::vector<std::optional<store::Item>> LooseStore::read_isolated(std::span<const store::Key> keys) {
    std::vector<std::optional<store::Item>> items;
    for (const store::Key& key : keys) {
        if (!items.empty()) pause();
        while (const Late* const is_late = late(key)) scheduler_.sleep(is_late->until - scheduler_.now());
        items.push_back(inner().read({&key, 1}).front());
    }
    return items;
}

store::Page LooseStore::as_it_shows(store::Page page) const {
    std::vector<store::Record> shown;
    for (store::Record& record : page.records) {
        const Late* const is_late = late(record.key);
        if (is_late == nullptr) {
            shown.push_back(std::move(record));
        } else if (is_late->before) {
            shown.push_back({std::move(record.key), *is_late->before});
        }
    }
    page.records = std::move(shown);
    return page;
}

std::vector<store::WriteAnswer> LooseStore::write(std::span<const store::Write> writes) {
    for (const store::Write& one : writes) late_.erase(one.key);
    return inner().write(writes);
}

store::AtomicAnswer LooseStore::write_atomically(std::span<const store::Write> writes) {
    for (const store::Write& one : writes) late_.erase(one.key);
    if (parts_max_ == Duration::zero()) return inner().write_atomically(writes);
    std::map<store::Key, std::optional<store::Item>> before;
    for (const store::Write& one : writes) before.emplace(one.key, inner().read({&one.key, 1}).front());
    store::AtomicAnswer answer = inner().write_atomically(writes);
    if (!std::holds_alternative<store::Applied>(answer)) return answer;
    const Duration pause{static_cast<Duration::rep>(random_.below(static_cast<std::uint64_t>(parts_max_.count())))};
    for (auto& [key, item] : before) {
        // What is gone is in no page, so it cannot be shown there as it was.
        const bool is_there = inner().read({&key, 1}).front().has_value();
        if (is_there && random_.chance(0.5)) late_[key] = {scheduler_.now() + pause, std::move(item)};
    }
    scheduler_.sleep(pause);  // it answers when all show
    return answer;
}

store::Capabilities LooseStore::capabilities() const {
    store::Capabilities capabilities = inner().capabilities();
    capabilities.isolated_atomic_writes = parts_max_ == Duration::zero();
    return capabilities;
}

}  // namespace varve::protocol
