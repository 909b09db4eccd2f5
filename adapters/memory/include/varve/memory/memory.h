#pragma once

#include <varve/store/item_store.h>

#include <cstddef>
#include <memory>
#include <string_view>

namespace varve::memory {

struct Options {
    std::size_t item_bytes_max = std::size_t{16} << 20;
};

/// A store in this process's memory; its items end with its last handle. For tests, samples and caches, and the example
/// that every other adapter follows.
///
///     auto store = varve::memory::open();           // or varve::open("memory:"), without this header
///     auto same  = varve::memory::open("orders");   // whoever names "orders" in this process gets this very store
///
/// An empty name gives a store of one's own. Throws ConfigError if `name` is already open with other options.
///
/// Threads: any; so may the store's methods be called.
std::shared_ptr<store::ItemStore> open(std::string_view name = {}, const Options& options = {});

}  // namespace varve::memory
