#pragma once

#include <varve/store/item_store.h>

#include <string_view>

namespace bench {

/// Streams of `length` slots each, as if written by commands: "account-0", "account-1" …, each of a deposit.
void write_streams(varve::store::ItemStore& store, std::string_view aggregate, long first_id, long ids, long length);

}  // namespace bench
