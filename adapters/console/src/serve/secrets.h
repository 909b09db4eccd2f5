#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace varve::console::serve {

/// What of a store's URL nobody may read in an answer. Adapters leave it out of their messages; this is for what they
/// are told by others.
class Secrets {
  public:
    explicit Secrets(std::string_view url);
    /// Without them.
    std::string without(std::string text) const;

  private:
    std::vector<std::string> secrets_;
};

}  // namespace varve::console::serve
