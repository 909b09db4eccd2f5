#include "../balances.h"
#include "../money.h"
#include "../turnover.h"
#include "cli.h"
#include "conversation.h"
#include "interrupt.h"
#include "text.h"

#include <varve/commands/follower_status.h>
#include <varve/events/event_store.h>

#include <algorithm>
#include <cstdio>

#include <CLI/CLI.hpp>

namespace bank {

namespace {

/// Which part of an account's past is asked for.
struct Asked {
    std::string account;
    std::string at;
    varve::Version version = 0;
};

/// A day means its end: a statement as of the 31st has what happened on the 31st.
varve::Time moment_of(const std::string& text) {
    constexpr std::size_t date_bytes = 10;
    const varve::Time moment = varve::parse_time(text);
    return text.size() == date_bytes ? moment + std::chrono::hours{24} - varve::Duration{1} : moment;
}

struct StatementLine {
    varve::Version version = 0;
    varve::Time time = {};
    std::string what;
    Cents cents = 0;
    Cents balance = 0;
    std::optional<std::string> transfer = {};
};
struct Statement {
    bool ok = true;
    std::string account;
    std::string owner;
    varve::Version version = 0;
    Cents balance = 0;
    bool frozen = false;
    std::vector<StatementLine> lines;
};

struct Describe {
    StatementLine& line;

    void operator()(const Opened& e) const { line.what = "opened for " + e.owner; }
    void operator()(const Deposited& e) const { moved(e.cents, e.transfer, "deposit", "from " + with(e.transfer)); }
    void operator()(const Withdrawn& e) const { moved(-e.cents, e.transfer, "withdrawal", "to " + with(e.transfer)); }
    void operator()(const Frozen& e) const { line.what = "frozen" + (e.reason.empty() ? "" : ": " + e.reason); }
    void operator()(const Unfrozen&) const { line.what = "unfrozen"; }

