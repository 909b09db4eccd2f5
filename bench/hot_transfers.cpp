#include "account.h"
#include "figures.h"

#include <algorithm>
#include <mutex>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

/// What transfers between any two of three accounts came to.
struct Run {
    double rate = 0;
    double p50_ms = 0;
    double p99_ms = 0;
    long least = 0;  ///< transfers of the thread that got fewest
    long most = 0;
    long conflicts = 0;  ///< ConflictErrors
};

Run run(const Plan& plan, const std::string& url, unsigned threads, varve::Escalation escalation) {
    varve::Application bank{varve::open(url), {.escalation = escalation}};
    for (const char* id : {"0", "1", "2"}) static_cast<void>(bank.execute<Account>(id, Deposit{1'000'000}));
    std::mutex mutex;
    std::vector<double> all_ms;
    std::vector<long> of_thread(threads);
    Run result;
    result.rate = rate(plan, threads, [&](unsigned thread, long i) {
        const auto from = (thread + static_cast<unsigned long>(i)) % 3;
        const auto began = Clock::now();
        try {
            const auto outcome = bank.transact([&](varve::Transaction& tx) {
                tx.execute<Account>(std::to_string(from), Withdraw{1});
                tx.execute<Account>(std::to_string((from + 1) % 3), Deposit{1});
            });
            const double ms = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
            const std::lock_guard lock{mutex};
            all_ms.push_back(ms);
            ++of_thread[thread];
            return outcome ? 1 : 0;
        } catch (const varve::ConflictError&) {
            const std::lock_guard lock{mutex};
            ++result.conflicts;
            return 0;
        }
    });
    if (all_ms.empty()) return result;
    std::ranges::sort(all_ms);
    result.p50_ms = all_ms[all_ms.size() / 2];
    result.p99_ms = all_ms[all_ms.size() * 99 / 100];
    result.least = *std::ranges::min_element(of_thread);
    result.most = *std::ranges::max_element(of_thread);
    return result;
}

}  // namespace

std::vector<Figure> hot_transfers(const Plan& plan) {
    std::vector<Figure> figures;
    int file = 0;
    const auto fresh = [&] {
        return "sqlite:" + (plan.folder / ("transfers" + std::to_string(++file) + ".db")).string();
    };
    for (const unsigned threads : {8u, 64u, 512u}) {
        const std::string name = "sqlite_transfers_on_3_hot_accounts_" + std::to_string(threads) + "_threads";
        if (!plan.wants(name)) continue;
        const Run without = run(plan, fresh(), threads, {.queue_time_max = varve::Duration::zero()});
        const Run with = run(plan, fresh(), threads, {});
        figures.push_back({.name = name,
                           .unit = "transfers/s",
                           .rate = with.rate,
                           .raw_rate = without.rate,
                           .raw = "the same without lines: " + std::to_string(without.conflicts) + " ConflictErrors"});
        figures.push_back(
            {.name = name + "_p99", .unit = "ms", .rate = with.p99_ms, .raw_rate = with.p50_ms, .raw = "p50"});
        figures.push_back({.name = name + "_most",
                           .unit = "transfers",
                           .rate = static_cast<double>(with.most),
                           .raw_rate = static_cast<double>(with.least),
                           .raw = "of the thread that got fewest"});
        figures.push_back({.name = name + "_conflict_errors",
                           .unit = "errors",
                           .rate = static_cast<double>(with.conflicts),
                           .raw_rate = static_cast<double>(without.conflicts),
                           .raw = "the same without lines"});
    }
    return figures;
}

}  // namespace bench
