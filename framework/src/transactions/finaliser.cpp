#include "finaliser.h"

#include "mutants.h"

#include <varve/core/error.h>
#include <varve/transactions/slot.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace varve::transactions {
namespace {

constexpr std::size_t batch_writes_max = 500;

/// Whether what transaction `tx` has prepared is where this write was to put it. Else the sweeper looks into it: a slot
/// that is not the transaction's own was changed from outside.
bool is_in_place(const std::string& tx, const store::Write& write, const store::WriteAnswer& answer) try {
    if (std::holds_alternative<Failure>(answer)) return false;
    const auto* refused = std::get_if<store::Refused>(&answer);
    if (refused == nullptr || write.key.table != events_table().name) return true;
    const Slot slot = decode_slot(write.key, refused->current);
    const auto* committed = std::get_if<Committed>(&slot);
    return committed != nullptr && committed->write_id == tx;
} catch (const CorruptionError&) {
    return false;
}

}  // namespace

void Finaliser::add(Work work) {
    {
        const std::lock_guard lock{mutex_};
        waiting_.push_back(std::move(work));
    }
    background_.post([this] { run(); });
}

std::vector<Finaliser::Work> Finaliser::take() {
    std::vector<Work> taken;
    std::set<store::Key> keys;
    const std::lock_guard lock{mutex_};
    while (!waiting_.empty()) {
        const std::vector<store::Write>& next = waiting_.front().writes;
        // A batch names no key twice. Two have one in common if somebody else finalised a row for the first of them.
        const bool fits = keys.size() + next.size() <= batch_writes_max &&
                          std::ranges::none_of(next, [&](const auto& write) { return keys.contains(write.key); });
        if (!taken.empty() && !fits) break;
        for (const store::Write& write : next) keys.insert(write.key);
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
        if (left.empty() || VARVE_MUTANT("what is not answered in the background is left") || !backoff.next())
            return answers;
        std::vector<store::WriteAnswer> later = store_.write(again);
        for (std::size_t i = 0; i < left.size(); ++i) answers[left[i]] = std::move(later[i]);
    }
}

void Finaliser::run() {
    // Each was posted once, so what does not go along now has a run of its own.
    std::vector<Work> works = take();
    if (works.empty()) return;
    std::vector<store::Write> writes;
    for (Work& work : works) std::ranges::move(work.writes, std::back_inserter(writes));
    const std::vector<store::WriteAnswer> answers = write(writes);

    std::vector<store::Write> done;
    std::size_t i = 0;
    for (Work& work : works) {
        bool all_in_place = true;
        for (const bool tells : work.tells) {
            all_in_place = all_in_place && is_in_place(work.tx, writes[i], answers[i]);
            if (tells && std::holds_alternative<store::Applied>(answers[i])) work.finalised(writes[i].key);
            ++i;
        }
        if (work.done && (all_in_place || VARVE_MUTANT("done before all is finalised")))
            done.push_back(*std::move(work.done));
    }
    if (!done.empty()) static_cast<void>(store_.write(done));
}

}  // namespace varve::transactions
