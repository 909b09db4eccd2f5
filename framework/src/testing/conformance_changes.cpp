#include "testing/conformance.h"

#include <varve/core/error.h>

#include <atomic>
#include <map>
#include <memory>

namespace varve::testing::detail {
namespace {

void need_changes(ItemStore& store) {
    if (!store.capabilities().ordered_changes) throw CaseSkipped("the store keeps no order of changes");
}

std::string list_of(const std::vector<Change>& changes) {
    std::string text;
    for (const Change& one : changes) {
        text += std::to_string(one.position) + ":" + store::to_string(one.record.key) + " ";
    }
    return text;
}

/// Requires that exactly these items changed, in this order; positions ascend, and start above `after`.
void require_order(const std::vector<Change>& changes, const std::vector<Record>& expected, Position after) {
    require_equal(changes.size(), expected.size(), "changes, which are " + list_of(changes));
    for (std::size_t i = 0; i < changes.size(); ++i) {
        require(changes[i].position > after, "positions do not ascend: " + list_of(changes));
        after = changes[i].position;
        require_equal({changes[i].record}, std::vector<Record>{expected[i]}, "change " + std::to_string(i));
    }
}

/// Runs `write(0)` … `write(writers - 1)` beside somebody who passes every change to `see`, to the last one after the
/// last writer has ended, however it ended.
template <class Write, class See>
void write_and_follow(ItemStore& store, std::size_t writers, std::size_t limit, Write write, See see) {
    std::atomic<std::size_t> running = writers;
    in_parallel(writers + 1, [&](std::size_t thread) {
        if (thread < writers) {
            const auto ended = [&running](void*) { --running; };
            const std::unique_ptr<void, decltype(ended)> at_end{&running, ended};
            write(thread);
            return;
        }
        Position last = 0;
        for (bool over = false; !over;) {
            over = running == 0;
            for (auto found = store.changes("numbers", last, limit); !found.empty();
                 found = store.changes("numbers", last, limit)) {
                for (const Change& one : found) {
                    see(one, last);
                    last = one.position;
                }
            }
        }
    });
}

}  // namespace

void add_change_cases(Cases& cases) {
    cases.add("new_items_are_at_positions_1_2_3", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        require(fresh.store->changes("numbers", 0, 10).empty(), "an empty table has changes");
        std::vector<Record> records;
        for (const char* partition : {"b", "a", "c"}) {
            records.push_back({number(partition, 1), {{"x", partition}}});
            put(*fresh.store, records.back().key, records.back().item);
        }
        const auto changes = fresh.store->changes("numbers", 0, 10);
        require_order(changes, records, 0);
        require_equal(changes.back().position, Position{3}, "the last position");
    });

