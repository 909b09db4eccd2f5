#pragma once

#include <varve/store/item_store.h>

#include <memory>

namespace varve::operations {

/// A store for those who only look: reads pass, no table is made, and each write is refused with an Error of kind
/// read_only. A table that is missing reads as an empty one. An Application on it can load, list and be asked; it must
/// not sweep:
///
///     varve::Application bank{varve::operations::read_only(varve::open_existing("sqlite:bank.db")), {.sweep = false}};
///
/// Errors: ConfigError if the store holds nothing of varve's; those of the store. Threads: as the store behind it.
std::shared_ptr<store::ItemStore> read_only(std::shared_ptr<store::ItemStore> store);

/// ConfigError that says so if the store holds nothing of varve's: for those who would not begin a new one.
void check_is_of_varve(store::ItemStore& store);

}  // namespace varve::operations
