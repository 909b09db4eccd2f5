#include "transactions/finaliser.h"

#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/in_place.h"
#include "transactions/slot.h"

#include <varve/core/error.h>

#include <algorithm>
#include <set>
#include <utility>

namespace varve::transactions {
namespace {

constexpr std::size_t batch_writes_max = 500;

}  // namespace

void Finaliser::add(Work work) {
    {
        const MutexLock lock{mutex_};
        waiting_.push_back(std::move(work));
    }
    // Without memory for a task it goes along with the next one's, or the sweeper finds it.
    background_.post([this] { run(); });
}

std::vector<Finaliser::Work> Finaliser::take() {
    std::vector<Work> taken;
    std::set<store::Key> keys;
    const MutexLock lock{mutex_};
    while (!waiting_.empty()) {
        const std::vector<Placed>& next = waiting_.front().placed;
        // A batch names no key twice. Two have one in common if somebody else finalised a row for the first of them.
        const bool fits = keys.size() + next.size() <= batch_writes_max &&
                          std::ranges::none_of(next, [&](const Placed& one) { return keys.contains(one.write.key); });
        if (!taken.empty() && !fits) break;
        for (const Placed& one : next) {
            [[maybe_unused]] const bool is_first = keys.insert(one.write.key).second;
            VARVE_ASSERT(is_first, "a batch names no item twice");
        }
        taken.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
    }
    return taken;
}

std::vector<store::WriteAnswer> Finaliser::write(const std::vector<store::Write>& writes) {
    std::vector<store::WriteAnswer> answers = store_.write(writes);
    for (Backoff backoff{policy_, runtime_};;) {
        std::vector<std::size_t> left;
        std::vector<store::Write> again;
        for (std::size_t i = 0; i < writes.size(); ++i) {
            const auto* failure = std::get_if<Failure>(&answers[i]);
            if (failure == nullptr || !worth_repeating(*failure)) continue;
            left.push_back(i);
            again.push_back(writes[i]);
        }
        if (left.empty() || planted(PlantedFault::done_before_all_is_finalised) || !backoff.next()) return answers;
        std::vector<store::WriteAnswer> later = store_.write(again);
        VARVE_ASSERT(later.size() == left.size(), "a store answers every write of a batch");
        for (std::size_t i = 0; i < left.size(); ++i) answers[left[i]] = std::move(later[i]);
    }
}

void Finaliser::run() {
    // Each was posted once, so what does not go along now has a run of its own.
    std::vector<Work> works = take();
    if (works.empty()) return;
    std::vector<store::Write> writes;
    for (Work& work : works) {
        for (Placed& one : work.placed) writes.push_back(std::move(one.write));
    }
    const std::vector<store::WriteAnswer> answers = write(writes);

    std::vector<store::Write> done;
    std::size_t i = 0;
    for (Work& work : works) {
        bool all_in_place = true;
        for (const Placed& one : work.placed) {
            if (!is_in_place(work.tx, writes[i], answers[i])) {
                all_in_place = false;
                if (one.leaves_something) report(work.tx, writes[i].key, answers[i]);
            }
            if (one.tells && std::holds_alternative<store::Applied>(answers[i])) work.finalised(writes[i].key);
            ++i;
        }
        if (work.done && (all_in_place || planted(PlantedFault::done_before_all_is_finalised)))
            done.push_back(*std::move(work.done));
    }
    if (!done.empty()) static_cast<void>(store_.write(done));
}

void Finaliser::report(const std::string& tx, const store::Key& key, const store::WriteAnswer& answer) const try {
    const auto* refused = std::get_if<store::Refused>(&answer);
    if (refused == nullptr) return;
    if (key.table == events_table().name) {
        check_is_own(key, refused->current, tx);
    } else {
        check_is_there(key, refused->current, tx, runtime_.clock.get().now(), retention_);
    }
} catch (const CorruptionError& error) {
    try_to_log(runtime_.log, LogLevel::error,
               [&] { return std::string{"a transaction cannot be finalised: "} + error.what(); });
}

}  // namespace varve::transactions
