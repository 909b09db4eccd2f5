#include <varve/store/open.h>
#include <varve/testing/store_conformance_gtest.h>

VARVE_STORE_CONFORMANCE(MemoryConformance, [] { return varve::open("memory:"); })

VARVE_STORE_CONFORMANCE(NamedMemoryConformance, [] {
    const auto store = varve::open("memory:conformance");
    return varve::testing::FreshStore{store, [] { return varve::open("memory:conformance"); }};
})
