#include "commands/failures.h"

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
