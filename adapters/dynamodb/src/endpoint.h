#pragma once

#include "client.h"

#include <varve/dynamodb/dynamodb.h>

#include <string>

namespace varve::dynamodb {

/// Checks everything that gets into a host's name or a request. Throws ConfigError.
void check(const Options& options);

/// Whether a host, with or without a port, is this machine: localhost, 127.x.x.x or [::1].
bool is_loopback(std::string_view host);

/// What `options` come to. Throws ConfigError, e.g. for a region that nobody names.
Client::Parts client_parts(const Options& options);

}  // namespace varve::dynamodb
