#include "../balances.h"
#include "../money.h"
#include "cli.h"
#include "text.h"

#include <varve/commands/stream_list.h>

#include <cstdio>

#include <CLI/CLI.hpp>

namespace bank {

namespace {

struct AccountsOptions {
    std::string owner;
    std::string starting_with;
    varve::PageOptions page;
};

struct ListedAccount {
    std::string account;
    Balance balance;
    std::optional<varve::Time> since = {};  ///< when it was opened; not known of those that are found by owner
};
struct Accounts {
    bool ok = true;
    std::vector<ListedAccount> accounts;
    std::string next;  ///< for --next; empty: these are all
};

/// By their ids, from the list of all streams.
Accounts by_id(varve::Application& bank, const AccountsOptions& options) {
    const varve::StreamListPage page =
        options.starting_with.empty()
            ? bank.aggregates<Account>(options.page)
            : bank.streams(varve::stream_name(varve::aggregate_type<Account>(), options.starting_with), options.page);
    std::vector<varve::RowKey> keys;
    for (const varve::ListedStream& one : page.streams) keys.emplace_back(one.id());
    const std::vector<std::optional<Balance>> rows = bank.rows<Balance>().get_all(keys);
    Accounts found{.accounts = {}, .next = page.next};
    for (std::size_t i = 0; i < keys.size(); ++i)
        found.accounts.push_back({keys[i].partition, rows[i].value_or(Balance{}), page.streams[i].since});
    return found;
}

/// From the index of the read model.
Accounts by_owner(varve::Application& bank, const AccountsOptions& options) try {
    varve::RowPage<Balance> page = bank.rows<Balance>().where<&Balance::owner>(options.owner, options.page);
    Accounts found{.accounts = {}, .next = std::move(page.next)};
    for (varve::RowOf<Balance>& row : page.rows)
        found.accounts.push_back({.account = row.key.partition, .balance = std::move(row.value)});
    return found;
} catch (const varve::ConfigError& error) {
    throw varve::ConfigError(std::string{error.what()} + ": bank index does so");
}

int print_accounts(const Cli& cli, const AccountsOptions& options) {
    const auto bank = cli.open();
    const Accounts found = options.owner.empty() ? by_id(*bank, options) : by_owner(*bank, options);
    if (cli.json) {
        print_line(varve::json::encode(found));
        return exit_done;
    }
    for (const ListedAccount& one : found.accounts) {
        print_line(padded(one.account, 20) + padded(one.balance.owner, 25) +
                   aligned(money_text(one.balance.cents), 18) +
                   (one.since ? "  since " + short_time(*one.since).substr(0, 10) : "") +
                   (one.balance.frozen ? "  frozen" : ""));
    }
    if (!found.next.empty()) print_line("There are more: repeat it with --next " + found.next);
    return exit_done;
}

struct IndexReport {
    bool ok = true;
    std::size_t changed = 0;
};

int build_index(const Cli& cli) {
    const IndexReport report{.changed = cli.open()->build_indexes<Balance>(varve::OldPrograms::have_ended)};
    print_line(cli.json ? varve::json::encode(report)
                        : "the index of owners is whole; " + count_text(static_cast<std::int64_t>(report.changed)) +
                              " of its entries had to be mended");
    return exit_done;
}

}  // namespace

void add_accounts_commands(CLI::App& app, Cli& cli) {
    const auto options = std::make_shared<AccountsOptions>();
    CLI::App* accounts =
        app.add_subcommand("accounts", "List accounts in the order of their names, or those of an owner");
    CLI::Option* owner = accounts->add_option("--owner", options->owner, "only those of this owner, by the index");
    accounts->add_option("--starting-with", options->starting_with, "only those with names that begin so")
        ->excludes(owner);
    accounts->add_option("--limit", options->page.limit, "at most so many")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    accounts->add_option("--next", options->page.next, "where the list goes on, as the call before has said");
    accounts->callback([&cli, options] { cli.chosen = [&cli, options] { return print_accounts(cli, *options); }; });

    CLI::App* index = app.add_subcommand(
        "index", "Make the index of owners whole, in a store of an older bank; none of these may run any more");
    index->callback([&cli] { cli.chosen = [&cli] { return build_index(cli); }; });
}

}  // namespace bank
