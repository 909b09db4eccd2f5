#pragma once

#include <span>
#include <string>
#include <string_view>

namespace varve::dynamodb {

/// What others said — a server, the environment, libcurl — as a message or a log may quote it: without the user and the
/// password of a URL and without `secrets`; blanks for control characters, '?' for what is no UTF-8; at most 500 bytes.
std::string quotable(std::string_view text, std::span<const std::string> secrets = {});

}  // namespace varve::dynamodb
