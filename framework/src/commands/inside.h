#pragma once

namespace varve::detail {

/// Lives while this thread runs a handler, or the body of a transaction, for an application. A command that is executed
/// from there would wait for the one that it is called from: in its lane, in its line, or crosswise with another one.
///
/// Threads: each has its own.
class Inside {
  public:
    explicit Inside(const void* application) noexcept : application_(application), outer_(innermost) {
        innermost = this;
    }
    ~Inside() { innermost = outer_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

    static bool of(const void* application) noexcept {
        const Inside* one = innermost;
        while (one != nullptr && one->application_ != application) one = one->outer_;
        return one != nullptr;
    }

  private:
    static thread_local const Inside* innermost;

    const void* const application_;
    const Inside* const outer_;
};

}  // namespace varve::detail
