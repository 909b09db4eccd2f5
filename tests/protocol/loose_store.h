#pragma once

#include "protocol/scheduling.h"

#include <varve/testing/passing_store.h>
#include <varve/testing/seeded_random.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace varve::protocol {

/// A store that promises no more than the port asks for: a batch of reads is no moment. Between any two keys of it
/// others may run, and time may pass.
///
/// Threads: those of the scheduler.
class LooseStore final : public testing::PassingStore {
  public:
    LooseStore(std::shared_ptr<store::ItemStore> inner, Scheduler& scheduler, std::uint64_t seed)
        : PassingStore(std::move(inner)), scheduler_(scheduler), random_(seed) {}

    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        std::vector<std::optional<store::Item>> items;
        for (const store::Key& key : keys) {
            const std::uint64_t pauses_us_max[] = {0, 0, 0, 0, 0, 1'000, 1'000, 10'000};
            const std::uint64_t pause_us = random_.below(pauses_us_max[random_.below(8)] + 1);
            if (!items.empty()) scheduler_.sleep(Duration{static_cast<Duration::rep>(pause_us)});
            items.push_back(inner().read({&key, 1}).front());
        }
        return items;
    }

  private:
    Scheduler& scheduler_;
    testing::SeededRandom random_;
};

}  // namespace varve::protocol
