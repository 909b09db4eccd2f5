#pragma once

#include <string>

namespace varve::dynamodb {

/// Whatever is said, these are not in it.
inline const std::string secret = "s3cr3t-never-to-be-seen";
inline const std::string token = "t0k3n-never-to-be-seen";

}  // namespace varve::dynamodb
