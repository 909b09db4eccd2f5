#pragma once

#include <varve/store/item_store.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

// What settles many items at once holds few of them in memory, however large they are.

namespace varve::transactions {

/// So many bytes of items are written at a time, or one item if that is larger; and read, unless small ones are
/// followed by large ones: then it may be eight times as many.
constexpr std::size_t batch_bytes_max = std::size_t{16} << 20;

/// Reads the items under `keys` and gives each to `take(index, item)`, in the order of keys, until that says false, if
/// it says anything. At first it reads as many at a time as are below batch_bytes_max even if each is as large as the
/// store allows; then, while they are small, twice as many each time, up to eight times as many.
void read_in_turn(store::ItemStore& store, std::span<const store::Key> keys, auto take) {
    constexpr std::size_t growth_max = 8;
    const std::size_t at_least = std::max<std::size_t>(1, batch_bytes_max / store.capabilities().item_bytes_max);
    std::size_t largest = 1;
    for (std::size_t first = 0, at_a_time = at_least; first < keys.size();) {
        const std::span<const store::Key> asked = keys.subspan(first, std::min(at_a_time, keys.size() - first));
        std::vector<std::optional<store::Item>> items = store.read(asked);
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (items[i]) largest = std::max(largest, store::bytes(asked[i], *items[i]));
            if constexpr (std::is_void_v<decltype(take(first, std::move(items[i])))>) {
                take(first + i, std::move(items[i]));
            } else if (!take(first + i, std::move(items[i]))) {
                return;
            }
        }
        first += asked.size();
        at_a_time = std::clamp(batch_bytes_max / growth_max / largest, at_least,
                               std::min(2 * at_a_time, growth_max * at_least));
    }
}

/// Writes that go out together, with what each of them is for.
template <class For>
class WritesInTurn {
  public:
    void add(store::Write write, For what) {
        if (const auto* put = std::get_if<store::Put>(&write.action)) bytes_ += store::bytes(write.key, put->item);
        if (const auto* update = std::get_if<store::Update>(&write.action))
            bytes_ += store::bytes(write.key, update->set);
        writes_.push_back(std::move(write));
        for_.push_back(std::move(what));
    }
    bool are_many() const { return bytes_ >= batch_bytes_max; }

    /// Sends them all, and gives `told(for, write, answer)` what became of each.
    void send(store::ItemStore& store, auto told) {
        if (writes_.empty()) return;
        const std::vector<store::WriteAnswer> answers = store.write(writes_);
        for (std::size_t i = 0; i < writes_.size(); ++i) told(for_[i], writes_[i], answers[i]);
        writes_.clear();
        for_.clear();
        bytes_ = 0;
    }

  private:
    std::vector<store::Write> writes_;
    std::vector<For> for_;
    std::size_t bytes_ = 0;
};

}  // namespace varve::transactions
