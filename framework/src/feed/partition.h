#pragma once

#include <cstdint>
#include <string_view>

namespace varve::feed {

/// One of the parts that all streams are split into, by the FNV-1a hash of a stream's name: a stream is in the same one
/// in every program and for ever, since what is stored for a part is of these streams.
struct Partition {
    std::int64_t number = 1;  ///< 1 to `of`
    std::int64_t of = 1;      ///< how many there are

    bool has(std::string_view stream) const { return of == 1 || number == number_for(stream, of); }
    /// Of the one that has this stream.
    static std::int64_t number_for(std::string_view stream, std::int64_t of);
};

}  // namespace varve::feed
