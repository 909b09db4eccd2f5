#include "../each_server.h"
#include "adapters/on_servers/list_append_run.h"

namespace varve::dynamodb {
namespace {

class ListAppend : public EachServer {};

INSTANTIATE_TEST_SUITE_P(Each, ListAppend, each_kind(), name_of_kind);

TEST_P(ListAppend, by_four_processes_of_which_some_are_killed_is_strictly_serializable) {
    on_servers::run_list_append(server_->url("lists"));
}

}  // namespace
}  // namespace varve::dynamodb