    cases.add("a_changed_item_moves_to_the_end_and_appears_once", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        for (const char* name : {"a", "b", "c"}) put(*fresh.store, plain(name), {{"x", 1}});
        put(*fresh.store, plain("a"), {{"x", 2}});
        require(applied(write_one(*fresh.store, {.key = plain("b"), .action = Update{{{"y", 1}}, {}}})), "update");
        put(*fresh.store, plain("c"), {{"x", 1}});
        const std::vector<Record> expected{
            {plain("a"), {{"x", 2}}}, {plain("b"), {{"x", 1}, {"y", 1}}}, {plain("c"), {{"x", 1}}}};
        require_order(fresh.store->changes("plain", 0, 10), expected, 0);
        require_order(fresh.store->changes("plain", 3, 10), expected, 3);
    });

    cases.add("an_erased_item_is_no_longer_among_the_changes", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        for (const char* name : {"a", "b", "c"}) put(*fresh.store, plain(name));
        erase(*fresh.store, plain("b"));
        erase(*fresh.store, plain("never"));
        require_order(fresh.store->changes("plain", 0, 10), {{plain("a"), {}}, {plain("c"), {}}}, 0);
        put(*fresh.store, plain("b"), {{"again", 1}});
        require_order(fresh.store->changes("plain", 0, 10),
                      {{plain("a"), {}}, {plain("c"), {}}, {plain("b"), {{"again", 1}}}}, 0);
    });

    cases.add("a_refused_write_is_no_change", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        put(*fresh.store, plain("a"));
        for (int i = 0; i < 3; ++i) {
            require(refused(write_one(*fresh.store,
                                      {.key = plain("a"), .action = Put{{{"x", i}}}, .condition = !item_exists()})),
                    "a write was applied");
        }
        put(*fresh.store, plain("b"));
        const auto changes = fresh.store->changes("plain", 0, 10);
        require_order(changes, {{plain("a"), {}}, {plain("b"), {}}}, 0);
        require_equal(changes.back().position, Position{2}, "the position after refused writes");
    });

    cases.add("changes_go_on_after_any_position_and_obey_their_limit", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        constexpr int count = 25;
        for (int i = 0; i < count; ++i) put(*fresh.store, number("p", i));
        for (std::size_t limit : {1u, 2u, 3u, 25u, 100u}) {
            Position last = 0;
            int seen = 0;
            for (;;) {
                const auto changes = fresh.store->changes("numbers", last, limit);
                if (changes.empty()) break;
                require(changes.size() <= limit, "more changes than the limit");
                for (const Change& one : changes) {
                    require_equal(one.position, last + 1, "the next position");
                    last = one.position;
                    require_equal(std::get<std::int64_t>(one.record.key.sort), std::int64_t{seen++}, "the next item");
                }
            }
            require_equal(seen, count, "changes seen with limit " + std::to_string(limit));
        }
        require(fresh.store->changes("numbers", count + 100, 10).empty(), "changes beyond the end");
    });

    cases.add("each_table_has_an_order_of_its_own", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        put(*fresh.store, plain("a"));
        put(*fresh.store, number("a", 1));
        put(*fresh.store, plain("b"));
        const auto changes = fresh.store->changes("plain", 0, 10);
        require_order(changes, {{plain("a"), {}}, {plain("b"), {}}}, 0);
        require_equal(changes.back().position, Position{2}, "the last position");
        require_order(fresh.store->changes("numbers", 0, 10), {{number("a", 1), {}}}, 0);
    });

    cases.add("the_last_change_is_that_of_the_table_and_only_grows", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        require_equal(fresh.store->last_change("plain"), Position{0}, "the last change of an empty table");
        for (const char* name : {"a", "b", "a", "c"}) {
            put(*fresh.store, plain(name));
            require_equal(fresh.store->last_change("plain"), fresh.store->changes("plain", 0, 10).back().position,
                          "the last change after a write");
        }
        require_equal(fresh.store->last_change("numbers"), Position{0}, "the last change of another table");
        const Position last = fresh.store->last_change("plain");
        erase(*fresh.store, plain("c"));
        require(fresh.store->last_change("plain") >= last, "the last change went back when its item was erased");
        put(*fresh.store, plain("d"));
        require(fresh.store->last_change("plain") > last, "a position was given twice");
    });

    cases.add("no_smaller_position_appears_after_a_larger_one", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        constexpr std::size_t writers = 4;
        constexpr int items = 60;
        std::map<Key, int> seen;
        const auto write = [&](std::size_t thread) {
            for (int i = 0; i < items; ++i) {
                put(*fresh.store, number("p" + std::to_string(i % 3), static_cast<int>(thread) * items + i));
            }
        };
        // Nothing is written twice, so positions stay dense: a gap is one that would appear too late.
        write_and_follow(*fresh.store, writers, 7, write, [&](const Change& one, Position last) {
            require_equal(one.position, last + 1, "the next visible position");
            require_equal(++seen[one.record.key], 1, "times that " + to_string(one.record.key) + " appeared");
        });
        require_equal(seen.size(), writers * items, "items seen");
    });

    cases.add("a_follower_of_changes_ends_up_with_the_last_state_of_every_item", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        constexpr std::size_t writers = 3;
        constexpr int rounds = 60;
        constexpr int items = 5;
        std::map<Key, std::int64_t> followed;
        const auto write = [&](std::size_t thread) {
            for (int i = 0; i < rounds; ++i) {
                put(*fresh.store, number("p" + std::to_string(i % items), static_cast<int>(thread)), {{"round", i}});
            }
        };
        write_and_follow(*fresh.store, writers, 4, write, [&](const Change& one, Position last) {
            require(one.position > last, "positions do not ascend");
            const std::int64_t* round = integer(one.record.item, "round");
            require(round != nullptr, "an item without its attribute");
            const auto [entry, is_new] = followed.try_emplace(one.record.key, *round);
            require(is_new || entry->second < *round, to_string(one.record.key) + " went back in time");
            entry->second = *round;
        });
        require_equal(followed.size(), writers * items, "items followed");
        for (const auto& [key, round] : followed) {
            require_equal(read_one(*fresh.store, key), {Item{{"round", round}}}, to_string(key));
        }
    });

    cases.add("an_answered_write_is_among_the_changes", [](FreshStore& fresh) {
        need_changes(*fresh.store);
        ensure_all(*fresh.store);
        in_parallel(4, [&](std::size_t thread) {
            Position last = 0;
            for (int i = 0; i < 25; ++i) {
                const Key key = number("p" + std::to_string(thread), i);
                put(*fresh.store, key);
                bool found = false;
                for (const Change& one : fresh.store->changes("numbers", last, 1000)) {
                    last = one.position;
                    found = found || one.record.key == key;
                }
                require(found, "the answered write of " + to_string(key) + " is not among the changes");
            }
        });
    });

    cases.add("changes_that_are_not_kept_are_invalid_to_ask_for", [](FreshStore& fresh) {
        if (fresh.store->capabilities().ordered_changes) throw CaseSkipped("the store keeps an order of changes");
        ensure_all(*fresh.store);
        require_throws<InvalidError>([&] { (void)fresh.store->changes("plain", 0, 10); }, "changes");
    });
}

}  // namespace varve::testing::detail
