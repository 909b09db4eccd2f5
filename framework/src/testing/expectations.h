#pragma once

#include "testing/json_diff.h"

#include <varve/testing/decided.h>

#include <string>
#include <vector>

namespace varve::testing::detail {

[[noreturn]] void fail(const Place& place, const std::string& message);
/// [{"Withdrawn":{…}}, …]: what is compared, and shown.
std::string list(const std::vector<EventData>& events);
std::string shown(const JsonDiff& diff);
/// "rejected with \"insufficient_funds\" (…)"
std::string described(const Rejection& rejection);
/// Fails with `message`, and what differs.
void expect_same(const Place& place, const std::string& message, const std::vector<EventData>& expected,
                 const std::vector<EventData>& actual);

}  // namespace varve::testing::detail
