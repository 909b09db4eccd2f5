#include "testing/conformance.h"

#include <varve/testing/seeded_random.h>

#include <limits>

namespace varve::testing::detail {
namespace {

Bytes bytes_of(std::initializer_list<int> numbers) {
    Bytes result;
    for (int one : numbers) result.push_back(static_cast<std::byte>(one));
    return result;
}

Item subject() {
    return {{"five", 5},
            {"negative", -5},
            {"largest", std::numeric_limits<std::int64_t>::max()},
            {"text", "m"},
            {"umlaut", "ä"},
            {"empty", ""},
            {"bytes", bytes_of({0x7f, 0x80})},
            {"no_bytes", Bytes{}}};
}

/// Gives each condition an item of its own to be tried on, all in one batch. Requires that a write is applied exactly
/// if its condition is expected to hold.
void try_all(ItemStore& store, const std::vector<std::pair<Condition, bool>>& conditions,
             const std::optional<Item>& item, const std::function<std::string(std::size_t)>& name) {
    std::vector<Write> preparations;
    std::vector<Write> trials;
    for (std::size_t i = 0; i < conditions.size(); ++i) {
        const Key key = word("tried", std::to_string(i));
        preparations.push_back(item ? Write{.key = key, .action = Put{*item}} : Write{.key = key, .action = Erase{}});
        trials.push_back({.key = key, .action = Update{{{"touched", 1}}, {}}, .condition = conditions[i].first});
    }
    for (const WriteAnswer& answer : store.write(preparations)) require(applied(answer), "a put was not applied");
    const auto answers = store.write(trials);
    require_equal(answers.size(), trials.size(), "answers");
    for (std::size_t i = 0; i < conditions.size(); ++i) {
        require(holds(conditions[i].first, item ? &*item : nullptr) == conditions[i].second,
                "store::holds decides otherwise: " + name(i));
        require(conditions[i].second ? applied(answers[i]) : refused(answers[i]),
                "the condition " + name(i) + " should " + (conditions[i].second ? "hold" : "not hold") + " of " +
                    to_text(item) + ", the write was " + to_text(answers[i]));
    }
}

Condition operation(Condition::Operator op, std::vector<Condition> operands) {
    Condition condition{.op = op};
    condition.operands = std::move(operands);
    return condition;
}

Value random_value(SeededRandom& random) {
    static const std::vector<Value> values{-6,
                                           -5,
                                           0,
                                           5,
                                           6,
                                           std::numeric_limits<std::int64_t>::max(),
                                           "",
                                           "m",
                                           "ä",
                                           "5",
                                           Bytes{},
                                           bytes_of({0x7f, 0x80}),
                                           bytes_of({0x80})};
    return values[random.below(values.size())];
}

Condition random_condition(SeededRandom& random, int depth) {
    static const std::vector<std::string> attributes{"five",  "negative", "largest",  "text",   "umlaut",
                                                     "empty", "bytes",    "no_bytes", "missing"};
    const std::string& attribute = attributes[random.below(attributes.size())];
    switch (random.below(depth > 0 ? 7 : 4)) {
        case 0: return item_exists();
        case 1: return exists(attribute);
        case 2: return equals(attribute, random_value(random));
        case 3: return less(attribute, random_value(random));
        case 4: return !random_condition(random, depth - 1);
        case 5: return random_condition(random, depth - 1) && random_condition(random, depth - 1);
        default: return random_condition(random, depth - 1) || random_condition(random, depth - 1);
    }
}

}  // namespace

void add_condition_cases(Cases& cases) {
    cases.add("each_operator_decides_as_it_is_defined", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        using Op = Condition::Operator;
        const std::vector<std::pair<Condition, bool>> of_item{
            {{}, true},
            {operation(Op::any_of, {}), false},
            {item_exists(), true},
            {!item_exists(), false},
            {exists("empty"), true},
            {exists("no_bytes"), true},
            {exists("missing"), false},
            {!exists("missing"), true},
            {equals("five", 5), true},
            {equals("five", 6), false},
            {equals("five", "5"), false},
            {equals("text", "m"), true},
            {equals("text", "M"), false},
            {equals("text", bytes_of({'m'})), false},
            {equals("umlaut", "a\xcc\x88"), false},
            {equals("empty", ""), true},
            {equals("empty", Bytes{}), false},
            {equals("no_bytes", Bytes{}), true},
            {equals("no_bytes", ""), false},
            {equals("missing", ""), false},
            {equals("missing", 0), false},
            {equals("bytes", bytes_of({0x7f, 0x80})), true},
            {equals("largest", std::numeric_limits<std::int64_t>::max()), true},
            {equals("largest", std::numeric_limits<std::int64_t>::max() - 1), false},
            {!equals("missing", 5), true},
            {less("five", 6), true},
            {less("five", 5), false},
            {less("five", 40), true},
            {less("five", -6), false},
            {less("negative", -4), true},
            {less("negative", -6), false},
            {less("largest", std::numeric_limits<std::int64_t>::min()), false},
            {less("five", "6"), false},
            {less("text", 6), false},
            {less("text", "n"), true},
            {less("text", "m"), false},
            {less("text", "M"), false},
            {less("text", "mm"), true},
            {less("text", "ä"), true},
            {less("umlaut", "z"), false},
            {less("empty", "\x01"), true},
            {less("bytes", bytes_of({0x80})), true},
            {less("bytes", bytes_of({0x7f, 0x81})), true},
            {less("bytes", bytes_of({0x7f})), false},
            {less("no_bytes", bytes_of({0})), true},
            {less("missing", 100), false},
            {!less("missing", 100), true},
            {equals("five", 5) && equals("text", "m"), true},
            {equals("five", 5) && equals("text", "n"), false},
            {equals("five", 6) || equals("text", "m"), true},
            {equals("five", 6) || equals("text", "n"), false},
            {!item_exists() || (equals("five", 5) && !less("negative", -5)), true},
            {!(equals("five", 5) || exists("missing")), false},
            {!!exists("five"), true},
        };
        const auto name = [](std::size_t i) { return "number " + std::to_string(i) + " of those tried on an item"; };
        try_all(*fresh.store, of_item, subject(), name);
    });

