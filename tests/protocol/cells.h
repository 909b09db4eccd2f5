#pragma once

#include <varve/testing/faulty_store.h>

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace varve::protocol {

/// What a request is to the protocol, read off the request itself.
enum class ProtocolStep {
    prepare,
    validate,  ///< a read of one whose last write was a prepare
    commit,
    single,
    native,
    finalise,
    done_mark,
    fence,
    undo,
    read,
    changes,
    other,
};
inline constexpr std::size_t protocol_steps = 12;
std::string_view name(ProtocolStep step);
ProtocolStep classify(const testing::RequestInfo& request, ProtocolStep last_write);

/// How often each fault has hit each step.
class Cells {
  public:
    enum Fault {
        request_lost,
        answer_lost,
        late,
        again,
        past,
        error_without_effect,
        error_with_effect,
        answered_again,
        slow,
        throttled,
        read_failed,
        small_page,
        stopped,
        paused,
        faults
    };
    void hit(ProtocolStep step, Fault fault, std::uint64_t times = 1) {
        counts_[static_cast<std::size_t>(step)][fault] += times;
    }
    /// What has happened between two counts happened to `step`.
    void hit(ProtocolStep step, const testing::FaultCounts& before, const testing::FaultCounts& after);
    void add(const Cells& other);

    /// The table; returns how many of the cells that can be hit have fewer than `least`.
    std::size_t print(std::ostream& out, std::uint64_t least) const;

  private:
    std::array<std::array<std::uint64_t, faults>, protocol_steps> counts_{};
};

}  // namespace varve::protocol
