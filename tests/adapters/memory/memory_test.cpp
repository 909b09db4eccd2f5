#include <varve/core/error.h>
#include <varve/memory/memory.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <gtest/gtest.h>

namespace varve::memory {
namespace {

const store::TableSchema notes{.name = "notes", .partition_attribute = "id"};

void put(store::ItemStore& store, const std::string& id) {
    const store::Write write{.key = {.table = "notes", .partition = id}, .action = store::Put{{{"text", "x"}}}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store.write({&write, 1}).at(0)));
}

bool has(store::ItemStore& store, const std::string& id) {
    const store::Key key{.table = "notes", .partition = id};
    return store.read({&key, 1}).at(0).has_value();
}

TEST(MemoryStore, linking_the_library_registers_its_scheme) {
    EXPECT_NO_THROW(varve::open("memory:")->ensure_table(notes));
}

TEST(MemoryStore, one_name_is_one_store_for_as_long_as_somebody_holds_it) {
    auto first = varve::open("memory:shared");
    first->ensure_table(notes);
    put(*first, "a");
    EXPECT_TRUE(has(*varve::open("memory:shared"), "a"));
    first.reset();
    auto next = varve::open("memory:shared");
    next->ensure_table(notes);
    EXPECT_FALSE(has(*next, "a"));
}

TEST(MemoryStore, without_a_name_each_store_is_a_new_one) {
    auto first = varve::open("memory:");
    first->ensure_table(notes);
    put(*first, "a");
    auto second = varve::open("memory:");
    second->ensure_table(notes);
    EXPECT_FALSE(has(*second, "a"));
}

TEST(MemoryStore, the_item_limit_is_an_option_of_the_url) {
    EXPECT_EQ(varve::open("memory:?item_bytes_max=512")->capabilities().item_bytes_max, 512u);
    EXPECT_THROW((void)varve::open("memory:?item_bytes_max=many"), ConfigError);
    const auto held = varve::open("memory:limited?item_bytes_max=512");
    EXPECT_THROW((void)varve::open("memory:limited?item_bytes_max=1024"), ConfigError);
}

}  // namespace
}  // namespace varve::memory
