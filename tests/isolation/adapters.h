#pragma once

#include <varve/store/open.h>

#include <ostream>
#include <string>
#include <vector>

namespace varve::isolation {

/// A store to test on. "%" in the URL stands for a directory of the test's own.
struct Adapter {
    std::string name;
    std::string url;

    friend std::ostream& operator<<(std::ostream& out, const Adapter& adapter) { return out << adapter.name; }
};

/// One line each binds an adapter to everything here.
inline const std::vector<Adapter> adapters{
    {"memory", "memory:"},
    {"sqlite", "sqlite:%/store.db?synchronous=normal"},
};

}  // namespace varve::isolation
