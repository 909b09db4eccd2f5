#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace varve::operations {

/// Of a long file, bit by bit: XXH3 with 128 bits, as `xxhsum -H2` gives it. It finds damage; it is no proof against
/// those who mean to forge.
///
/// Threads: one at a time.
class Checksum {
  public:
    static constexpr std::size_t digits = 32;

    Checksum();
    ~Checksum();
    Checksum(Checksum&&) noexcept;
    Checksum& operator=(Checksum&&) noexcept;
    void add(std::string_view text) noexcept;
    /// Of all so far, in hexadecimal. More may be added afterwards.
    std::string hex() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace varve::operations
