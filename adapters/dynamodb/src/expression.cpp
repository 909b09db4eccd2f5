#include "expression.h"

#include <varve/store/item_store.h>

#include <algorithm>
#include <set>
#include <utility>

namespace varve::dynamodb {

using Op = store::Condition::Operator;

std::string Expressions::name(const std::string& attribute) {
    auto found = std::ranges::find(names_, attribute);
    if (found == names_.end()) found = names_.insert(names_.end(), attribute);
    return "#" + std::to_string(found - names_.begin());
}

std::string Expressions::value(const store::Value& value) {
    auto found = std::ranges::find(values_, value);
    if (found == values_.end()) found = values_.insert(values_.end(), value);
    return ":" + std::to_string(found - values_.begin());
}

std::string Expressions::condition(const store::Condition& condition) {
    if (condition.op == Op::all_of && condition.operands.empty()) return {};
    return text_of(condition);
}

/// Parentheses around what is made of several parts, and never twice, which DynamoDB refuses as redundant.
std::string Expressions::operand(const store::Condition& condition) {
    const bool compound = condition.op == Op::all_of || condition.op == Op::any_of || condition.op == Op::negation;
    if (!compound) return text_of(condition);
    if (condition.op != Op::negation && condition.operands.size() == 1) return operand(condition.operands.front());
    return "(" + text_of(condition) + ")";
}

std::string Expressions::joined(const store::Condition& condition, const char* by, const char* when_empty) {
    const auto& operands = condition.operands;
    if (operands.empty()) {
        const std::string key = name(table_.schema.partition_attribute);
        return "attribute_exists(" + key + ") " + when_empty + " attribute_not_exists(" + key + ")";
    }
    if (operands.size() == 1) return text_of(operands.front());
    std::string text;
    for (const store::Condition& one : operands) text += (text.empty() ? std::string{} : by) + operand(one);
    return text;
}

std::string Expressions::text_of(const store::Condition& condition) {
    switch (condition.op) {
        case Op::all_of: return joined(condition, " AND ", "OR");
        case Op::any_of: return joined(condition, " OR ", "AND");
        case Op::negation: return "NOT " + operand(condition.operands.at(0));
        case Op::item_exists: return "attribute_exists(" + name(table_.schema.partition_attribute) + ")";
        case Op::exists: return "attribute_exists(" + name(condition.attribute) + ")";
        case Op::equals: return name(condition.attribute) + " = " + value(condition.value);
        case Op::less: return name(condition.attribute) + " < " + value(condition.value);
    }
    return {};
}

std::string Expressions::update(const store::Update& update) {
    std::string text;
    for (const auto& [attribute, to] : update.set) {
        text += text.empty() ? "SET " : ", ";
        text += name(attribute) + " = " + value(to);
    }
    const std::set<std::string> remove(update.remove.begin(), update.remove.end());
    const char* before = text.empty() ? "REMOVE " : " REMOVE ";
    for (const std::string& attribute : remove) text += std::exchange(before, ", ") + name(attribute);
    return text;
}

void Expressions::write_placeholders(Writer& writer) const {
    if (!names_.empty()) {
        writer.Key("ExpressionAttributeNames");
        writer.StartObject();
        for (std::size_t i = 0; i < names_.size(); ++i) {
            write_string(writer, "#" + std::to_string(i));
            write_string(writer, names_[i]);
        }
        writer.EndObject();
    }
    if (!values_.empty()) {
        writer.Key("ExpressionAttributeValues");
        writer.StartObject();
        for (std::size_t i = 0; i < values_.size(); ++i) {
            write_string(writer, ":" + std::to_string(i));
            write_value(writer, values_[i]);
        }
        writer.EndObject();
    }
}

}  // namespace varve::dynamodb
