#include "../server.h"
#include "adapters/on_servers/faulty_commands.h"
#include "fault_proxy.h"

#include <gtest/gtest.h>

namespace varve::postgres {
namespace {

using namespace on_servers;

Fault fault_of(std::size_t number) {
    return static_cast<Fault>(drawn_fault(number, fault_kinds, 20, 200));
}

TEST(FaultyNetwork, lets_every_command_happen_exactly_once_or_never_or_be_told_in_doubt) {
    SCOPED_TRACE(replay());
    std::cout << "seed=" << seed() << '\n';
    constexpr std::size_t faults = 500;
    const Server& server = shared_server();
    Application clean{varve::open(server.url() + "?schema=bank")};
    open_accounts(clean);

    std::atomic<bool> is_healed = false;
    const FaultProxy proxy{server.port(), [&](std::size_t n) { return is_healed ? Fault::none : fault_of(n); }};
    std::deque<Worker> workers;
    {
        Application bank{varve::open("postgres://varve@" + proxy.address() +
                                     "/postgres?schema=bank&sslmode=disable&gssencmode=disable&timeout_ms=300"),
                         {.transactions = {.lease = std::chrono::milliseconds{500}}}};
        workers = run_workers(
            bank, [&] { return proxy.faults() >= faults; }, seed());
        is_healed = true;  // so that its end is quick
    }
    EXPECT_GE(proxy.faults(), faults);
    for (std::size_t i = 1; i < fault_kinds; ++i) EXPECT_GE(proxy.count(static_cast<Fault>(i)), 2U) << "fault " << i;
    std::cout << proxy.requests() << " requests, " << proxy.faults() << " faults; ";
    expect_told_truly(clean, workers);
}

}  // namespace
}  // namespace varve::postgres
