#include "fault_proxy.h"
#include "local_server.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/store_conformance_gtest.h>

namespace varve::dynamodb {
namespace {

/// A server that is started once for all cases of a process. No server of this kind stores what is not in its form, so
/// what is marked as spoilt is so on its way.
struct SpoilingServer {
    explicit SpoilingServer(LocalServer::Kind kind) : server(kind) {}

    static void spoil(std::string& body) {
        constexpr std::string_view whole = R"({"S":"spoilt"})";
        for (std::size_t at = 0; (at = body.find(whole, at)) != std::string::npos;)
            body.replace(at, whole.size(), R"({"S":12345678})");
    }

    LocalServer server;
    FaultProxy proxy{server.port(), {.rewrite = &spoil}};
};

testing::FreshStore fresh(LocalServer::Kind kind) {
    static std::map<LocalServer::Kind, std::unique_ptr<SpoilingServer>> servers;
    static int stores = 0;
    auto& server = servers[kind];
    try {
        if (!server) server = std::make_unique<SpoilingServer>(kind);
    } catch (const ServerMissing& missing) {
        throw testing::CaseSkipped(missing.what());
    }
    const std::string url =
        "dynamodb://" + server->proxy.address() + "/case" + std::to_string(++stores) + "?region=eu-west-1";
    testing::FreshStore one{varve::open(url), [url] { return varve::open(url); }};
    one.damage = [store = one.store](const store::Key& key) {
        const store::Write write{key, store::Update{{{"mark", "spoilt"}}, {}}};
        if (!std::holds_alternative<store::Applied>(store->write({&write, 1}).front()))
            throw std::runtime_error("the item could not be marked");
    };
    return one;
}

VARVE_STORE_CONFORMANCE(DynoxideConformance, [] { return fresh(LocalServer::Kind::dynoxide); })
VARVE_STORE_CONFORMANCE(DynaliteConformance, [] { return fresh(LocalServer::Kind::dynalite); })

}  // namespace
}  // namespace varve::dynamodb
