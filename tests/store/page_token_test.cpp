#include <varve/core/error.h>
#include <varve/store/page_token.h>

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace varve::store {
namespace {

TableSchema of(SortType sort) {
    return {.name = "things", .partition_attribute = "p", .sort_attribute = "s", .sort = sort};
}

TEST(PageToken, gives_the_key_back_that_it_was_made_of) {
    const std::pair<SortType, SortKey> sorts[] = {{SortType::none, {}},
                                                  {SortType::integer, std::int64_t{0}},
                                                  {SortType::integer, std::numeric_limits<std::int64_t>::min()},
                                                  {SortType::integer, std::numeric_limits<std::int64_t>::max()},
                                                  {SortType::text, "1:2"},
                                                  {SortType::text, std::string(3, '\0')}};
    for (const auto& [type, sort] : sorts) {
        const TableSchema schema = of(type);
        EXPECT_EQ(sort_of_query_token(schema, query_token(sort)), sort);
        for (const char* partition : {"a", "7:", ":", "ü"}) {
            const Key key{"things", partition, sort};
            EXPECT_EQ(key_of_scan_token(schema, scan_token(key)), key) << partition;
        }
    }
}

TEST(PageToken, of_something_else_is_refused_by_the_tables_name) {
    const std::pair<SortType, const char*> foreign[] = {
        {SortType::none, "1"},     {SortType::integer, ""},   {SortType::integer, "x"},
        {SortType::integer, "1x"}, {SortType::integer, " 1"}, {SortType::integer, "9223372036854775808"},
        {SortType::text, ""}};
    for (const auto& [type, token] : foreign) {
        EXPECT_THROW(static_cast<void>(sort_of_query_token(of(type), token)), InvalidError) << token;
        EXPECT_THROW(static_cast<void>(key_of_scan_token(of(type), std::string{"1:a"} + token)), InvalidError) << token;
    }
    for (const char* token : {"", ":", "a", "1", "0:", "2:a", "-1:a", "99999999999999999999:a"}) {
        try {
            static_cast<void>(key_of_scan_token(of(SortType::none), token));
            ADD_FAILURE() << token;
        } catch (const InvalidError& error) {
            EXPECT_NE(std::string_view{error.what()}.find("'things'"), std::string_view::npos) << error.what();
        }
    }
}

}  // namespace
}  // namespace varve::store
