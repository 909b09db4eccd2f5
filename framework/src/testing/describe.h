#pragma once

#include <varve/store/item_store.h>

#include <string>

namespace varve::testing::detail {

/// "put events/alice/2": a write in the lines that tests compare and logs show.
std::string describe(const store::Write& write);

}  // namespace varve::testing::detail
