#include "adapters/on_servers/added_read_model.h"

#include "scratch_file.h"

#include <gtest/gtest.h>

namespace varve::sqlite {
namespace {

#ifdef NDEBUG
constexpr int transfers = 100'000;
#else
constexpr int transfers = 2'000;
#endif

TEST(AddedReadModel, comes_up_right_beside_many_transfers_and_those_who_go_on_with_them) {
    const ScratchFile file{fast_directory()};
    Options options = file.options();
    options.synchronous = Synchronous::normal;
    on_servers::add_read_model([&] { return sqlite::open(options); }, transfers);
}

}  // namespace
}  // namespace varve::sqlite
