#pragma once

#include <varve/testing/store_conformance.h>

#include <gtest/gtest.h>

namespace varve::testing::detail {

class ConformanceTest final : public ::testing::Test {
  public:
    ConformanceTest(ConformanceCase one, StoreFactory factory) : case_(std::move(one)), factory_(std::move(factory)) {}
    void TestBody() override {
        try {
            case_.run(factory_);
        } catch (const CaseSkipped& skipped) {
            GTEST_SKIP() << skipped.what();
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }

  private:
    ConformanceCase case_;
    StoreFactory factory_;
};

inline bool register_conformance(const char* suite, const StoreFactory& factory, const char* file, int line) {
    for (const ConformanceCase& one : store_conformance()) {
        ::testing::RegisterTest(suite, one.name.c_str(), nullptr, nullptr, file, line,
                                [one, factory]() -> ::testing::Test* { return new ConformanceTest(one, factory); });
    }
    return true;
}

}  // namespace varve::testing::detail

/// Makes every case a test of its own, of the suite `name`. At namespace scope:
///
///     VARVE_STORE_CONFORMANCE(MemoryConformance, [] { return varve::open("memory:"); })
#define VARVE_STORE_CONFORMANCE(name, ...)                       \
    [[maybe_unused]] static const bool varve_registered_##name = \
        ::varve::testing::detail::register_conformance(#name, __VA_ARGS__, __FILE__, __LINE__);
