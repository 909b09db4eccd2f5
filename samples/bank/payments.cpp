#include "payments.h"

#include "balances.h"
#include "transfers.h"

#include <varve/core/ids.h>
#include <varve/transactions/metrics.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

namespace bank {

namespace {

constexpr std::size_t opened_together = 20;

/// Runs `work(worker)` on threads of its own; the first exception stops the others at their next look at `stop`, and is
/// thrown.
void on_threads(std::size_t workers, const std::function<void(std::size_t, const std::atomic<bool>&)>& work) {
    std::atomic<bool> stop = false;
    std::mutex mutex;
    std::exception_ptr failure;
    {
        std::vector<std::jthread> threads;
        for (std::size_t worker = 0; worker < workers; ++worker) {
            threads.emplace_back([&, worker] {
                try {
                    work(worker, stop);
                } catch (...) {
                    const std::lock_guard lock{mutex};
                    if (!failure) failure = std::current_exception();
                    stop = true;
                }
            });
        }
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

const char* to_string(Distribution distribution) {
    return distribution == Distribution::zipf ? "zipf" : "uniform";
}

Popularity::Popularity(Distribution distribution, std::size_t count, double theta) {
    cumulated_.reserve(count);
    double sum = 0;
    for (std::size_t k = 1; k <= count; ++k) {
        sum += distribution == Distribution::uniform ? 1 : std::pow(static_cast<double>(k), -theta);
        cumulated_.push_back(sum);
    }
}

std::size_t Popularity::draw(std::mt19937_64& random) const {
    const double point = std::uniform_real_distribution<double>{0, cumulated_.back()}(random);
    const auto found = std::ranges::upper_bound(cumulated_, point);
    return std::min(static_cast<std::size_t>(found - cumulated_.begin()), cumulated_.size() - 1);
}

Recoveries& Recoveries::operator+=(const Recoveries& other) {
    conflicts += other.conflicts;
    fenced += other.fenced;
    undone += other.undone;
    finalised += other.finalised;
    swept += other.swept;
    return *this;
}

Recoveries recoveries(varve::Application& bank) {
    const varve::transactions::Metrics& metrics = bank.metrics();
    return {.conflicts = metrics.conflicts,
            .fenced = metrics.fenced,
            .undone = metrics.undone_for_others,
            .finalised = metrics.finalised_for_others,
            .swept = metrics.swept};
}

void Figures::add(const Ended& ended) {
    switch (ended.ending) {
        case Ending::committed:
            ++committed;
            latencies.push_back(ended.took);
            break;
        case Ending::rejected: ++rejected; break;
        case Ending::gave_up: ++gave_up; break;
        case Ending::in_doubt: ++in_doubt; break;
    }
    retries += ended.attempts - 1;
}

void Figures::finish() {
    std::ranges::sort(latencies);
}

std::chrono::microseconds Figures::percentile(double share) const {
    if (latencies.empty()) return {};
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(latencies.size())));
    return latencies[std::clamp<std::size_t>(rank, 1, latencies.size()) - 1];
}

std::string account_id(std::size_t number) {
    std::string digits = std::to_string(number);
    return "a" + std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

void open_accounts(varve::Application& bank, const Load& load) {
    std::vector<varve::RowKey> keys;
    for (std::size_t i = 0; i < load.accounts; ++i) keys.emplace_back(account_id(i));
    const std::vector<std::optional<Balance>> rows = bank.rows<Balance>().get_all(keys);
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (!rows[i]) missing.push_back(keys[i].partition);
    }
    std::atomic<std::size_t> next = 0;
    on_threads(load.workers, [&](std::size_t, const std::atomic<bool>& stop) {
        while (!stop) {
            const std::size_t first = next.fetch_add(opened_together);
            if (first >= missing.size()) return;
            const std::size_t last = std::min(first + opened_together, missing.size());
            static_cast<void>(bank.transact([&](varve::Transaction& tx) {
                for (std::size_t i = first; i < last; ++i) {
                    if (tx.load<Account>(missing[i]).open) continue;  // another process was faster
                    tx.execute<Account>(missing[i], Open{"Customer " + missing[i].substr(1)});
                    if (load.opening > 0) tx.execute<Account>(missing[i], Deposit{load.opening});
                }
            }));
        }
    });
}

Figures pay(varve::Application& bank, const Load& load, const Observer& observer) {
    if (load.accounts < 2) throw varve::InvalidError("transfers need at least 2 accounts");
    if (load.workers < 1) throw varve::InvalidError("transfers need at least 1 worker");
    if (load.cents_max < 1) throw varve::InvalidError("the largest transfer must be at least 0.01");
    if (!(load.theta >= 0) || std::isinf(load.theta)) throw varve::InvalidError("theta must be a number from 0 on");
    const Popularity popularity{load.distribution, load.accounts, load.theta};
    const varve::Runtime runtime = bank.runtime();
    const std::uint64_t seed = load.seed != 0 ? load.seed : runtime.random.get().next();
    std::atomic<std::size_t> taken = 0;
    std::vector<Figures> parts(load.workers);
    on_threads(load.workers, [&](std::size_t worker, const std::atomic<bool>& stop) {
        std::seed_seq sequence{seed, seed >> 32, static_cast<std::uint64_t>(worker)};
        std::mt19937_64 random{sequence};
        std::uniform_int_distribution<Cents> cents{1, load.cents_max};
        while (!stop && !observer.is_enough() && taken.fetch_add(1) < load.transfers) {
            const std::size_t from = popularity.draw(random);
            std::size_t to = popularity.draw(random);
            while (to == from) to = popularity.draw(random);
            const TransferOrder order{
                .id = varve::uuid7(runtime), .from = account_id(from), .to = account_id(to), .cents = cents(random)};
            observer.begun({order.id});
            Ended ended{.id = order.id, .ending = Ending::committed, .took = {}, .attempts = 1};
            const auto began = std::chrono::steady_clock::now();
            try {
                const varve::Outcome outcome = transfer(bank, order);
                if (outcome) {
                    ended.attempts = outcome->attempts;
                } else {
                    ended.ending = Ending::rejected;
                }
            } catch (const varve::ConflictError&) {
                ended.ending = Ending::gave_up;
            } catch (const varve::InDoubtError&) {
                ended.ending = Ending::in_doubt;
            }
            ended.took =
                std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began);
            parts[worker].add(ended);
            observer.ended(ended);
        }
    });

    Figures figures;
    for (Figures& part : parts) {
        figures.committed += part.committed;
        figures.rejected += part.rejected;
        figures.gave_up += part.gave_up;
        figures.in_doubt += part.in_doubt;
        figures.retries += part.retries;
        std::ranges::copy(part.latencies, std::back_inserter(figures.latencies));
    }
    figures.finish();
    return figures;
}

}  // namespace bank
