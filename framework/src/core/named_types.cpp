#include "core/named_types.h"

#include <varve/core/error.h>

#include <memory>
#include <string>
#include <utility>

namespace varve {

NamedTypes::~NamedTypes() {
    for (const Known* known = first_; known != nullptr;) delete std::exchange(known, known->next);
}

bool NamedTypes::knows(const NamedType& type) const noexcept {
    const Known* known = first_.load(std::memory_order_acquire);
    while (known != nullptr && &known->type != &type) known = known->next;
    return known != nullptr;
}

void NamedTypes::refuse_another(const NamedType& type) const {
    for (const Known* known = first_.load(std::memory_order_acquire); known != nullptr; known = known->next) {
        // Each shared object has a NamedType of its own for the same type.
        if (known->type.name != type.name || known->type.type == type.type) continue;
        throw ConfigError("two " + std::string{what_} + "s are called '" + std::string{type.name} +
                          "': " + std::string{known->type.cpp_name} + " and " + std::string{type.cpp_name} +
                          "; each would read the other's data as its own, so give one of them another name");
    }
}

void NamedTypes::add(const NamedType& type) {
    const std::scoped_lock lock{adding_};
    if (knows(type)) return;
    refuse_another(type);
    auto known = std::make_unique<Known>(Known{type, first_.load(std::memory_order_relaxed)});
    first_.store(known.release(), std::memory_order_release);
}

}  // namespace varve
