#include "local_server.h"

#include <varve/store/open.h>
#include <varve/testing/store_conformance_gtest.h>

namespace varve::dynamodb {
namespace {

/// An empty store on a server that is started once for all cases of a process.
testing::FreshStore fresh(LocalServer::Kind kind, const std::string& options) {
    static std::map<LocalServer::Kind, std::unique_ptr<LocalServer>> servers;
    static int stores = 0;
    auto& server = servers[kind];
    try {
        if (!server) server = std::make_unique<LocalServer>(kind);
    } catch (const ServerMissing& missing) {
        throw testing::CaseSkipped(missing.what());
    }
    const std::string url = server->url("case" + std::to_string(++stores)) + options;
    return {varve::open(url), [url] { return varve::open(url); }};
}

VARVE_STORE_CONFORMANCE(DynoxideConformance, [] { return fresh(LocalServer::Kind::dynoxide, ""); })
VARVE_STORE_CONFORMANCE(DynaliteConformance, [] { return fresh(LocalServer::Kind::dynalite, ""); })

}  // namespace
}  // namespace varve::dynamodb
