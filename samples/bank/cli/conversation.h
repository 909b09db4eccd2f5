#pragma once

#include "cli.h"

#include <string>

namespace bank {

/// All events, and effects, of one conversation, each below what led to it. Reads all events.
int print_conversation(const Cli& cli, const std::string& correlation);

}  // namespace bank
