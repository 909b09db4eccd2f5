// The isolation table on servers of DynamoDB's protocol.

#include "../each_server.h"
#include "adapters/on_servers/isolation_sample.h"

namespace varve::dynamodb {
namespace {

class IsolationTable : public EachServer {};

INSTANTIATE_TEST_SUITE_P(Each, IsolationTable, each_kind(), name_of_kind);

TEST_P(IsolationTable, holds_in_every_cell) {
    on_servers::IsolationSample{varve::open(server_->url("isolation"))}.expect_every_cell();
}

}  // namespace
}  // namespace varve::dynamodb
