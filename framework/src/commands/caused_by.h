#pragma once

#include <varve/events/event.h>

namespace varve::detail {

/// `metadata` of what comes of something with the metadata `before`: it belongs to the same conversation, and to the
/// same trace (the headers of W3C Trace Context, https://www.w3.org/TR/trace-context/). Other headers are their
/// caller's, and end here. A conversation that has no id yet gets the one in
/// `metadata`, or the command's.
Metadata caused_by(const Metadata& before, Metadata metadata);

}  // namespace varve::detail
