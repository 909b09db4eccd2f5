#pragma once

#include <exception>
#include <string>

namespace varve {

/// Inside a handler: what the exception says that it handles. For whoever has to go on whatever was thrown.
inline std::string what_was_thrown() {
    try {
        throw;
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "what is no std::exception";
    }
}

}  // namespace varve
