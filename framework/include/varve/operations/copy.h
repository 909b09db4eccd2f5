#pragma once

#include <varve/operations/archive.h>

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace varve::operations {

/// What the two stores do not agree in.
struct Difference {
    std::string item;  ///< "events/account-alice/7"
    std::string from;  ///< what stands in the old store, as JSON; empty: nothing
    std::string to;    ///< in the new one
};

struct CopyOptions {
    /// Asked when all slots are copied that there are, once in a `poll_interval`: whether the writers have stopped, so
    /// that the rest is copied and the new store opened. From where it returns true, nobody may write to the old one.
    std::function<bool()> finish = {};  ///< empty: they have stopped
    Duration poll_interval = std::chrono::milliseconds{100};
    std::function<void(const Progress&)> progress = {};  ///< called in between, by the caller's thread
    std::stop_token stop = {};
    Runtime runtime = {};
};

struct Copied {
    Moved moved;
    /// What was found when all was compared, the first hundred of it. The new store stays closed if there is any.
    std::vector<Difference> differences;
};

/// Moves a store to an empty one while writers go on: slots first, in their order, as they come; when the writers have
/// stopped, all that is no slot. Then it compares both, item by item, and lets applications into the new one. Who was
/// stopped calls it again with the same two stores, and it goes on with the slots where it was.
///
///     varve::operations::copy_store(*old, *young, {.finish = [&] { return has_ended.load(); }});
///
/// Errors: as export_store and import_store. ConflictError if somebody has written after `finish`: the new store stays
/// closed; end the writers and call it again.
Copied copy_store(store::ItemStore& from, store::ItemStore& to, const CopyOptions& options = {});

}  // namespace varve::operations