  private:
    static std::string with(const std::optional<Transfer>& transfer) {
        if (!transfer) return "";
        return transfer->with.empty() ? std::to_string(transfer->legs - 1) + " accounts" : transfer->with;
    }
    void moved(Cents cents, const std::optional<Transfer>& transfer, const char* alone,
               const std::string& other) const {
        line.cents = cents;
        line.what = transfer ? other : alone;
        if (transfer) line.transfer = transfer->id;
    }
};

Statement statement_of(varve::Application& bank, const Asked& asked) {
    const std::string stream = varve::stream_name(varve::aggregate_type<Account>(), asked.account);
    const varve::Stream past = !asked.at.empty()    ? bank.events().load_as_of(stream, moment_of(asked.at))
                               : asked.version != 0 ? bank.events().load(stream, 1, asked.version)
                                                    : bank.events().load(stream);
    Statement statement{.account = asked.account, .owner = {}, .lines = {}};
    Account account;
    for (const varve::RecordedEvent& recorded : past.events) {
        for (const Account::Event& event : varve::EventVariant<Account::Event>::decode(recorded)) {
            std::visit([&](const auto& one) { account.apply(one); }, event);
            StatementLine& line = statement.lines.emplace_back();
            std::visit(Describe{line}, event);
            line.version = statement.version = recorded.version;
            line.time = recorded.time;
            line.balance = account.balance;
        }
    }
    statement.owner = account.owner;
    statement.balance = account.balance;
    statement.frozen = account.frozen;
    return statement;
}

int no_such_account(const Cli& cli, const Asked& asked) {
    const std::string message = "there is no account '" + asked.account + "'" +
                                (asked.at.empty() ? "" : ", or was none at " + asked.at) + " in " + cli.store;
    if (cli.json) print_line("{\"ok\":false,\"error\":\"not_open\",\"message\":" + varve::json::quote(message) + "}");
    std::fprintf(stderr, "bank: %s\n", message.c_str());
    return exit_refused;
}

int print_statement(const Cli& cli, const Asked& asked) {
    const Statement statement = statement_of(*cli.open(), asked);
    if (statement.lines.empty()) return no_such_account(cli, asked);
    if (cli.json) {
        print_line(varve::json::encode(statement));
        return exit_done;
    }
    print_line("Account " + statement.account + ", " + statement.owner + (statement.frozen ? " (frozen)" : ""));
    print_line("As of " + (asked.at.empty() ? "version " + std::to_string(statement.version) : asked.at) +
               ", times in UTC\n");
    print_line(padded("time", 21) + padded("what", 31) + aligned("amount", 13) + aligned("balance", 15));
    for (const StatementLine& line : statement.lines) {
        print_line(padded(short_time(line.time), 21) + padded(line.what, 31) +
                   aligned(line.cents == 0 ? "" : money_text(line.cents), 13) + aligned(money_text(line.balance), 15));
    }
    return exit_done;
}

struct HistoryEvent {
    varve::Version version = 0;
    std::size_t index = 0;
    std::string id;
    varve::Time time = {};
    std::string type;
    int schema = 1;
    varve::json::Raw data;
    varve::Metadata metadata;
};
struct History {
    bool ok = true;
    std::string account;
    varve::Version version = 0;
    std::vector<HistoryEvent> events;
};

int print_history(const Cli& cli, const Asked& asked) {
    const varve::Stream stream = cli.open()->history<Account>(asked.account);
    if (stream.events.empty()) return no_such_account(cli, asked);
    if (cli.json) {
        History history{.account = asked.account, .version = stream.head, .events = {}};
        for (const varve::RecordedEvent& e : stream.events) {
            history.events.push_back({.version = e.version,
                                      .index = e.index,
                                      .id = e.id,
                                      .time = e.time,
                                      .type = e.event.type,
                                      .schema = e.event.schema,
                                      .data = {e.event.data},
                                      .metadata = *e.metadata});
        }
        print_line(varve::json::encode(history));
        return exit_done;
    }
    for (const varve::RecordedEvent& e : stream.events) {
        print_line(aligned(std::to_string(e.version) + "." + std::to_string(e.index), 7) + "  " +
                   varve::to_string(e.time) + "  " + e.event.type + " " + e.event.data);
        const varve::Metadata& metadata = *e.metadata;
        std::string more = "id " + e.id;
        if (!metadata.command_id.empty()) more += "  command " + metadata.command_id;
        if (!metadata.correlation.empty()) more += "  correlation " + metadata.correlation;
        if (!metadata.causation.empty()) more += "  causation " + metadata.causation;
        for (const auto& [name, value] : metadata.headers) more += "  " + name + "=" + value;
        print_line("         " + more);
    }
    return exit_done;
}

struct BalanceLine {
    std::string account;
    Balance balance;
};
struct Balances {
    bool ok = true;
    std::vector<BalanceLine> accounts;
    Cents sum = 0;
};

int print_balances(const Cli& cli) {
    Balances balances{.accounts = {}};
    const auto bank = cli.open();
    for (varve::RowOf<Balance>& row : bank->rows<Balance>().all()) {
        balances.sum += row.value.cents;
        balances.accounts.push_back({row.key.partition, std::move(row.value)});
    }
    std::ranges::sort(balances.accounts, {}, &BalanceLine::account);
    if (cli.json) {
        print_line(varve::json::encode(balances));
        return exit_done;
    }
    for (const BalanceLine& line : balances.accounts) {
        print_line(padded(line.account, 20) + padded(line.balance.owner, 25) +
                   aligned(money_text(line.balance.cents), 18) + (line.balance.frozen ? "  frozen" : ""));
    }
    print_line(padded("sum", 45) + aligned(money_text(balances.sum), 18));
    return exit_done;
}

struct DayOfTurnover {
    std::string day;
    Cents in = 0;
    Cents out = 0;
    std::int64_t movements = 0;
};
struct TurnoverReport {
    bool ok = true;
    std::vector<DayOfTurnover> days;
};

struct TurnoverProgress {
    std::int64_t events = 0;
};

/// Until Ctrl-C, as far as no other process does so.
int keep_turnover(const Cli& cli) {
    constexpr auto look_after = std::chrono::milliseconds{100};
    const Interrupt interrupt;
    const auto bank = cli.open();
    follow_turnover(*bank);
    TurnoverProgress told;
    while (!interrupt.came()) {
        const varve::FollowerStatus status = bank->followers().front();
        if (status.state == varve::FollowerStatus::State::stopped) throw varve::CorruptionError(status.error);
        if (status.state != varve::FollowerStatus::State::elsewhere && status.events > told.events) {
            told.events = status.events;
            print_line(cli.json ? varve::json::encode(told) : count_text(told.events) + " events so far");
        }
        bank->runtime().clock.get().sleep_for(look_after);
    }
    return exit_done;
}

int print_turnover(const Cli& cli) {
    const auto bank = cli.open();
    follow_turnover(*bank);
    if (!bank->wait_for<SumUpTurnover>({}, std::chrono::minutes{1})) {
        const varve::FollowerStatus status = bank->followers().front();
        if (status.parked > 0) {
            throw varve::UnavailableError("the turnover lacks accounts that are set aside (" +
                                          std::to_string(status.parked) + "); bank projections says why");
        }
        throw varve::UnavailableError(status.error.empty() ? "the turnover did not catch up within a minute; ask again"
                                                           : status.error);
    }
    TurnoverReport report;
    for (const auto& [key, row] : bank->rows<Turnover>().all())
        report.days.push_back({key.partition, row.in, row.out, row.movements});
    std::ranges::sort(report.days, {}, &DayOfTurnover::day);
    if (cli.json) {
        print_line(varve::json::encode(report));
        return exit_done;
    }
    for (const DayOfTurnover& day : report.days) {
        print_line(day.day + aligned(money_text(day.in), 18) + " in" + aligned(money_text(day.out), 18) + " out" +
                   aligned(count_text(day.movements), 12) + " movements");
    }
    return exit_done;
}

}  // namespace

void add_reading_commands(CLI::App& app, Cli& cli) {
    const auto asked = std::make_shared<Asked>();

    CLI::App* statement =
        app.add_subcommand("statement", "Print what happened on an account, as of a date if you like");
    statement->add_option("account", asked->account)->required();
    CLI::Option* at =
        statement->add_option("--at", asked->at, "a day (its end) or a time: 2026-01-31, 2026-01-31T12:00Z");
    statement->add_option("--version", asked->version, "as of this version")->check(CLI::PositiveNumber)->excludes(at);
    statement->callback([&cli, asked] { cli.chosen = [&cli, asked] { return print_statement(cli, *asked); }; });

    CLI::App* history =
        app.add_subcommand("history", "Print an account's events as they are stored, or those of a conversation");
    const auto correlation = std::make_shared<std::string>();
    CLI::Option* of_account = history->add_option("account", asked->account);
    CLI::Option* of_conversation = history->add_option(
        "--correlation", *correlation, "all accounts' events with this correlation id, each below what led to it");
    of_account->excludes(of_conversation);
    history->callback([&cli, asked, correlation] {
        if (asked->account.empty() && correlation->empty())
            throw CLI::ValidationError("history", "name an account, or give --correlation ID");
        cli.chosen = [&cli, asked, correlation] {
            return correlation->empty() ? print_history(cli, *asked) : print_conversation(cli, *correlation);
        };
    });

    CLI::App* balances = app.add_subcommand("balances", "List all accounts, from the read model");
    balances->callback([&cli] { cli.chosen = [&cli] { return print_balances(cli); }; });

    CLI::App* turnover = app.add_subcommand("turnover", "List what was paid in and out, day by day");
    const auto keep = std::make_shared<bool>(false);
    turnover->add_flag("--follow", *keep, "keep it up to date until Ctrl-C, and say how many events it has taken");
    turnover->callback(
        [&cli, keep] { cli.chosen = [&cli, keep] { return *keep ? keep_turnover(cli) : print_turnover(cli); }; });
}

}  // namespace bank
