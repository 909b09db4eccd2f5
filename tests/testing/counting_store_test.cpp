#include <varve/core/error.h>
#include <varve/memory/memory.h>
#include <varve/testing/counting_store.h>

#include <gtest/gtest.h>

namespace varve::testing {
namespace {

using namespace store;

struct CountingStoreTest : ::testing::Test {
    CountingStoreTest() {
        counting.ensure_table(
            {.name = "events", .partition_attribute = "id", .sort_attribute = "n", .sort = SortType::integer});
        counting.start_recording();
    }
    static Key key(std::int64_t n) { return {.table = "events", .partition = "a", .sort = n}; }

    CountingStore counting{memory::open()};
};

TEST_F(CountingStoreTest, every_call_is_counted_and_recorded_in_order) {
    const std::vector<Write> writes{{.key = key(1), .action = Put{}, .condition = !item_exists()},
                                    {.key = key(2), .action = Erase{}, .condition = item_exists()}};
    (void)counting.write(writes);
    const std::vector<Key> keys{key(1), key(2), key(3)};
    (void)counting.read(keys);
    (void)counting.query({.table = "events", .partition = "a"});
    (void)counting.scan({.table = "events", .segment = 1, .segments = 4});
    (void)counting.changes("events", 5, 10);
    const std::vector<Write> atomic{{.key = key(1), .action = Check{}, .condition = !item_exists()},
                                    {.key = key(4), .action = Update{{{"x", 1}}, {}}}};
    (void)counting.write_atomically(atomic);

    const RequestCounts expected{.reads = 3,
                                 .read_batches = 1,
                                 .writes = 4,
                                 .write_batches = 1,
                                 .atomic_batches = 1,
                                 .queries = 1,
                                 .scans = 1,
                                 .change_reads = 1,
                                 .refused_writes = 2};
    EXPECT_EQ(counting.counts(), expected);
    EXPECT_EQ(counting.counts().round_trips(), 6u);
    EXPECT_EQ(counting.recorded(),
              (std::vector<std::string>{"write: put events/a/1 applied, erase events/a/2 refused",
                                        "read: events/a/1, events/a/2, events/a/3", "query: events/a",
                                        "scan: events 1/4", "changes: events after 5",
                                        "write atomically: check events/a/1, update events/a/4 refused"}));
}

TEST_F(CountingStoreTest, a_reset_forgets_counts_and_lines) {
    const Key one = key(1);
    (void)counting.read({&one, 1});
    counting.reset();
    EXPECT_EQ(counting.counts(), RequestCounts{});
    EXPECT_TRUE(counting.recorded().empty());
    (void)counting.read({&one, 1});
    EXPECT_EQ(counting.recorded().size(), 1u);
}

TEST_F(CountingStoreTest, a_call_that_throws_counts_too) {
    EXPECT_THROW((void)counting.query({.table = "nowhere", .partition = "a"}), InvalidError);
    EXPECT_EQ(counting.counts().round_trips(), 1u);
}

}  // namespace
}  // namespace varve::testing
