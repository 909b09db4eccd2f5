#pragma once

#include <varve/commands/application.h>
#include <varve/store/item.h>

#include <cstddef>
#include <string>
#include <vector>

namespace varve::operations {

/// A transaction that has claims on stored items: it runs, is being put in place, or its owner has died.
struct OpenTransaction {
    std::string id;
    transactions::Verdict verdict;   ///< as its primary slot says
    store::Key primary;              ///< the slot that decides
    Time since;                      ///< when its command began, by its owner's clock
    Time lease;                      ///< until when its owner means to be done or to renew it, by the same clock
    TransactionHandle handle;        ///< for Application::resolve
    std::vector<store::Key> claims;  ///< the items that it was found on, at most 1,000
};

/// Those with claims on slots and rows, the oldest first, at most `transactions_max`. Where the store keeps an order of
/// changes, only what sweepers have not seen settled is read; else all of the store's slots and rows.
///
/// Errors: those of the store; CorruptionError naming an item that cannot be read. Threads: any.
///
///     for (const operations::OpenTransaction& one : operations::open_transactions(bank))
///         std::cout << one.id << " holds " << one.claims.size() << " items\n";
std::vector<OpenTransaction> open_transactions(Application& application, std::size_t transactions_max = 1000);

/// Ends it if it is undecided, whether its owner lives or not, and puts into place or undoes what it has left on the
/// items of `claims`: its owner learns that it has lost, and tries again. `undecided` only if the store did not answer;
/// ask again. Errors: as Application::resolve.
transactions::Verdict settle(Application& application, const OpenTransaction& transaction);

/// One that is no longer open.
struct SettledTransaction {
    std::string id;
    transactions::Verdict verdict;
};

/// Clears what transactions have left whose owners have died: as Application::settle, for at most so long. Returns
/// those that are no longer open; who lives is seen to go on, and is left alone. Errors: as there.
std::vector<SettledTransaction> settle_dead(Application& application, Duration patience);

}  // namespace varve::operations
