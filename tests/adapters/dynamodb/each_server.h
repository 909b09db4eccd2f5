#pragma once

#include "local_server.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace varve::dynamodb {

/// Starts a server for the test that runs; without a way to install one, this test is skipped, and gets nullptr.
inline std::unique_ptr<LocalServer> server_or_skip(LocalServer::Kind kind, std::string path = "") {
    try {
        return std::make_unique<LocalServer>(kind, std::move(path));
    } catch (const ServerMissing& missing) {
        [&] { GTEST_SKIP() << missing.what(); }();
        return nullptr;
    }
}

/// A suite whose tests run on a server of each kind, new for each:
///
///     class Costs : public EachServer {};
///     INSTANTIATE_TEST_SUITE_P(Each, Costs, each_kind(), name_of_kind);
///     TEST_P(Costs, …)
///
/// One that has more to set up does so after EachServer::SetUp(), if there is a `server_`.
class EachServer : public ::testing::TestWithParam<LocalServer::Kind> {
  protected:
    void SetUp() override { server_ = server_or_skip(GetParam()); }

    std::unique_ptr<LocalServer> server_;
};

inline auto each_kind() {
    return ::testing::Values(LocalServer::Kind::dynoxide, LocalServer::Kind::dynalite);
}
inline std::string name_of_kind(const ::testing::TestParamInfo<LocalServer::Kind>& info) {
    return to_string(info.param);
}

}  // namespace varve::dynamodb
