#pragma once

namespace varve {

/// Makes operator new fail in this program: the n-th allocation of all threads from now on, or all from the n-th on.
///
///     FailingNew failing{7, FailingNew::Which::one};
///     …
///     failing.stop();
///     if (!failing.has_failed()) …   // there were fewer than 7
///
/// Threads: one at a time exists.
class FailingNew {
  public:
    enum class Which { one, all_after };

    FailingNew(long n, Which which);
    ~FailingNew() { stop(); }
    FailingNew(const FailingNew&) = delete;
    FailingNew& operator=(const FailingNew&) = delete;

    void stop();
    bool has_failed() const;
};

}  // namespace varve
