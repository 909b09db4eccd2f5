// The protocol on a PostgreSQL server, whoever ends at whatever request and in whatever order requests come.

#include "../server.h"
#include "adapters/on_servers/fresh_stores.h"
#include "adapters/on_servers/isolation_sample.h"

namespace varve::postgres {
namespace {

TEST(CrashGrid, all_or_nothing_whoever_ends_at_whatever_request) {
    on_servers::FreshStores stores{[](unsigned) { return varve::open(fresh_url(shared_server())); }};
    on_servers::run_crash_grid_on(stores, "postgres");
}

TEST(IsolationTable, holds_in_every_cell) {
    on_servers::IsolationSample{varve::open(fresh_url(shared_server()))}.expect_every_cell();
}

}  // namespace
}  // namespace varve::postgres
