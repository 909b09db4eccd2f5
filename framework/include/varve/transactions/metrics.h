#pragma once

#include <varve/transactions/outcome.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace varve::transactions {

/// What an application has counted of its transactions and its sweeper since it was made. Any thread may read at any
/// time.
struct Metrics {
    using Counter = std::atomic<std::uint64_t>;

    std::array<Counter, paths> committed_by{};  ///< attempts that committed, by Path
    Counter committed{0};                       ///< attempts that committed, by any strategy
    Counter conflicts{0};                       ///< attempts that lost against others
    Counter in_doubt{0};                        ///< attempts whose outcome could not be learnt in time
    Counter waits{0};                           ///< times an attempt met a transaction that it had to wait for
    Counter fenced{0};                ///< transactions ended: dead ones, own earlier attempts, ones without an answer
    Counter finalised_for_others{0};  ///< slots and rows of other, committed transactions put into place
    Counter undone_for_others{0};     ///< slots and rows of other, aborted transactions cleared
    Counter swept{0};                 ///< slots, rows and primaries that a sweeper settled
};

}  // namespace varve::transactions
