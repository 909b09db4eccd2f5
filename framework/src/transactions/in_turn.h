#pragma once

#include <varve/store/item_store.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

// What settles many items at once holds few of them in memory, however large they are.

namespace varve::transactions {

/// So many bytes of items are read, or written, at a time, or one item if that is larger.
constexpr std::size_t batch_bytes_max = std::size_t{16} << 20;

/// Reads the items under `keys`, as many at a time as are below batch_bytes_max even if each is as large as the store
/// allows, and gives each to `take(index, item)`, in the order of keys.
void read_in_turn(store::ItemStore& store, std::span<const store::Key> keys, auto take) {
    const std::size_t at_a_time = std::max<std::size_t>(1, batch_bytes_max / store.capabilities().item_bytes_max);
    for (std::size_t first = 0; first < keys.size(); first += at_a_time) {
        std::vector<std::optional<store::Item>> items =
            store.read(keys.subspan(first, std::min(at_a_time, keys.size() - first)));
        for (std::size_t i = 0; i < items.size(); ++i) take(first + i, std::move(items[i]));
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
