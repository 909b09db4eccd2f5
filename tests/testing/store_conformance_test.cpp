#include <varve/core/error.h>
#include <varve/memory/memory.h>
#include <varve/store/adapter.h>
#include <varve/testing/passing_store.h>
#include <varve/testing/store_conformance.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include <gtest/gtest.h>

// A suite that passes everything proves nothing: each of these stores breaks one promise of the port, and has to fail.

namespace varve::testing {
namespace {

using namespace store;

/// A right store (its conformance is tested with its adapter), for others to spoil one method of.
struct RightStore : PassingStore {
    RightStore() : PassingStore(memory::open()) {}
};

template <class Store>
bool fails(const std::string& name) {
    const auto cases = store_conformance();
    const auto found = std::ranges::find(cases, name, &ConformanceCase::name);
    if (found == cases.end()) throw InvalidError("no case is named " + name);
    try {
        found->run([] { return std::make_shared<Store>(); });
    } catch (const CaseSkipped&) {
    } catch (const CaseFailed&) {
        return true;
    }
    return false;
}

TEST(StoreConformance, every_case_has_a_name_of_its_own) {
    std::set<std::string> names;
    for (const ConformanceCase& one : store_conformance()) EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_GE(names.size(), 60u);
}

TEST(StoreConformance, conditions_that_are_not_atomic_with_their_write_are_found_out) {
    struct Store : RightStore {
        std::vector<WriteAnswer> write(std::span<const Write> writes) override {
            std::vector<WriteAnswer> answers;
            for (Write one : writes) {
                const std::optional<Item> current = inner().read({&one.key, 1}).at(0);
                if (!holds(one.condition, current ? &*current : nullptr)) {
                    answers.emplace_back(Refused{current});
                    continue;
                }
                std::this_thread::yield();
                one.condition = {};
                answers.push_back(inner().write({&one, 1}).at(0));
            }
            return answers;
        }
    };
    bool found_out = false;  // a race may be missed once
    for (int i = 0; i < 50 && !found_out; ++i) {
        found_out = fails<Store>("of_many_who_create_an_item_one_succeeds") ||
                    fails<Store>("no_increment_by_concurrent_writers_is_lost");
    }
    EXPECT_TRUE(found_out);
}

TEST(StoreConformance, a_refusal_without_its_item_is_found_out) {
    struct Store : RightStore {
        std::vector<WriteAnswer> write(std::span<const Write> writes) override {
            auto answers = inner().write(writes);
            for (WriteAnswer& answer : answers) {
                if (std::holds_alternative<Refused>(answer)) answer = Refused{};
            }
            return answers;
        }
    };
    EXPECT_TRUE(fails<Store>("a_refused_write_changes_nothing_and_brings_the_current_item"));
}

/// One whose items can be damaged. It does with them what it must.
class Damageable : public RightStore {
  public:
    std::vector<std::optional<Item>> read(std::span<const Key> keys) override {
        for (const Key& key : keys) {
            if (damaged.contains(key)) throw CorruptionError(to_string(key));
        }
        return inner().read(keys);
    }
    std::vector<WriteAnswer> write(std::span<const Write> writes) override {
        auto answers = inner().write(writes);
        for (std::size_t i = 0; i < writes.size(); ++i) {
            if (std::holds_alternative<Refused>(answers[i]) && damaged.contains(writes[i].key)) {
                answers[i] = Failure{.kind = ErrorKind::corruption, .message = to_string(writes[i].key)};
            }
        }
        return answers;
    }
    AtomicAnswer write_atomically(std::span<const Write> writes) override {
        AtomicAnswer answer = inner().write_atomically(writes);
        if (const auto* batch = std::get_if<RefusedBatch>(&answer)) {
            for (const auto& one : batch->refused) {
                if (damaged.contains(writes[one.index].key))
                    return Failure{.kind = ErrorKind::corruption, .message = to_string(writes[one.index].key)};
            }
        }
        return answer;
    }

