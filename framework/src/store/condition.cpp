#include "core/assert.h"

#include <varve/store/condition.h>

#include <algorithm>

namespace varve::store {
namespace {

bool is_less(const Value& a, const Value& b) {
    if (a.index() != b.index()) return false;
    if (const auto* text = std::get_if<std::string>(&a)) return *text < std::get<std::string>(b);
    return a < b;
}

Condition join(Condition::Operator op, Condition a, Condition b) {
    if (a.op == op && !a.operands.empty()) {
        a.operands.push_back(std::move(b));
        return a;
    }
    Condition joined{.op = op};
    joined.operands.push_back(std::move(a));
    joined.operands.push_back(std::move(b));
    return joined;
}

}  // namespace

Condition item_exists() {
    return {.op = Condition::Operator::item_exists};
}
Condition exists(std::string attribute) {
    return {.op = Condition::Operator::exists, .attribute = std::move(attribute)};
}
Condition equals(std::string attribute, Value value) {
    return {.op = Condition::Operator::equals, .attribute = std::move(attribute), .value = std::move(value)};
}
Condition less(std::string attribute, Value value) {
    return {.op = Condition::Operator::less, .attribute = std::move(attribute), .value = std::move(value)};
}
Condition operator&&(Condition a, Condition b) {
    return join(Condition::Operator::all_of, std::move(a), std::move(b));
}
Condition operator||(Condition a, Condition b) {
    return join(Condition::Operator::any_of, std::move(a), std::move(b));
}
Condition operator!(Condition a) {
    Condition negated{.op = Condition::Operator::negation};
    negated.operands.push_back(std::move(a));
    return negated;
}

bool holds(const Condition& condition, const Item* item) {
    const auto attribute = [&]() -> const Value* {
        if (item == nullptr) return nullptr;
        const auto found = item->find(condition.attribute);
        return found == item->end() ? nullptr : &found->second;
    };
    const auto holds_here = [item](const Condition& operand) { return holds(operand, item); };
    switch (condition.op) {
        case Condition::Operator::all_of: return std::ranges::all_of(condition.operands, holds_here);
        case Condition::Operator::any_of: return std::ranges::any_of(condition.operands, holds_here);
        case Condition::Operator::negation:
            VARVE_ASSERT(condition.operands.size() == 1, "a negation has one operand");
            return !holds(condition.operands.front(), item);
        case Condition::Operator::item_exists: return item != nullptr;
        case Condition::Operator::exists: return attribute() != nullptr;
        case Condition::Operator::equals: {
            const Value* value = attribute();
            return value != nullptr && *value == condition.value;
        }
        case Condition::Operator::less: {
            const Value* value = attribute();
            return value != nullptr && is_less(*value, condition.value);
        }
    }
    return false;
}

}  // namespace varve::store
