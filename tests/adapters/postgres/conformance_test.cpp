#include "server.h"

#include <varve/postgres/postgres.h>
#include <varve/store/open.h>
#include <varve/testing/store_conformance_gtest.h>

namespace varve::postgres {
namespace {

testing::FreshStore fresh() {
    const std::string url = fresh_url(shared_server());
    const std::string schema = url.substr(url.rfind('=') + 1);
    testing::FreshStore one{varve::open(url), [url] { return varve::open(url); }};
    one.damage = [schema](const store::Key& key) {
        shared_server().client().run("UPDATE " + schema + ".\"" + key.table + "\" SET item = '[1]' WHERE id = '" +
                                     key.partition + "'");
    };
    return one;
}

VARVE_STORE_CONFORMANCE(PostgresConformance, fresh)

}  // namespace
}  // namespace varve::postgres
