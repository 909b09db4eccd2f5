#include <varve/testing/stored_shapes.h>
#include <varve/varve.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace varve::testing {
namespace {

/// An aggregate of these events, as the program of one day knows it.
template <class... Events>
struct Shop {
    static constexpr std::string_view name = "shop";
    using Event = std::variant<Events...>;
    void apply(const auto&) {}
};

class StoredShapes : public ::testing::Test {
  protected:
    StoredShapes() {
        std::filesystem::remove(file);
        ::unsetenv("VARVE_UPDATE_SHAPES");
    }
    ~StoredShapes() override { std::filesystem::remove(file); }

    template <class... Stored>
    void freeze() {
        ::setenv("VARVE_UPDATE_SHAPES", "1", 1);
        stored_shapes<Stored...>(file);
        ::unsetenv("VARVE_UPDATE_SHAPES");
    }
    /// What it fails with; empty: it does not.
    template <class... Stored>
    std::string failure() {
        try {
            stored_shapes<Stored...>(file);
        } catch (const AssertionFailed& failed) {
            return failed.what();
        }
        return {};
    }
    /// A change that breaks nothing: it only has to be frozen.
    template <class... Stored>
    void expect_safe() {
        EXPECT_NE(failure<Stored...>().find("what has changed is safe"), std::string::npos) << failure<Stored...>();
        freeze<Stored...>();
        EXPECT_EQ(failure<Stored...>(), "");
    }
    /// It is told with these words, and nothing is frozen.
    template <class... Stored>
    void expect_refused(const std::vector<std::string>& words) {
        const std::string before = text();
        const std::string message = failure<Stored...>();
        for (const std::string& word : words)
            EXPECT_NE(message.find(word), std::string::npos) << word << "\nin: " << message;
        EXPECT_THROW(freeze<Stored...>(), AssertionFailed);
        ::unsetenv("VARVE_UPDATE_SHAPES");
        EXPECT_EQ(text(), before);
    }
    std::string text() const {
        std::stringstream read;
        read << std::ifstream{file}.rdbuf();
        return read.str();
    }

