#include "scratch_file.h"
#include "support/json_cases.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>
#include <varve/store/item_text.h>
#include <varve/store/open.h>

#include <limits>

#include <sqlite3.h>

namespace varve::sqlite {
namespace {

using store::Bytes;
using store::Item;

/// What a program that knows nothing of varve finds: all rows of a query, columns joined by '|'.
std::vector<std::string> foreign_query(const std::string& path, const std::string& sql) {
    std::vector<std::string> rows;
    sqlite3* connection = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
    const auto add = [](void* out, int columns, char** values, char**) {
        std::string row;
        for (int i = 0; i < columns; ++i) row += (i == 0 ? "" : "|") + std::string{values[i] ? values[i] : "NULL"};
        static_cast<std::vector<std::string>*>(out)->push_back(row);
        return 0;
    };
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), add, &rows, &error), SQLITE_OK) << error;
    sqlite3_close(connection);
    return rows;
}

Item item_of_everything() {
    return {{"text", std::string{"a \"quoted\" \\ line\nwith \xc3\xa9 and \x01"}},
            {"empty", std::string{}},
            {"least", std::numeric_limits<std::int64_t>::min()},
            {"most", std::numeric_limits<std::int64_t>::max()},
            {"bytes", Bytes{std::byte{0}, std::byte{0xff}, std::byte{0x10}, std::byte{0x7f}}},
            {"no bytes", Bytes{}},
            {"$bytes", std::string{"a name like any other"}}};
}

TEST(StoredFormat, a_foreign_program_reads_items_as_json) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, {account("alice", 7), store::Put{item_of_everything()}})));
    EXPECT_EQ(foreign_query(file.path(), "SELECT id, version, item, position FROM accounts"),
              std::vector<std::string>{
                  R"(alice|7|{"$bytes":"a name like any other","bytes":{"$bytes":"AP8Qfw=="},"empty":"",)"
                  R"("least":-9223372036854775808,"most":9223372036854775807,"no bytes":{"$bytes":""},)"
                  "\"text\":\"a \\\"quoted\\\" \\\\ line\\nwith \xc3\xa9 and \\u0001\"}|1"});
    EXPECT_EQ(foreign_query(file.path(), "SELECT json_extract(item, '$.most') FROM accounts"),
              std::vector<std::string>{"9223372036854775807"});
    EXPECT_EQ(foreign_query(file.path(),
                            "SELECT name, sql_name, partition_attribute, sort_attribute, sort_type, "
                            "expiry_attribute, last_erased FROM varve_tables"),
              std::vector<std::string>{"accounts|accounts|id|version|INTEGER||0"});
    EXPECT_EQ(foreign_query(file.path(), "PRAGMA integrity_check"), std::vector<std::string>{"ok"});
}

TEST(StoredFormat, every_value_comes_back_as_it_was_stored) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, {account("alice", 7), store::Put{item_of_everything()}})));
    EXPECT_EQ(read_one(*store, account("alice", 7)), item_of_everything());
    for (std::size_t size = 0; size < 20; ++size) {
        const Item item{{"b", Bytes(size, std::byte{0xa5})}, {"t", std::string(size, '\\')}};
        ASSERT_TRUE(is_applied(write_one(*store, {account("bob", 1), store::Put{item}})));
        EXPECT_EQ(read_one(*store, account("bob", 1)), item) << size;
    }
}

TEST(StoredFormat, text_that_is_no_item_is_corruption_and_named) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, {account("alice", 7), store::Put{{}}})));
    for (const char* text : {"", "nonsense", "{", "[]", "{\"a\":1.5}", "{\"a\":true}", "{\"a\":{\"b\":1}}",
                             "{\"a\":9223372036854775808}", "{\"a\":1,\"a\":2}", "{\"a\":{\"$bytes\":\"A\"}}",
                             "{\"a\":{\"$bytes\":\"QQ==\",\"b\":1}}", "{}{}", "{\"a\":\"\xff\"}"}) {
        foreign_query(file.path(), "UPDATE accounts SET item = '" + std::string{text} + "'");
        try {
            (void)read_one(*store, account("alice", 7));
            ADD_FAILURE() << "read " << text;
        } catch (const CorruptionError& error) {
            EXPECT_NE(std::string{error.what()}.find("accounts/alice/7"), std::string::npos) << error.what();
        }
    }
    // A damaged item fails the write that must look at it, and no other of its batch.
    const std::vector<store::Write> writes{
        {account("alice", 7), store::Put{{}}, store::equals("a", std::int64_t{1})},
        {account("bob", 1), store::Put{{}}},
    };
    const auto answers = store->write(writes);
    ASSERT_TRUE(std::holds_alternative<Failure>(answers.at(0)));
    EXPECT_EQ(std::get<Failure>(answers[0]).kind, ErrorKind::corruption);
    EXPECT_FALSE(std::get<Failure>(answers[0]).in_doubt);
    EXPECT_TRUE(is_applied(answers.at(1)));
}

TEST(StoredFormat, names_that_sqlite_would_confuse_stay_apart) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    const std::vector<std::string> names{"events",       "Events", "EVENTS", "sqlite_master",
                                         "varve_tables", "a.b-c",  "select"};
    for (const std::string& name : names) {
        store->ensure_table(
            {.name = name, .partition_attribute = "Item", .sort_attribute = "ITEM\"x", .sort = store::SortType::text});
        ASSERT_TRUE(is_applied(write_one(*store, {{name, "p", "s"}, store::Put{{{"position", name}}}})));
    }
    store->ensure_table({.name = "log",
                         .partition_attribute = "POSITION",
                         .sort_attribute = "position",
                         .sort = store::SortType::text});
    const auto again = sqlite::open(file.options());
    for (const std::string& name : names) {
        EXPECT_EQ(read_one(*again, {name, "p", "s"}), (Item{{"position", name}})) << name;
        EXPECT_EQ(again->changes(name, 0, 10).size(), 1U) << name;
    }
}

TEST(StoredFormat, only_what_is_json_is_read) {
    for (const JsonCase& one : json_cases()) {
        if (one.valid) continue;
        EXPECT_THROW((void)store::parse_item("{\"x\":" + one.text + "}"), CorruptionError) << one.text;
    }
    using namespace std::string_view_literals;
    for (const std::string_view text :
         {"{}\0garbage"sv, "{}\0"sv, "\xef\xbb\xbf{}"sv, "{\"x\":0.0000000001e-2147483639}"sv, "{\"x\":1.0}"sv}) {
        EXPECT_THROW((void)store::parse_item(text), CorruptionError) << text;
    }
    EXPECT_EQ(store::parse_item(R"({"x":-9223372036854775808,"y":-0})"),
              (store::Item{{"x", std::numeric_limits<std::int64_t>::min()}, {"y", 0}}));
}

}  // namespace
}  // namespace varve::sqlite
