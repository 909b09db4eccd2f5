#pragma once

#include "transactions/claim.h"

#include <varve/core/error.h>

namespace varve::transactions {

// What somebody needs in order to settle a transaction whose owner could not, as text:
//
//     handle := tx "@" epoch "/" version "/" stream       (of the primary slot; epoch >= 0, version >= 1)

/// The handle of the transaction that leaves this claim.
TransactionHandle handle_of(const Claim& claim);

/// As much of the claim as a handle says. InvalidError for a text that is none.
Claim claim_of(const TransactionHandle& handle);

}  // namespace varve::transactions
