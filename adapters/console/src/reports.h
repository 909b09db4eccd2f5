#pragma once

#include <varve/commands/follower_status.h>
#include <varve/commands/parked_stream.h>
#include <varve/core/json.h>
#include <varve/events/event.h>
#include <varve/operations/doctor.h>
#include <varve/operations/locks.h>
#include <varve/operations/timers.h>
#include <varve/operations/transactions.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::console {

// What machines read of a store: the JSON of the commands' --json, and of the server's answers.

struct EventReport {
    std::string stream;
    Version version = 0;
    std::size_t index = 0;
    std::string id;
    Time time = {};
    std::string type;
    int schema = 1;
    json::Raw data;
    Metadata metadata;
    std::optional<std::uint64_t> position = {};
};
EventReport report_of(const RecordedEvent& event);

struct DiagnosisReport {
    std::string health;
    std::string what;
    std::string found;
    std::string advice;
};
DiagnosisReport report_of(const operations::Diagnosis& diagnosis);

struct FollowerReport {
    std::string name;
    std::string state;
    std::uint64_t position = 0;
    std::uint64_t end = 0;
    std::int64_t events = 0;
    std::int64_t parked = 0;
    std::optional<double> lag_seconds = {};
    std::string owner;
    std::string error;
    std::int64_t version = 1;
    std::int64_t build = 1;
    std::int64_t partition = 1;
    std::int64_t partitions = 1;
    bool paused = false;
};
FollowerReport report_of(const FollowerStatus& status);

/// "$deliver-SendReceipt" is who delivers the effects of this type.
inline constexpr std::string_view delivery_prefix = "$deliver-";

struct ParkedReport {
    std::string follower;
    std::string stream;
    Version version = 0;
    std::string type;
    std::string id;
    std::string error;
    Time since;
    std::int64_t attempts = 0;
    bool given_up = false;
};
ParkedReport report_of(const std::string& follower, const ParkedStream& parked);

struct WaitingReport {
    locks::Ticket ticket = 0;
    std::string owner;
    Time expires;
};
struct LockReport {
    std::string lock;
    std::string owner;  // empty: nobody has it
    locks::Ticket ticket = 0;
    locks::Fence fence = 0;
    std::optional<Time> expires = {};
    std::vector<WaitingReport> queue;
};
LockReport report_of(const operations::StoredLock& lock);

struct TransactionReport {
    std::string transaction;
    std::string verdict;
    std::string primary;
    Time since;
    Time lease;
    std::vector<std::string> claims;
};
TransactionReport report_of(const operations::OpenTransaction& transaction);
const char* name_of(transactions::Verdict verdict);

struct TimerReport {
    std::string id;
    std::string follower;
    std::string instance;
    std::string type;
    Time due;
    std::string error;
    std::optional<Time> failed;
};
TimerReport report_of(const operations::StoredTimer& timer);

}  // namespace varve::console
