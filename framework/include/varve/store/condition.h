#pragma once

#include <varve/store/item.h>

#include <string>
#include <vector>

namespace varve::store {

/// What must hold of an item for a write to it to be applied. A small tree:
///
///     !item_exists() || (equals("state", "void") && equals("epoch", 3))
///
/// A default Condition always holds. Engines that have no conditions of their own use `holds`.
struct Condition {
    enum class Operator {
        all_of,       ///< every operand holds; without operands it holds
        any_of,       ///< at least one operand holds
        negation,     ///< the only operand does not hold
        item_exists,  ///< there is an item under the key
        exists,       ///< the item has `attribute`
        equals,       ///< `attribute` has the type and the value of `value`; a missing one equals nothing
        less,         ///< `attribute` has the type of `value` and is smaller (text and bytes: byte by byte, unsigned)
    };
    Operator op = Operator::all_of;
    std::string attribute = {};
    Value value = {};
    std::vector<Condition> operands = {};

    bool operator==(const Condition&) const = default;
};

Condition item_exists();
Condition exists(std::string attribute);
Condition equals(std::string attribute, Value value);
Condition less(std::string attribute, Value value);
Condition operator&&(Condition a, Condition b);
Condition operator||(Condition a, Condition b);
Condition operator!(Condition a);

/// Whether `condition` holds of `item`; nullptr: there is no item.
bool holds(const Condition& condition, const Item* item);

}  // namespace varve::store
