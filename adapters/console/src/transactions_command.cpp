#include "console.h"
#include "output.h"
#include "reports.h"

#include <varve/operations/transactions.h>
#include <varve/store/item.h>

#include <cstdint>
#include <optional>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

using operations::OpenTransaction;
using transactions::Verdict;

int list_transactions(Console& console) {
    Application& application = console.application();
    const Time now = application.runtime().clock.get().now();
    Table table{{{"transaction"}, {"is"}, {"age", Table::Align::right}, {"lease", Table::Align::right}, {"claims on"}}};
    std::size_t count = 0;
    for (const OpenTransaction& one : operations::open_transactions(application)) {
        ++count;
        if (console.json) {
            print_json(report_of(one));
            continue;
        }
        std::string claims = one.claims.empty() ? "" : shown(store::to_string(one.claims.front()));
        if (one.claims.size() > 1) claims += " and " + std::to_string(one.claims.size() - 1) + " more";
        table.add({shown(one.id), name_of(one.verdict), shown(now - one.since),
                   one.lease > now ? "for " + shown(one.lease - now) : "over for " + shown(now - one.lease), claims});
    }
    table.end();
    if (count == 0 && !console.json) print_line("no transaction has a claim on anything");
    return done;
}

struct Settled {
    std::string transaction;
    std::string verdict;
};

void print_settled(const Console& console, const std::string& id, const char* verdict) {
    if (console.json) {
        print_json(Settled{id, verdict});
    } else {
        print_line(shown(id) + " is " + verdict + ", and cleared");
    }
}

/// Ends this one, whether its owner lives or not.
int settle_one(Console& console, const std::string& id) {
    Application& application =
        console.to_write("end the transaction " + id + ", whether its owner lives or not, and clear what it has left");
    std::optional<Verdict> verdict;
    for (bool is_there = true; is_there;) {  // a large one is found a thousand claims at a time
        is_there = false;
        for (const OpenTransaction& one : operations::open_transactions(application, SIZE_MAX)) {
            if (one.id != id) continue;
            is_there = true;
            verdict = operations::settle(application, one);
            if (verdict == Verdict::undecided)
                throw UnavailableError("the store did not answer what would have ended it; ask again");
        }
    }
    if (verdict) {
        print_settled(console, id, name_of(*verdict));
        return done;
    }
    if (!console.json) print_line("there is no open transaction " + shown(id));
    return not_done;
}

/// Clears what the dead have left. Who lives is seen to renew its lease, or to finish, meanwhile.
int settle_all(Console& console) {
    Application& application = console.to_write(
        "put into place or undo what transactions have left whose owners are seen to stand still for a lease");
    const Duration patience = 3 * console.program.options.transactions.lease + std::chrono::seconds{1};
    const std::vector<operations::SettledTransaction> settled = operations::settle_dead(application, patience);
    for (const operations::SettledTransaction& one : settled) print_settled(console, one.id, name_of(one.verdict));
    const std::size_t left = operations::open_transactions(application).size();
    if (!console.json && settled.empty() && left == 0) print_line("no transaction has a claim on anything");
    if (!console.json && left > 0) print_line(shown(static_cast<std::int64_t>(left)) + " go on: their owners live");
    return done;
}

}  // namespace

void add_transactions_command(CLI::App& app, Console& console) {
    CLI::App* transactions =
        app.add_subcommand("transactions", "List transactions that hold stored items, and end them");
    transactions->callback([&console, transactions] {
        if (transactions->get_subcommands().empty()) console.chosen = [&console] { return list_transactions(console); };
    });
    CLI::App* settling = transactions->add_subcommand("settle", "End one, or all whose owners have died");
    const auto id = std::make_shared<std::string>();
    settling->add_option("transaction", *id,
                         "its id, whether its owner lives or not; without it, those whose owners have died");
    settling->callback([&console, id] {
        console.chosen = [&console, id] { return id->empty() ? settle_all(console) : settle_one(console, *id); };
    });
}

}  // namespace varve::console
