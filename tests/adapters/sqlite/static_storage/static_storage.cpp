// Keeps in static storage what a program may keep there: made before main, gone after it. The store's URL is in the
// environment, for there are no arguments yet. Whether all went well shows in the way the process ends.

#include "support/account.h"

#include <varve/locks/locks.h>

#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

// The child has none of its parent's threads; what only these could reach seems to leak in it.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
    return "detect_leaks=0";
}

namespace {

varve::Application bank{varve::open(std::getenv("VARVE_STATIC_STORAGE"))};
varve::Lock lock = bank.locks().acquire("static");

/// Whether a child that has all this from its parent comes to its end, and leaves it to the parent.
bool child_exits() {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);  // ends one that hangs
        std::exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main() {
    using namespace varve::account;
    if (!bank.execute<Account>("alice", Open{"Alice"})) return 1;
    if (!child_exits()) return 2;
    return bank.execute<Account>("alice", Deposit{1}, {.fenced_by = &lock}) ? 0 : 3;
}
