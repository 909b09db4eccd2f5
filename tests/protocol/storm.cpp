#include "core/assert.h"
#include "protocol/cluster.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>

/// The simulated cluster, seed after seed: `storm --seeds N --from S`. A failing seed is printed with the command that
/// repeats it.
namespace varve::protocol {
namespace {

std::uint64_t current_seed = 0;

struct Arguments {
    std::uint64_t seeds = 1000;
    std::uint64_t from = 1;
    std::uint64_t cells_least = 0;  ///< 0: the table is not judged
    bool verbose = false;
};

std::string replay(std::uint64_t seed) {
    return "seed=" + std::to_string(seed) + " replay: tests/run storm --seeds 1 --from " + std::to_string(seed);
}

void add(Record& all, const Record& one) {
    for (const auto& [path, count] : one.paths) all.paths[path] += count;
    all.committed += one.committed;
    all.aborted += one.aborted;
    all.in_doubt += one.in_doubt;
    all.stopped += one.stopped;
    all.repeated += one.repeated;
    all.sections += one.sections;
    all.fenced_off += one.fenced_off;
    all.followed += one.followed;
    all.poisoned += one.poisoned;
    all.checked += one.checked;
    all.rebuilt += one.rebuilt;
    all.reactions += one.reactions;
}

int run(const Arguments& arguments) {
    Cells cells;
    Record all;
    std::uint64_t requests = 0, failed = 0, twice = 0, calm = 0, calm_in_doubt = 0;
    Duration simulated{};
    for (std::uint64_t i = 0; i < arguments.seeds; ++i) {
        const std::uint64_t seed = current_seed = arguments.from + i;
        const Settings settings{seed};
        const Result result = simulate(settings);
        std::vector<std::string> violations = result.violations;
        if (seed % 100 == 0) {
            ++twice;
            if (simulate(settings).trace != result.trace) violations.push_back("the same seed ran in two ways");
        }
        if (!violations.empty()) {
            ++failed;
            std::cout << replay(seed) << '\n';
            for (const std::string& violation : violations) std::cout << "    " << violation << '\n';
        } else if (arguments.verbose) {
            std::cout << "seed=" << seed << ": " << result.requests << " requests, " << result.record.committed
                      << " committed, " << result.record.aborted << " aborted, " << result.record.in_doubt
                      << " in doubt, trace " << std::hex << result.trace << std::dec << '\n';
        }
        cells.add(result.cells);
        add(all, result.record);
        requests += result.requests;
        simulated += result.simulated;
        if (!result.stops) {
            calm += result.record.committed + result.record.aborted + result.record.in_doubt;
            calm_in_doubt += result.record.in_doubt;
        }
    }

    std::cout << "storm: " << arguments.seeds << " seeds from " << arguments.from << ", " << failed << " failed; "
              << requests << " requests, " << all.committed << " commands committed";
    for (const auto& [path, count] : all.paths)
        std::cout << (path == all.paths.begin()->first ? " (" : ", ") << path << ' ' << count;
    std::cout << ", repeated " << all.repeated << "), " << all.aborted << " aborted, " << all.in_doubt << " in doubt, "
              << all.stopped << " processes stopped, " << all.sections << " sections entered and " << all.fenced_off
              << " commands refused by the fence, " << all.followed << " events followed and " << all.poisoned
              << " times stopped at one, " << all.rebuilt << " rebuilds, " << all.checked << " checks beside them, "
              << all.reactions << " slots of events reacted to, " << twice << " seeds run twice, "
              << std::chrono::duration_cast<std::chrono::hours>(simulated).count() << " simulated hours\n";
    const std::size_t rare = cells.print(std::cout, arguments.cells_least);
    bool good = failed == 0;
    if (rare > 0) {
        std::cout << rare << " cells were hit less than " << arguments.cells_least << " times\n";
        good = false;
    }
    if (calm_in_doubt * 20 > calm) {
        std::cout << calm_in_doubt << " of " << calm << " commands ended in doubt although nobody was stopped\n";
        good = false;
    }
    return good ? 0 : 1;
}

[[noreturn]] void usage() {
    std::cerr << "usage: storm [--seeds N] [--from S] [--cells LEAST] [--verbose]\n"
                 "  --seeds N      how many seeds, 1000 if not given\n"
                 "  --from S       the first of them, 1 if not given\n"
                 "  --cells LEAST  fail unless every fault has hit every step so often\n"
                 "  --verbose      a line for every seed\n";
    std::exit(2);
}

}  // namespace
}  // namespace varve::protocol

void varve::detail::assertion_failed(const char* file, int line, const char* sentence) {
    std::cout << varve::protocol::replay(varve::protocol::current_seed) << "\n    " << file << ":" << line
              << ": it does not hold that " << sentence << std::endl;
    std::abort();
}

int main(int argc, char** argv) {
    using namespace varve::protocol;
    std::set_terminate([] {
        std::cout << replay(current_seed) << "\n    the process was terminated" << std::endl;
        std::abort();
    });
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        const auto number = [&] {
            if (++i == argc) usage();
            char* end = nullptr;
            const std::uint64_t value = std::strtoull(argv[i], &end, 10);
            if (*end != '\0' || *argv[i] == '\0') usage();
            return value;
        };
        if (option == "--seeds") {
            arguments.seeds = number();
        } else if (option == "--from") {
            arguments.from = number();
        } else if (option == "--cells") {
            arguments.cells_least = number();
        } else if (option == "--verbose") {
            arguments.verbose = true;
        } else {
            usage();
        }
    }
    return run(arguments);
}
