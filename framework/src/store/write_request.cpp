#include <varve/core/error.h>
#include <varve/store/write_request.h>

#include <exception>
#include <new>
#include <string>

namespace varve::store {

WriteRequest::WriteRequest(std::size_t writes, Batch batch)
    : atomic(batch == Batch::atomic), answers(atomic ? 0 : writes, unanswered()), atomic_answer(unanswered()) {
    cost = writes;
}

void WriteRequest::fail(const Failure& failure) noexcept {
    const auto copy = [&]() noexcept {
        Failure own{.kind = failure.kind, .in_doubt = failure.in_doubt, .message = {}};
        try {
            own.message = failure.message;
        } catch (const std::bad_alloc&) {
            own.message = "out of memory";
        }
        return own;
    };
    atomic_answer = copy();
    for (WriteAnswer& answer : answers) answer = copy();
}

Failure unanswered() noexcept {
    return {.kind = ErrorKind::in_doubt, .in_doubt = true, .message = {}};
}

Failure current_failure(std::string_view where) noexcept {
    Failure failure{.kind = ErrorKind::unavailable, .in_doubt = false, .message = {}};
    try {
        try {
            throw;
        } catch (const Error& error) {
            failure.kind = error.kind();
            failure.in_doubt = error.in_doubt();
            failure.message = error.what();
        } catch (const std::bad_alloc&) {
            failure.message = "no memory is left to write to " + std::string{where};
        } catch (const std::exception& error) {
            failure.message = "no answer from " + std::string{where} + ": " + error.what();
        }
    } catch (const std::bad_alloc&) {
        failure.message = "out of memory";  // so short that it needs none
    }
    return failure;
}

}  // namespace varve::store
