#pragma once

#include <string>

#include <sys/socket.h>

namespace varve::http {

/// Whether an address is one of the public internet: not of this machine, a private network or a link, and not set
/// aside for something else (the registries of IANA after RFC 6890, for IPv4 and IPv6). IPv4 within IPv6 is judged as
/// IPv4.
bool is_public(const sockaddr& address);

/// "10.0.0.7", "fe80::1"
std::string to_string(const sockaddr& address);

}  // namespace varve::http
