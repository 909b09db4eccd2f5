#include "load_options.h"

#include <CLI/CLI.hpp>

namespace bank {

void add_load_options(CLI::App& command, Load& load) {
    command.add_option("--transfers", load.transfers, "how many")->check(CLI::PositiveNumber)->capture_default_str();
    command
        .add_option("--workers", load.workers,
                    "threads of a process, each waiting for its transfer before it begins the next")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    command.add_option("--accounts", load.accounts, "among how many accounts; missing ones are opened")
        ->check(CLI::Range(2, 10'000'000))
        ->capture_default_str();
    command
        .add_option_function<std::string>(
            "--distribution",
            [&load](const std::string& name) {
                load.distribution = name == to_string(Distribution::zipf) ? Distribution::zipf : Distribution::uniform;
            },
            "of the accounts: zipf (some are hot) or uniform")
        ->check(CLI::IsMember({to_string(Distribution::zipf), to_string(Distribution::uniform)}).description(""))
        ->default_str(to_string(load.distribution));
    command.add_option("--theta", load.theta, "how hot: account k is drawn in proportion to 1/k^theta")
        ->check(CLI::Range(0.0, 10.0))
        ->check(CLI::Validator{[](const std::string& text) {
                                   return text.find_first_of("nN") == std::string::npos ? "" : text + " is no number";
                               },
                               ""})
        ->capture_default_str();
    command.add_option("--opening-cents", load.opening, "deposited to each account that is opened")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command.add_option("--seed", load.seed, "of the random numbers; 0: another one each time")->capture_default_str();
}

}  // namespace bank
