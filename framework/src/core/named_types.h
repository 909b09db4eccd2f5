#pragma once

#include <varve/core/type_name.h>

#include <atomic>
#include <mutex>
#include <string_view>

namespace varve {

/// The types that one application uses. Two under one name would read each other's data as their own, so the second is
/// refused.
///
///     static constexpr NamedType account = NamedType::of<Account>("account");
///     if (!types.knows(account)) types.add(account);
///
/// Threads: all methods may be called from any thread. `knows` takes no lock.
class NamedTypes {
  public:
    /// `what` they are, for messages: "aggregate".
    explicit NamedTypes(std::string_view what) : what_(what) {}
    ~NamedTypes();
    NamedTypes(const NamedTypes&) = delete;
    NamedTypes& operator=(const NamedTypes&) = delete;

    /// Whether this very object was added.
    bool knows(const NamedType& type) const noexcept;
    /// ConfigError, which names both, if another type has the name.
    void refuse_another(const NamedType& type) const;
    /// The same, and from now on it is known. `type` must outlive this.
    void add(const NamedType& type);

  private:
    struct Known {
        const NamedType& type;
        const Known* next;
    };

    const std::string_view what_;
    std::mutex adding_;
    std::atomic<const Known*> first_{nullptr};  // grows at its front and never shrinks
};

}  // namespace varve
