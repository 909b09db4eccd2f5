#include <varve/core/error.h>

namespace varve {

const char* to_string(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::invalid: return "invalid";
        case ErrorKind::config: return "config";
        case ErrorKind::conflict: return "conflict";
        case ErrorKind::in_doubt: return "in_doubt";
        case ErrorKind::unavailable: return "unavailable";
        case ErrorKind::busy: return "busy";
        case ErrorKind::storage_full: return "storage_full";
        case ErrorKind::read_only: return "read_only";
        case ErrorKind::lease_lost: return "lease_lost";
        case ErrorKind::overloaded: return "overloaded";
        case ErrorKind::corruption: return "corruption";
    }
    return "unknown";
}

bool Error::retryable() const noexcept {
    return !in_doubt_ && (kind_ == ErrorKind::conflict || kind_ == ErrorKind::unavailable || kind_ == ErrorKind::busy ||
                          kind_ == ErrorKind::overloaded);
}

bool worth_repeating(const Failure& failure) noexcept {
    // Who was busy has been waited for already, for as long as was asked for.
    return failure.in_doubt || failure.kind == ErrorKind::unavailable;
}

void raise_certain(Failure failure) {
    failure.in_doubt = false;
    if (failure.kind == ErrorKind::in_doubt) failure.kind = ErrorKind::unavailable;
    raise(failure);
}

void raise(const Failure& failure) {
    if (failure.in_doubt) throw InDoubtError(failure.message);
    switch (failure.kind) {
        case ErrorKind::invalid: throw InvalidError(failure.message);
        case ErrorKind::config: throw ConfigError(failure.message);
        case ErrorKind::conflict: throw ConflictError(failure.message);
        case ErrorKind::in_doubt: throw InDoubtError(failure.message);
        case ErrorKind::unavailable: throw UnavailableError(failure.message);
        case ErrorKind::lease_lost: throw LeaseLostError(failure.message);
        case ErrorKind::overloaded: throw OverloadedError(failure.message);
        case ErrorKind::corruption: throw CorruptionError(failure.message);
        case ErrorKind::busy:
        case ErrorKind::storage_full:
        case ErrorKind::read_only: break;
    }
    throw Error(failure);
}

}  // namespace varve
