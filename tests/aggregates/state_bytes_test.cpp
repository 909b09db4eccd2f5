#include <varve/aggregates/state_bytes.h>

#include <list>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace varve::detail {
namespace {

struct Numbers {
    std::int64_t a = 0;
    std::int64_t b = 0;
};

TEST(StateBytes, of_numbers_are_their_size) {
    EXPECT_EQ(state_bytes(Numbers{}), sizeof(Numbers));
}

struct Named {
    std::string name;
    std::vector<std::int64_t> values;
};

TEST(StateBytes, of_a_short_string_are_inside_it) {
    EXPECT_EQ(state_bytes(Named{"short", {}}), sizeof(Named));
}

TEST(StateBytes, of_a_long_string_and_a_vector_are_what_they_have_reserved) {
    Named named;
    named.name.assign(1000, 'x');
    named.values.reserve(500);
    EXPECT_EQ(state_bytes(named), sizeof(Named) + named.name.capacity() + 500 * sizeof(std::int64_t));
}

struct Nested {
    std::map<std::string, Named> by_name;
    std::optional<Named> one;
    std::variant<Numbers, Named> either;
    std::unique_ptr<Named> owned;
    std::list<std::int64_t> list;
};

TEST(StateBytes, of_what_is_nested_are_found_at_every_depth) {
    const std::string text(1000, 'x');
    const std::size_t empty = state_bytes(Nested{});
    const auto more = [&](const auto& fill) {
        Nested nested;
        fill(nested);
        return state_bytes(nested) - empty;
    };
    EXPECT_GE(more([&](Nested& n) { n.by_name[text].name = text; }), 2000 + sizeof(Named));
    EXPECT_GE(more([&](Nested& n) { n.one = Named{text, {}}; }), 1000u);
    EXPECT_GE(more([&](Nested& n) { n.either = Named{text, {}}; }), 1000u);
    EXPECT_GE(more([&](Nested& n) { n.owned = std::make_unique<Named>(Named{text, {}}); }), 1000 + sizeof(Named));
    EXPECT_GE(more([&](Nested& n) { n.list.resize(10); }), 10 * sizeof(std::int64_t));
}

class Hidden {
  public:
    explicit Hidden(std::size_t size) : data_(size) {}
    std::size_t bytes() const { return sizeof(*this) + data_.capacity(); }

  private:
    std::vector<char> data_;
};

TEST(StateBytes, are_what_the_state_says_if_it_says) {
    EXPECT_EQ(state_bytes(Hidden{1000}), sizeof(Hidden) + 1000);
}

}  // namespace
}  // namespace varve::detail
