#include "account.h"
#include "figures.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <random>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

/// What transfers between any two of a few accounts came to.
struct Run {
    double rate = 0;
    double p50_ms = 0;
    double p99_ms = 0;
    long least = 0;  ///< transfers of the thread that got fewest
    long most = 0;
    long conflicts = 0;  ///< ConflictErrors
};

Run run(const Plan& plan, const std::string& url, unsigned accounts, unsigned threads, varve::Escalation escalation) {
    varve::Application bank{varve::open(url), {.escalation = escalation}};
    for (unsigned id = 0; id < accounts; ++id)
        static_cast<void>(bank.execute<Account>(std::to_string(id), Deposit{1'000'000}));
    std::mutex mutex;
    std::vector<double> all_ms;
    std::vector<long> of_thread(threads);
    std::vector<std::minstd_rand> randoms;
    for (unsigned thread = 0; thread < threads; ++thread) randoms.emplace_back(thread + 1);
    Run result;
    result.rate = rate(plan, threads, [&](unsigned thread, long) {
        std::minstd_rand& random = randoms[thread];
        const auto from = random() % accounts;
        const auto to = (from + 1 + random() % (accounts - 1)) % accounts;
        const auto began = Clock::now();
        try {
            const auto outcome = bank.transact([&](varve::Transaction& tx) {
                tx.execute<Account>(std::to_string(from), Withdraw{1});
                tx.execute<Account>(std::to_string(to), Deposit{1});
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
    constexpr std::array all_threads{8u, 64u, 512u};
    constexpr int rounds = 3;
    std::vector<Figure> figures;
    int file = 0;
    const auto fresh = [&] {
        return "sqlite:" + (plan.folder / ("transfers" + std::to_string(++file) + ".db")).string();
    };
    for (const unsigned accounts : {3u, 20u}) {
        const auto name = [&](unsigned threads) {
            return "sqlite_transfers_on_" + std::to_string(accounts) + "_hot_accounts_" + std::to_string(threads) +
                   "_threads";
        };
        if (std::ranges::none_of(all_threads, [&](unsigned threads) { return plan.wants(name(threads)); })) continue;
        // In turn: the disk's flush takes as long as it likes, and all of a round meet about the same.
        std::map<unsigned, std::vector<Run>> runs;
        for (int round = 0; round < rounds; ++round) {
            for (const unsigned threads : all_threads)
                runs[threads].push_back(run(plan, fresh(), accounts, threads, {}));
        }
        for (auto& [threads, all] : runs) std::ranges::sort(all, {}, &Run::rate);
        for (const unsigned threads : all_threads) {
            if (!plan.wants(name(threads))) continue;
            const Run& median = runs[threads][rounds / 2];
            figures.push_back({.name = name(threads),
                               .unit = "transfers/s",
                               .rate = median.rate,
                               .raw_rate = runs[all_threads.front()][rounds / 2].rate,
                               .raw = "the same by 8 threads"});
            figures.push_back({.name = name(threads) + "_p99",
                               .unit = "ms",
                               .rate = median.p99_ms,
                               .raw_rate = median.p50_ms,
                               .raw = "p50"});
            figures.push_back({.name = name(threads) + "_most",
                               .unit = "transfers",
                               .rate = static_cast<double>(median.most),
                               .raw_rate = static_cast<double>(median.least),
                               .raw = "of the thread that got fewest"});
            const Run without = run(plan, fresh(), accounts, threads, {.queue_time_max = varve::Duration::zero()});
            figures.push_back({.name = name(threads) + "_without_lines",
                               .unit = "transfers/s",
                               .rate = without.rate,
                               .raw_rate = median.rate,
                               .raw = "with lines"});
            figures.push_back({.name = name(threads) + "_conflict_errors",
                               .unit = "errors",
                               .rate = static_cast<double>(median.conflicts),
                               .raw_rate = static_cast<double>(without.conflicts),
                               .raw = "the same without lines"});
        }
    }
    return figures;
}

}  // namespace bench