    const std::string file =
        (std::filesystem::temp_directory_path() / ("varve-shapes-" + std::to_string(::getpid()) + ".json")).string();
};

namespace first {
enum class Colour { red, green };
struct Line {
    std::string product;
    std::int32_t count = 0;
};
struct Ordered {
    std::int64_t cents = 0;
    std::vector<Line> lines;
    std::optional<Colour> colour;
    std::chrono::seconds within{};
    std::map<std::string, std::variant<Line, Colour>> extras;
};
struct Tree {
    std::vector<Tree> left;
    std::vector<Tree> right;
};
}  // namespace first

struct Totals {
    static constexpr std::string_view table = "totals";
    std::int64_t cents = 0;
};
struct SendReceipt {
    std::string to;
};
struct Counted {
    static constexpr std::string_view name = "counter";
    static constexpr SnapshotPolicy snapshots{.every_slots = 5};
    using Event = std::variant<first::Tree>;
    std::int64_t count = 0;
    void apply(const first::Tree&) {}
};

TEST_F(StoredShapes, are_written_when_told_to_in_a_form_that_people_read) {
    EXPECT_NE(failure<Shop<first::Ordered>>().find("VARVE_UPDATE_SHAPES=1"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(file));
    freeze<Shop<first::Ordered>, Counted, Totals, SendReceipt>();
    EXPECT_EQ(text(), R"text({
  "events": {
    "counter/Tree": {
      "schema": 1,
      "fields": {
        "left": "list of object as the whole",
        "right": "list of object as the whole"
      }
    },
    "shop/Ordered": {
      "schema": 1,
      "fields": {
        "cents": "int64",
        "colour": "optional enum",
        "colour.green": "enumerator",
        "colour.red": "enumerator",
        "extras": "map from text to variant",
        "extras.Colour": "alternative enum",
        "extras.Colour.green": "enumerator",
        "extras.Colour.red": "enumerator",
        "extras.Line": "alternative object",
        "extras.Line.count": "int32",
        "extras.Line.product": "text",
        "lines": "list of object",
        "lines.count": "int32",
        "lines.product": "text",
        "within": "int64 of 1/1 s"
      }
    }
  },
  "effects": {
    "SendReceipt": {
      "schema": 1,
      "fields": {
        "to": "text"
      }
    }
  },
  "rows": {
    "totals": {
      "schema": 1,
      "fields": {
        "(key)": "one part",
        "cents": "int64"
      }
    }
  },
  "snapshots": {
    "counter": {
      "schema": 1,
      "fields": {
        "count": "int64"
      }
    }
  }
}
)text");
    EXPECT_EQ((failure<Shop<first::Ordered>, Counted, Totals, SendReceipt>()), "");
}

namespace renamed {
struct Ordered {
    std::int64_t amount_cents = 0;
};
}  // namespace renamed
namespace plain {
struct Ordered {
    std::int64_t cents = 0;
};
}  // namespace plain
namespace upcast {
struct Ordered {
    std::int64_t amount_cents = 0;
    using Previous = plain::Ordered;
    static Ordered upcast(const Previous& old) { return {old.cents}; }
};
}  // namespace upcast
namespace wrongly_upcast {
struct Ordered {
    std::int64_t amount_cents = 0;
    struct Previous {
        std::int64_t amount = 0;
    };
    static Ordered upcast(const Previous& old) { return {old.amount}; }
};
}  // namespace wrongly_upcast

TEST_F(StoredShapes, a_renamed_field_wants_an_upcaster) {
    freeze<Shop<plain::Ordered>>();
    expect_refused<Shop<renamed::Ordered>>(
        {"shop/Ordered: cents is gone and amount_cents is new, as if it was renamed", "Previous", "upcast"});
    expect_refused<Shop<wrongly_upcast::Ordered>>({"schema 1 is not what was stored: cents is gone and amount is new"});
    expect_safe<Shop<upcast::Ordered>>();
    expect_refused<Shop<plain::Ordered>>({"its schema was 2 and is 1"});
}

namespace wider {
enum class Colour { green, blue, red };
struct Line {
    std::string product;
    std::int64_t count = 0;
    std::optional<std::string> note;
};
struct Ordered {
    std::optional<std::int64_t> cents;
    std::vector<Line> lines;
    std::optional<Colour> colour;
    std::chrono::seconds within{};
    std::map<std::string, std::variant<Line, Colour, plain::Ordered>> extras;
    std::string by;
};
}  // namespace wider

TEST_F(StoredShapes, what_old_data_are_read_by_as_they_were_meant_is_safe) {
    freeze<Shop<first::Ordered>>();
    expect_safe<Shop<wider::Ordered>>();
    expect_safe<Shop<wider::Ordered, first::Tree>, Totals, SendReceipt>();
}

namespace narrower {
enum class Colour { red };
struct Line {
    std::string product;
    std::int16_t count = 0;
};
struct Ordered {
    std::string cents;
    std::vector<Line> lines;
    std::optional<Colour> colour;
    std::chrono::milliseconds within{};
    std::map<std::string, std::variant<Colour>> extras;
};
}  // namespace narrower

TEST_F(StoredShapes, what_is_narrower_or_has_another_unit_is_refused_and_named) {
    freeze<Shop<first::Ordered>>();
    expect_refused<Shop<narrower::Ordered>>(
        {"cents was int64 and is text", "lines.count was int32 and is int16", "the enumerator colour.green is gone",
         "the alternative extras.Line is gone", "within was int64 of 1/1 s and is int64 of 1/1000 s"});
}

namespace smaller {
struct Ordered {
    std::int64_t cents = 0;
};
}  // namespace smaller

TEST_F(StoredShapes, a_field_may_go_by_itself) {
    freeze<Shop<first::Ordered>>();
    expect_safe<Shop<smaller::Ordered>>();
}

struct Purchased {
    std::int64_t cents = 0;
};
struct NamedPurchased {
    static constexpr std::string_view name = "Ordered";
    std::int64_t cents = 0;
};

TEST_F(StoredShapes, a_renamed_event_wants_its_name) {
    freeze<Shop<plain::Ordered>>();
    expect_refused<Shop<Purchased>>({"shop/Ordered is gone", R"(static constexpr std::string_view name = "Ordered")"});
    EXPECT_EQ(failure<Shop<NamedPurchased>>(), "");
}

struct RenamedTotals {
    static constexpr std::string_view table = "totals";
    std::int64_t amount = 0;
};
struct SortedTotals {
    static constexpr std::string_view table = "totals";
    static constexpr bool sorted = true;
    std::int64_t cents = 0;
};
struct ReCounted {
    static constexpr std::string_view name = "counter";
    static constexpr SnapshotPolicy snapshots{.every_slots = 5};
    using Event = std::variant<first::Tree>;
    std::string text;
    void apply(const first::Tree&) {}
};

TEST_F(StoredShapes, rows_are_held_to_their_fields_and_keys_and_snapshots_are_free) {
    freeze<Totals, Counted>();
    expect_refused<RenamedTotals, Counted>({"totals: cents is gone and amount is new", "rows have no upcasters"});
    expect_refused<SortedTotals, Counted>({"(key) was one part and is two parts"});
    expect_safe<Totals, ReCounted>();
}

}  // namespace
}  // namespace varve::testing
