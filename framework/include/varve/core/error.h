#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace varve {

/// What went wrong, for code that must branch on it. The message is for people.
enum class ErrorKind {
    invalid,       ///< the caller passed something that can never work; the message names it
    config,        ///< a URL, option or stored format that this program cannot work with
    conflict,      ///< others kept winning until the retries were used up; nothing was changed
    in_doubt,      ///< the outcome is unknown: it may have happened, or may happen later
    unavailable,   ///< the store did not answer in time or cannot be reached
    busy,          ///< the store or a lock is held by somebody else for longer than the time allowed
    storage_full,  ///< no space left where the store keeps its data
    read_only,     ///< the store refuses writes altogether
    lease_lost,    ///< a lock or lease is no longer one's own
    overloaded,    ///< too much is queued already; nothing was done
    corruption,    ///< stored data contradict themselves or cannot be read
};

/// The kind's name as it stands in messages and metrics, e.g. "in_doubt".
const char* to_string(ErrorKind kind) noexcept;

/// A failure as a value: what a store reports for one of the many writes of a batch, where throwing would lose the
/// rest.
struct Failure {
    ErrorKind kind = ErrorKind::unavailable;
    /// True: it may have been applied, now or later. False: it certainly was not, and never will be.
    bool in_doubt = false;
    std::string message;
};

/// The root of everything varve throws. A user's own exceptions pass through the framework untouched.
///
/// Catch `Error` and branch on `kind()`; the subclasses exist only where callers catch differently.
class Error : public std::runtime_error {
  public:
    explicit Error(const Failure& failure)
        : std::runtime_error(failure.message), kind_(failure.kind), in_doubt_(failure.in_doubt) {}

    ErrorKind kind() const noexcept { return kind_; }
    /// The same call may succeed later without any change by the caller, and repeating it is safe.
    bool retryable() const noexcept;
    /// The outcome is unknown. Never repeat blindly what is in doubt: give a command an id, then repeat it under that
    /// id.
    bool in_doubt() const noexcept { return in_doubt_; }

  private:
    ErrorKind kind_;
    bool in_doubt_;
};

/// The caller's mistake: an argument that can never work.
struct InvalidError : Error {
    explicit InvalidError(std::string message) : Error({ErrorKind::invalid, false, std::move(message)}) {}
};

/// A URL, an option or a stored format that this program cannot work with.
struct ConfigError : Error {
    explicit ConfigError(std::string message) : Error({ErrorKind::config, false, std::move(message)}) {}
};

/// Where a command lost last, and to what. A field that is not known, or does not apply, is empty.
struct ConflictDetails {
    std::string item = {};                      ///< "events/account-alice/8"
    std::string stream = {};                    ///< "account-alice", if the item is a slot of a stream
    std::optional<std::int64_t> expected = {};  ///< the stream's version that was decided on
    std::optional<std::int64_t> actual = {};    ///< the version it had by then
    unsigned attempts = 1;                      ///< made in all
    std::string met = {};                       ///< what the command met there, for people
};

/// The command lost to concurrent writers until the retry policy gave up. Nothing was changed.
class ConflictError : public Error {
  public:
    explicit ConflictError(std::string message, ConflictDetails details = {})
        : Error({ErrorKind::conflict, false, std::move(message)}), details_(std::move(details)) {}

    const ConflictDetails& details() const noexcept { return details_; }

  private:
    ConflictDetails details_;
};

/// What `Application::resolve` needs to settle a transaction that is in doubt. Its text may be stored: any process can
/// make a handle of it again.
class TransactionHandle {
  public:
    TransactionHandle() = default;
    explicit TransactionHandle(std::string text) : text_(std::move(text)) {}

    const std::string& text() const noexcept { return text_; }
    /// Whether there was no transaction.
    bool empty() const noexcept { return text_.empty(); }
    bool operator==(const TransactionHandle&) const = default;

  private:
    std::string text_;
};

/// Nobody knows yet whether it happened. `Application::resolve` finds out, as soon as the store answers again.
class InDoubtError : public Error {
  public:
    explicit InDoubtError(std::string message, TransactionHandle handle = {})
        : Error({ErrorKind::in_doubt, true, std::move(message)}), handle_(std::move(handle)) {}

    /// For `Application::resolve`; empty if there was no transaction.
    const TransactionHandle& handle() const noexcept { return handle_; }

  private:
    TransactionHandle handle_;
};

/// The store did not answer, and certainly nothing was changed.
struct UnavailableError : Error {
    explicit UnavailableError(std::string message) : Error({ErrorKind::unavailable, false, std::move(message)}) {}
};

/// More is queued than the options allow. Nothing was done; try again when less is waiting.
struct OverloadedError : Error {
    explicit OverloadedError(std::string message) : Error({ErrorKind::overloaded, false, std::move(message)}) {}
};

/// A lock or lease is no longer held; whatever it protected must stop.
struct LeaseLostError : Error {
    explicit LeaseLostError(std::string message) : Error({ErrorKind::lease_lost, false, std::move(message)}) {}
};

/// Stored data that contradict themselves or cannot be read. Never retried, never skipped.
struct CorruptionError : Error {
    explicit CorruptionError(std::string message) : Error({ErrorKind::corruption, false, std::move(message)}) {}
};

/// Throws the exception that belongs to a failure: the subclass of its kind, or InDoubtError if it is in doubt.
[[noreturn]] void raise(const Failure& failure);
/// As `raise`, where the caller knows that nothing was changed: what was in doubt becomes unavailable.
[[noreturn]] void raise_certain(Failure failure);
/// Whether the same request may get through when it is sent again.
bool worth_repeating(const Failure& failure) noexcept;

}  // namespace varve
