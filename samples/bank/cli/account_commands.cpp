#include "../money.h"
#include "../transfers.h"
#include "cli.h"

#include <varve/core/ids.h>

#include <cstdio>

#include <CLI/CLI.hpp>

namespace bank {

namespace {

/// The result of a command, for machines.
struct DoneReport {
    bool ok = true;
    std::vector<varve::Receipt::Written> written;
    std::string transaction;
    std::optional<std::string> transfer;
    unsigned attempts = 1;
    bool repeated = false;
};
struct RejectedReport {
    bool ok = false;
    std::string error = "rejected";
    std::string code;
    std::string message;
};

int report(const Cli& cli, const varve::Outcome& outcome, const std::string& done,
           std::optional<std::string> transfer = {}) {
    if (!outcome) {
        const varve::Rejection& rejection = outcome.error();
        if (cli.json) {
            print_line(varve::json::encode(RejectedReport{.code = rejection.code, .message = rejection.message}));
        } else {
            std::fprintf(stderr, "rejected: %s%s%s\n", rejection.code.c_str(), rejection.message.empty() ? "" : ": ",
                         rejection.message.c_str());
        }
        return exit_refused;
    }
    if (cli.json) {
        print_line(varve::json::encode(DoneReport{.written = outcome->written,
                                                  .transaction = outcome->transaction,
                                                  .transfer = std::move(transfer),
                                                  .attempts = outcome->attempts,
                                                  .repeated = outcome->repeated}));
    } else {
        print_line(done + (outcome->repeated ? " (it had been done before)" : ""));
    }
    return exit_done;
}

/// What the commands on accounts take from the line.
struct Arguments {
    std::string account;
    std::string other;
    std::string amount;
    std::string text;
    std::string id;
    std::vector<std::string> salaries;
};

CLI::Option* add_id(CLI::App& command, Arguments& arguments) {
    return command.add_option("--id", arguments.id, "repeating it under the same id does nothing, for ever");
}

template <class Command>
int execute(const Cli& cli, const Arguments& arguments, const Command& command, const std::string& done) {
    return report(cli, cli.open()->execute<Account>(arguments.account, command, {.command_id = arguments.id}), done);
}

PayrollOrder payroll_order(const Arguments& arguments) {
    PayrollOrder order{.id = arguments.id, .from = arguments.account, .salaries = {}};
    for (const std::string& salary : arguments.salaries) {
        const std::size_t equals = salary.rfind('=');
        if (equals == std::string::npos || equals == 0) {
            throw varve::InvalidError("'" + salary + "' is no salary: write it as bob=100.00");
        }
        order.salaries.push_back({salary.substr(0, equals), parse_money(std::string_view{salary}.substr(equals + 1))});
    }
    return order;
}

std::string new_id(Arguments& arguments) {
    if (arguments.id.empty()) arguments.id = varve::uuid7({});
    return arguments.id;
}

}  // namespace

void add_account_commands(CLI::App& app, Cli& cli) {
    const auto arguments = std::make_shared<Arguments>();
    const auto add = [&](const char* name, const char* description, std::function<int(Arguments&)> run) {
        CLI::App* command = app.add_subcommand(name, description);
        command->add_option("account", arguments->account, "e.g. alice")->required();
        command->callback(
            [&cli, arguments, run = std::move(run)] { cli.chosen = [arguments, run] { return run(*arguments); }; });
        return command;
    };

    CLI::App* open = add("open", "Open an account", [&cli](Arguments& a) {
        return execute(cli, a, Open{a.text.empty() ? a.account : a.text}, "opened " + a.account);
    });
    open->add_option("--owner", arguments->text, "its owner's name; else the account's");
    add_id(*open, *arguments);

    CLI::App* deposit = add("deposit", "Bring money from outside", [&cli](Arguments& a) {
        const Cents cents = parse_money(a.amount);
        return execute(cli, a, Deposit{cents}, "deposited " + money_text(cents) + " to " + a.account);
    });
    CLI::App* withdraw = add("withdraw", "Take money to outside", [&cli](Arguments& a) {
        const Cents cents = parse_money(a.amount);
        return execute(cli, a, Withdraw{cents}, "withdrew " + money_text(cents) + " from " + a.account);
    });
    for (CLI::App* command : {deposit, withdraw}) {
        command->add_option("amount", arguments->amount, "e.g. 100.00")->required();
        add_id(*command, *arguments);
    }

    CLI::App* freeze = add("freeze", "Let no money leave an account",
                           [&cli](Arguments& a) { return execute(cli, a, Freeze{a.text}, "froze " + a.account); });
    freeze->add_option("--reason", arguments->text);
    add("unfreeze", "Let money leave it again",
        [&cli](Arguments& a) { return execute(cli, a, Unfreeze{}, "unfroze " + a.account); });

    CLI::App* one = add("transfer", "Move money from one account to another", [&cli](Arguments& a) {
        const Repeats repeats = a.id.empty() ? Repeats::allowed : Repeats::once;
        const TransferOrder order{new_id(a), a.account, a.other, parse_money(a.amount)};
        return report(cli, transfer(*cli.open(), order, repeats),
                      "transferred " + money_text(order.cents) + " from " + a.account + " to " + a.other, order.id);
    });
    one->add_option("to", arguments->other, "e.g. bob")->required();
    one->add_option("amount", arguments->amount, "e.g. 20.00")->required();
    add_id(*one, *arguments);

    CLI::App* many = add("payroll", "Pay many accounts from one: everybody or nobody", [&cli](Arguments& a) {
        const Repeats repeats = a.id.empty() ? Repeats::allowed : Repeats::once;
        new_id(a);
        const PayrollOrder order = payroll_order(a);
        return report(cli, payroll(*cli.open(), order, repeats),
                      "paid " + std::to_string(order.salaries.size()) + " salaries from " + a.account, order.id);
    });
    many->add_option("salaries", arguments->salaries, "e.g. bob=100.00 carol=120.00")->required();
    add_id(*many, *arguments);
}

}  // namespace bank
