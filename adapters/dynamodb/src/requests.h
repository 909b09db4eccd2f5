#pragma once

#include "table.h"

#include <varve/store/item_store.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace varve::dynamodb {

/// One request of DynamoDB's JSON protocol 1.0.
struct Call {
    /// What a second delivery of the request would do.
    enum class Repeat {
        harmless,  ///< nothing: it reads, or makes what is there already
        harmful,   ///< it may change something twice: never sent again unless the first was certainly not applied
    };
    std::string_view operation;
    std::string body;
    Repeat repeat = Repeat::harmless;
    std::string about;  ///< for messages: "the item events/alice/7"
    std::size_t answer_bytes_max = answer_of_an_item;

    // What may be answered at most: DynamoDB's own bound on what is in it, times what JSON and base64 may make of it.
    static constexpr std::size_t answer_of_an_item = std::size_t{4} << 20;   ///< an item of 400 KB, or a description
    static constexpr std::size_t answer_of_a_page = std::size_t{12} << 20;   ///< 1 MB
    static constexpr std::size_t answer_of_a_batch = std::size_t{64} << 20;  ///< 16 MB
};

struct TableKey {
    const Table* table;
    const store::Key* key;
};
struct TableWrite {
    const Table* table;
    const store::Write* write;
};

Call get_item(const TableKey& one);
/// At most 100 keys, none twice.
Call batch_get_item(std::span<const TableKey> keys);
/// PutItem, UpdateItem or DeleteItem, which give back the item that refuses them.
Call write_item(const TableWrite& one);

/// `next` of the request has been made a key.
Call query(const Table& table, const store::Query& query, const std::optional<store::Key>& after);
Call scan(const Table& table, const store::Scan& scan, const std::optional<store::Key>& after);

/// Paid by request.
Call create_table(const Table& table);
Call describe_table(const Table& table);
Call describe_time_to_live(const Table& table);
Call update_time_to_live(const Table& table);
/// The tags of a table with this ARN.
Call list_tags(const Table& table, std::string_view arn);
/// A setting of the node that answers, from Alternator's table of them.
Call alternator_setting(const std::string& name);
}  // namespace varve::dynamodb
