#pragma once

#include <varve/transactions/claim.h>

#include <string>
#include <string_view>

namespace varve::transactions {

// What somebody needs in order to settle a transaction whose owner could not, as text:
//
//     handle := tx "@" epoch "/" version "/" stream       (of the primary slot; epoch >= 0, version >= 1)

/// The handle of the transaction that leaves this claim.
std::string handle_of(const Claim& claim);

/// As much of the claim as a handle says. InvalidError for a text that is none.
Claim claim_of_handle(std::string_view handle);

}  // namespace varve::transactions
