#include "commands/failures.h"

#include "core/utf8.h"
#include "core/what_was_thrown.h"

#include <algorithm>
#include <string_view>
#include <typeinfo>

namespace varve::detail {

std::exception_ptr one_more_of(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        try {
            if (const auto* in_doubt = dynamic_cast<const InDoubtError*>(&error)) throw InDoubtError(*in_doubt);
            if (const auto* conflict = dynamic_cast<const ConflictError*>(&error)) throw ConflictError(*conflict);
            raise({error.kind(), error.in_doubt(), error.what()});
        } catch (const Error& copy) {
            return typeid(copy) == typeid(error) ? std::current_exception() : failure;
        } catch (...) {
            return failure;  // no memory for another one
        }
    } catch (...) {
        return failure;
    }
}

std::exception_ptr unavailable_beside(const InDoubtError& error) noexcept {
    try {
        return std::make_exception_ptr(UnavailableError(
            "this command was rejected and has written nothing, but what it was decided on is not known to be so; "
            "repeat it. Of those beside it: " +
            std::string{error.what()}));
    } catch (...) {
        return nullptr;
    }
}

std::string storable_cause() {
    constexpr std::size_t bytes_max = 1024;
    std::string cause = what_was_thrown();
    const std::size_t end = find_invalid_utf8(std::string_view{cause}.substr(0, bytes_max));
    if (end == std::string_view::npos && cause.size() <= bytes_max) return cause;
    cause.resize(std::min({end, cause.size(), bytes_max}));
    return cause + " ...";
}

bool concerns_the_store(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        return error.retryable() || error.in_doubt();
    } catch (...) {
        return false;
    }
}

}  // namespace varve::detail
