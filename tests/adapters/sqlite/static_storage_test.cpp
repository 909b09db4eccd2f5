#include "scratch_file.h"

#include <varve/store/item_store.h>

#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

namespace varve::sqlite {
namespace {

TEST(StaticStorage, holds_an_application_and_its_lock_from_before_main_until_after_it_and_a_child_leaves_it_alone) {
    const ScratchFile file;
    const pid_t program = fork();
    if (program == 0) {
        setenv("VARVE_STATIC_STORAGE", file.url().c_str(), 1);
        execl(VARVE_STATIC_STORAGE, VARVE_STATIC_STORAGE, nullptr);
        _exit(127);
    }
    int status = -1;
    ASSERT_EQ(waitpid(program, &status, 0), program);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(status, 0);
    const auto store = sqlite::open(file.options());
    const store::Page page = store->query({.table = "events", .partition = "account-alice"});
    EXPECT_EQ(page.records.size(), 2U);
}

}  // namespace
}  // namespace varve::sqlite
