#pragma once

#include "table.h"

#include <varve/store/item_store.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rapidjson/document.h>

namespace varve::dynamodb {

// What the server answers, parsed already (parse_object), as values. Each function throws CorruptionError if the answer
// is not of DynamoDB's form.

/// A table by its name on the server; nullptr if it was not asked for.
using FindTable = std::function<const Table*(std::string_view name)>;

/// Of GetItem.
std::optional<store::Item> parse_get_item(const rapidjson::Value& answer, const Table& table);

/// Of BatchGetItem. Keys of the request that are in neither list have no item.
struct BatchOfItems {
    std::vector<store::Record> records;
    std::vector<store::Key> unprocessed;
};
BatchOfItems parse_batch_get_item(const rapidjson::Value& answer, const FindTable& find);

/// Of Query and Scan.
struct PageOfItems {
    std::vector<store::Record> records;
    std::optional<store::Key> last;  ///< where the next page begins
};
PageOfItems parse_page(const rapidjson::Value& answer, const Table& table);

/// Of an error: its name, without the namespace before the '#' and the address after a ':', and its message; empty
/// where the answer has none.
struct NamedError {
    std::string name;
    std::string message;
};
NamedError parse_error(const rapidjson::Value& answer);

/// The item that refused a write; nullopt if the answer carries none: there was none, or the server tells none.
std::optional<store::Item> parse_refusing_item(const rapidjson::Value& answer, const Table& table);

/// Of CreateTable and DescribeTable: the shape that the table has, as far as the port knows it.
struct DescribedTable {
    bool active;
    std::string arn;  ///< by which the server names it; empty if it gives none
    std::string partition_attribute;
    std::string partition_type;
    std::string sort_attribute;
    std::string sort_type;
};
DescribedTable parse_described_table(const rapidjson::Value& answer);

/// Of ListTagsOfResource: the value of one tag; nullopt if there is none of this name.
std::optional<std::string> parse_tag(const rapidjson::Value& answer, std::string_view name);
/// Of the query of a setting of Alternator's; nullopt if it has none of this name.
std::optional<std::string> parse_alternator_setting(const rapidjson::Value& answer);

/// Of DescribeTimeToLive: the attribute, or empty if items do not expire.
std::string parse_time_to_live(const rapidjson::Value& answer);

}  // namespace varve::dynamodb