    std::set<Key> damaged;
};

/// What the case about damaged items says to such a store; empty: nothing.
template <class Store>
std::string said_of_damage() {
    const auto cases = store_conformance();
    const auto found = std::ranges::find(
        cases, std::string{"an_item_that_cannot_be_read_costs_no_other_write_its_answer"}, &ConformanceCase::name);
    try {
        found->run([] {
            const auto store = std::make_shared<Store>();
            FreshStore fresh{store};
            fresh.damage = [store](const Key& key) { store->damaged.insert(key); };
            return fresh;
        });
    } catch (const std::exception& error) {
        return error.what();
    }
    return {};
}

TEST(StoreConformance, a_batch_whose_answers_are_lost_with_one_damaged_item_is_found_out) {
    EXPECT_EQ(said_of_damage<Damageable>(), "");

    struct Throws : Damageable {
        std::vector<WriteAnswer> write(std::span<const Write> writes) override {
            auto answers = Damageable::write(writes);
            for (const WriteAnswer& answer : answers) {
                if (const auto* failure = std::get_if<Failure>(&answer)) raise(*failure);
            }
            return answers;
        }
    };
    EXPECT_NE(said_of_damage<Throws>(), "");

    struct Doubts : Damageable {
        std::vector<WriteAnswer> write(std::span<const Write> writes) override {
            auto answers = Damageable::write(writes);
            for (WriteAnswer& answer : answers) {
                if (auto* failure = std::get_if<Failure>(&answer)) failure->in_doubt = true;
            }
            return answers;
        }
    };
    EXPECT_NE(said_of_damage<Doubts>(), "");

    struct ThrowsAtomically : Damageable {
        AtomicAnswer write_atomically(std::span<const Write> writes) override {
            AtomicAnswer answer = Damageable::write_atomically(writes);
            if (const auto* failure = std::get_if<Failure>(&answer)) raise(*failure);
            return answer;
        }
    };
    EXPECT_NE(said_of_damage<ThrowsAtomically>(), "");
}

TEST(StoreConformance, reads_that_are_mixed_up_when_they_go_together_are_found_out) {
    struct Store : RightStore {
        FoundTogether read_together(std::span<const Key> keys, std::span<const Query> queries) override {
            FoundTogether found = inner().read_together(keys, queries);
            std::ranges::reverse(found.pages);
            return found;
        }
    };
    EXPECT_TRUE(fails<Store>("what_is_read_together_is_what_each_read_finds"));
    struct Forgetful : RightStore {
        FoundTogether read_together(std::span<const Key> keys, std::span<const Query> queries) override {
            FoundTogether found = inner().read_together(keys, queries);
            for (Page& page : found.pages) page.next.reset();
            return found;
        }
    };
    EXPECT_TRUE(fails<Forgetful>("what_is_read_together_is_what_each_read_finds"));
}

TEST(StoreConformance, a_batch_that_is_all_or_nothing_is_found_out) {
    struct Store : RightStore {
        std::vector<WriteAnswer> write(std::span<const Write> writes) override {
            if (writes.size() < 2 || writes.size() > 1000) return inner().write(writes);
            const AtomicAnswer answer = inner().write_atomically(writes);
            std::vector<WriteAnswer> answers(writes.size(), Applied{});
            if (const auto* batch = std::get_if<RefusedBatch>(&answer)) {
                for (const auto& one : batch->refused) answers[one.index] = Refused{one.current};
            }
            return answers;
        }
    };
    EXPECT_TRUE(fails<Store>("writes_of_a_batch_do_not_depend_on_each_other"));
}

TEST(StoreConformance, pages_without_a_bound_on_their_bytes_are_found_out) {
    struct Store : RightStore {
        Page query(const Query& query) override {
            Page all = inner().query(query);
            for (Query more = query; all.next && all.records.size() < query.limit;) {
                more.next = all.next;
                Page page = inner().query(more);
                std::ranges::move(page.records, std::back_inserter(all.records));
                all.next = page.next;
            }
            return all;
        }
    };
    EXPECT_TRUE(fails<Store>("a_page_is_full_when_it_holds_so_many_bytes"));
}

TEST(StoreConformance, empty_text_taken_for_nothing_is_found_out) {
    struct Store : RightStore {
        std::vector<std::optional<Item>> read(std::span<const Key> keys) override {
            auto items = inner().read(keys);
            for (auto& item : items) {
                if (item) std::erase_if(*item, [](const auto& attribute) { return attribute.second == Value{""}; });
            }
            return items;
        }
    };
    EXPECT_TRUE(fails<Store>("every_value_comes_back_as_it_was"));
}

TEST(StoreConformance, a_query_that_skips_a_record_between_pages_is_found_out) {
    struct Store : RightStore {
        Page query(const Query& query) override {
            Page page = inner().query(query);
            if (page.next && page.records.size() > 1) page.records.pop_back();
            return page;
        }
    };
    EXPECT_TRUE(fails<Store>("pages_make_up_the_whole_in_both_directions"));
}

TEST(StoreConformance, bounds_that_do_not_belong_to_their_range_are_found_out) {
    struct Store : RightStore {
        Page query(const Query& query) override {
            Page page = inner().query(query);
            std::erase_if(page.records, [&](const Record& record) { return record.key.sort == query.last; });
            return page;
        }
    };
    EXPECT_TRUE(fails<Store>("both_bounds_of_a_range_belong_to_it"));
}

TEST(StoreConformance, segments_that_overlap_are_found_out) {
    struct Store : RightStore {
        Page scan(const Scan& scan) override {
            Scan whole = scan;
            whole.segment = 0;
            whole.segments = 1;
            return inner().scan(whole);
        }
    };
    EXPECT_TRUE(fails<Store>("segments_cover_a_table_without_overlap"));
    EXPECT_FALSE(fails<Store>("a_scan_sees_every_item_once"));
}

TEST(StoreConformance, positions_with_gaps_are_found_out) {
    struct Store : RightStore {
        std::vector<Change> changes(const std::string& table, Position after, std::size_t limit) override {
            auto found = inner().changes(table, after / 2, limit);
            for (Change& one : found) one.position *= 2;
            return found;
        }
    };
    EXPECT_TRUE(fails<Store>("new_items_are_at_positions_1_2_3"));
}

TEST(StoreConformance, a_change_that_appears_after_a_later_one_is_found_out) {
    struct Store : RightStore {
        std::vector<Change> changes(const std::string& table, Position after, std::size_t limit) override {
            auto found = inner().changes(table, after, limit);
            // As if the first of several were not yet committed.
            if (found.size() > 1 && hide.fetch_add(1) % 2 == 0) found.erase(found.begin());
            return found;
        }
        std::atomic<int> hide = 0;
    };
    EXPECT_TRUE(fails<Store>("no_smaller_position_appears_after_a_larger_one"));
}

TEST(StoreConformance, an_atomic_batch_that_shows_in_parts_is_found_out) {
    struct Store : RightStore {
        std::vector<std::optional<Item>> read(std::span<const Key> keys) override {
            auto items = inner().read(keys);
            ++looks;
            return items;
        }
        Page query(const Query& query) override {
            Page page = inner().query(query);
            ++looks;
            return page;
        }
        AtomicAnswer write_atomically(std::span<const Write> writes) override {
            for (const Write& one : writes) {
                (void)inner().write({&one, 1});
                // Somebody looks in between, unless nobody does.
                const int before = looks;
                for (int i = 0; i < 10'000 && looks == before; ++i) std::this_thread::yield();
            }
            return Applied{};
        }
        std::atomic<int> looks = 0;
    };
    EXPECT_TRUE(fails<Store>("who_has_seen_a_part_of_an_atomic_batch_sees_all_of_it"));
}

TEST(StoreConformance, an_atomic_batch_applied_in_part_is_found_out) {
    struct Store : RightStore {
        AtomicAnswer write_atomically(std::span<const Write> writes) override {
            check(writes, Batch::atomic);
            for (const Write& one : writes) {
                if (std::holds_alternative<Check>(one.action)) continue;
                const auto answer = inner().write({&one, 1}).at(0);
                if (std::holds_alternative<Refused>(answer)) return RefusedBatch{};
            }
            return Applied{};
        }
    };
    EXPECT_TRUE(fails<Store>("an_atomic_batch_with_a_refusal_changes_nothing_and_names_every_refusal"));
}

}  // namespace
}  // namespace varve::testing
