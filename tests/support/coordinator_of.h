#pragma once

#include "commands/application_parts.h"

namespace varve {

/// The protocol's side of an application, which its users do not see.
inline transactions::Coordinator& coordinator_of(Application& application) {
    return detail::parts_of(application).coordinator;
}

}  // namespace varve
