#pragma once

#include "protocol/scheduler.h"

#include <varve/testing/passing_store.h>
#include <varve/testing/seeded_random.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace varve::protocol {

/// A store that promises no more than the port asks for. A batch of reads is no moment: between any two keys of it
/// others may run, and time may pass. Of what an atomic batch has written, some may show later than the rest, but for
/// whoever reads isolated, or writes there.
///
/// Threads: those of the scheduler.
class LooseStore final : public testing::PassingStore {
  public:
    /// `parts_max`: how long only a part of an atomic batch may show; 0: never.
    LooseStore(std::shared_ptr<store::ItemStore> inner, Scheduler& scheduler, std::uint64_t seed, Duration parts_max)
        : PassingStore(std::move(inner)), scheduler_(scheduler), random_(seed), parts_max_(parts_max) {}

    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override;
    std::vector<std::optional<store::Item>> read_isolated(std::span<const store::Key> keys) override;
    store::Page query(const store::Query& query) override { return as_it_shows(inner().query(query)); }
    store::Page scan(const store::Scan& scan) override { return as_it_shows(inner().scan(scan)); }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override;
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override;
    store::Capabilities capabilities() const override;

  private:
    struct Late {
        Time until;
        std::optional<store::Item> before;
    };
    /// nullptr: it shows.
    const Late* late(const store::Key& key) const;
    void pause();
    store::Page as_it_shows(store::Page page) const;

    Scheduler& scheduler_;
    testing::SeededRandom random_;
    const Duration parts_max_;
    std::map<store::Key, Late> late_;
};

}  // namespace varve::protocol
