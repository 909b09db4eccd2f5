// Keeps in static storage what a program may keep there: made before main, gone after it. The store's URL is in the
// environment, for there are no arguments yet. Whether all went well shows in the way the process ends.

#include "support/account.h"

#include <cstdlib>

namespace {

varve::Application bank{varve::open(std::getenv("VARVE_STATIC_STORAGE"))};
varve::Lock lock = bank.locks().acquire("static");

}  // namespace

int main() {
    using namespace varve::account;
    return bank.execute<Account>("alice", Open{"Alice"}) ? 0 : 1;
}
