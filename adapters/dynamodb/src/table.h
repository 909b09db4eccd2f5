#pragma once

#include <varve/store/item.h>
#include <varve/store/item_store.h>

#include <string>

namespace varve::dynamodb {

/// A table of the port, and what it is called on the server: PREFIX '.' NAME. A prefix has no '.', so that no two
/// tables of different prefixes have the same name.
struct Table {
    std::string name;
    store::TableSchema schema;
};

}  // namespace varve::dynamodb
