#pragma once

#include <varve/commands/stream_list.h>

#include <functional>
#include <string_view>

namespace varve::operations {

/// Calls `found` for each stream with a name that begins with `prefix`, in the order of names, as long as it returns
/// true. As Application::streams, but writes nothing: what the stored list lacks is read from the events after it and
/// kept in memory, about 200 bytes for each such stream.
///
/// Errors: ConfigError for a store without a feed; those of the store. Threads: any.
void each_stream(Application& application, std::string_view prefix,
                 const std::function<bool(const ListedStream& stream)>& found);

}  // namespace varve::operations