    cases.add("of_an_absent_item_only_its_absence_holds", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const std::vector<std::pair<Condition, bool>> of_nothing{
            {{}, true},
            {item_exists(), false},
            {!item_exists(), true},
            {exists("x"), false},
            {!exists("x"), true},
            {equals("x", 0), false},
            {equals("x", ""), false},
            {!equals("x", 0), true},
            {less("x", 1), false},
            {!less("x", 1), true},
            {!item_exists() || equals("x", 1), true},
            {!item_exists() && equals("x", 1), false},
            {!(item_exists() && exists("x")), true},
        };
        const auto name = [](std::size_t i) { return "number " + std::to_string(i) + " of those tried on nothing"; };
        try_all(*fresh.store, of_nothing, std::nullopt, name);
    });

    cases.add("nested_conditions_decide_like_the_evaluator", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        for (const std::optional<Item>& item : {std::optional<Item>{subject()}, std::optional<Item>{}}) {
            SeededRandom random{20'260'101};
            std::vector<std::pair<Condition, bool>> conditions;
            for (int i = 0; i < 200; ++i) {
                Condition condition = random_condition(random, 4);
                const bool expected = holds(condition, item ? &*item : nullptr);
                conditions.emplace_back(std::move(condition), expected);
            }
            const auto name = [](std::size_t i) { return "number " + std::to_string(i) + " of the random ones"; };
            try_all(*fresh.store, conditions, item, name);
        }
    });

    cases.add("every_kind_of_write_obeys_its_condition", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const std::vector<decltype(Write::action)> actions{Put{{{"x", 2}}}, Update{{{"x", 2}}, {}}, Erase{}};
        for (const auto& action : actions) {
            put(*fresh.store, plain("a"), {{"x", 1}});
            require(
                refused(write_one(*fresh.store, {.key = plain("a"), .action = action, .condition = equals("x", 2)})),
                "a write was applied although its condition did not hold");
            require(
                applied(write_one(*fresh.store, {.key = plain("a"), .action = action, .condition = equals("x", 1)})),
                "a write was not applied although its condition held");
            const std::optional<Item> after =
                std::holds_alternative<Erase>(action) ? std::nullopt : std::optional{Item{{"x", 2}}};
            require_equal(read_one(*fresh.store, plain("a")), after, "the item");
        }
    });
}

}  // namespace varve::testing::detail
