#include "json_path.h"

#include <varve/store/item_text.h>

namespace varve::postgres {
namespace {

/// The value as item_text writes it.
std::string literal(const store::Value& value) {
    // {"v":LITERAL}
    const std::string item = item_text({{"v", value}}, store::BytesText::hex);
    return item.substr(5, item.size() - 6);
}

/// `attribute` has the type of `value` and stands to it as `comparison` says.
std::string compared(const store::Condition& condition, const char* comparison) {
    std::string place = "$." + json_string(condition.attribute);
    std::string value = literal(condition.value);
    std::string type = "string";
    if (std::holds_alternative<std::int64_t>(condition.value)) {
        type = "number";
    } else if (std::holds_alternative<store::Bytes>(condition.value)) {
        // {"$hex":"00ff"}; text has no members.
        place += ".\"$hex\"";
        value = value.substr(8, value.size() - 9);
    }
    return "(" + place + ".type() == \"" + type + "\" && " + place + " " + comparison + " " + value + ")";
}

std::string joined(const store::Condition& condition, const char* by, const char* of_none) {
    if (condition.operands.empty()) return of_none;
    std::string text = "(";
    for (const store::Condition& operand : condition.operands) {
        if (text.size() > 1) text += by;
        text += json_path(operand);
    }
    return text + ")";
}

}  // namespace

std::string json_string(std::string_view text) {
    // {"TEXT":0}
    const std::string item = store::item_text({{std::string{text}, std::int64_t{0}}});
    return item.substr(1, item.size() - 4);
}

std::string json_path(const store::Condition& condition) {
    using enum store::Condition::Operator;
    switch (condition.op) {
        case all_of: return joined(condition, " && ", "(1 == 1)");
        case any_of: return joined(condition, " || ", "(1 == 0)");
        case negation: return "(!" + json_path(condition.operands.at(0)) + ")";
        case item_exists: return "(1 == 1)";
        case exists: return "(exists($." + json_string(condition.attribute) + "))";
        case equals: return compared(condition, "==");
        case less: return compared(condition, "<");
    }
    return {};
}

}  // namespace varve::postgres
