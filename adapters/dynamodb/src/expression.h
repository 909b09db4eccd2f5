#pragma once

#include "item_json.h"

#include <varve/store/item_store.h>

#include <string>
#include <vector>

namespace varve::dynamodb {

/// The expressions of one request. Names and values never stand in them, only placeholders, so that no name can be one
/// of DynamoDB's 573 reserved words, and none can be read as syntax.
class Expressions {
  public:
    explicit Expressions(const Table& table) : table_(table) {}

    /// A condition's text; empty if it always holds.
    std::string condition(const store::Condition& condition);
    /// "SET #0 = :0 REMOVE #1"; empty if nothing is to be done.
    std::string update(const store::Update& update);

    /// "#0" for an attribute, ":0" for a value.
    std::string name(const std::string& attribute);
    std::string value(const store::Value& value);

    /// The members ExpressionAttributeNames and ExpressionAttributeValues, as far as there are any.
    void write_placeholders(Writer& writer) const;

  private:
    std::string text_of(const store::Condition& condition);
    std::string operand(const store::Condition& condition);
    std::string joined(const store::Condition& condition, const char* by, const char* when_empty);

    const Table& table_;
    std::vector<std::string> names_;
    std::vector<store::Value> values_;
};

}  // namespace varve::dynamodb
