// power_cut_worker DIRECTORY native|protocol: works on the store in the directory and appends a line to a file there
// for each command that was acknowledged: "FROM TO TRANSFER".

#include "../scene.h"
#include "../trace.h"

#include <cstdio>
#include <exception>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

using namespace varve;
using namespace varve::power_cut;

namespace {

constexpr int rounds = 3;
constexpr int threads = 3;
constexpr int transfers_per_thread = 15;
// With what else is written, more than the log holds before it is moved into the file.
constexpr int notes = 45;
constexpr std::size_t note_bytes = 400'000;

void work(Application& bank, const std::string& prefix, int first, int acknowledged) {
    for (int i = 0; i < transfers_per_thread; ++i) {
        const std::string from = std::to_string((first + i) % accounts);
        const std::string to = std::to_string((first + 2 * i + 1) % accounts);
        if (from == to) continue;
        const std::string transfer = prefix + "-" + std::to_string(i);
        const auto outcome = bank.transact([&](Transaction& tx) {
            tx.execute<Account>(from, Credit{transfer, -1 - i});
            tx.execute<Account>(to, Credit{transfer, 1 + i});
        });
        if (!outcome) throw std::runtime_error("a transfer was rejected");
        const std::string line = from + " " + to + " " + transfer + "\n";
        if (write(acknowledged, line.data(), line.size()) < 0) throw std::runtime_error("no acknowledgement");
    }
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 3) return 2;
    const std::string folder = arguments[1];
    const bool native = arguments[2] == std::string_view{"native"};
    const int acknowledged = open((folder + "/" + acknowledgements).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ApplicationOptions options;
    options.transactions.strategy = native ? transactions::Strategy::automatic : transactions::Strategy::protocol;
    for (int round = 0; round < rounds; ++round) {
        // Each time the store is closed, its log is moved into the file and removed.
        Application bank{open("sqlite:" + folder + "/store.db"), options};
        std::vector<std::jthread> callers;
        for (int thread = 0; thread < threads; ++thread) {
            callers.emplace_back([&, thread] {
                work(bank, std::to_string(round) + "-" + std::to_string(thread), 2 * thread, acknowledged);
            });
        }
        if (round == rounds - 1 && native) {
            for (int i = 0; i < notes; ++i) (void)bank.execute<Diary>("long", Note{std::string(note_bytes, 'x')});
        }
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
