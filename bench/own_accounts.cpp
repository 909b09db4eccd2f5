#include "own_accounts.h"

#include <thread>
#include <vector>

namespace bench {

std::string own_account(unsigned thread, long i) {
    return std::to_string(thread) + "." + std::to_string(i % accounts_each);
}

double rate_when_warm(const Plan& plan, unsigned threads, const std::function<int(unsigned, long)>& operation) {
    {
        std::vector<std::jthread> workers;
        for (unsigned t = 0; t < threads; ++t) {
            workers.emplace_back([&operation, t] {
                for (long i = 0; i < accounts_each; ++i) (void)operation(t, i);
            });
        }
    }
    return rate(plan, threads, operation);
}

}  // namespace bench
