#include "console.h"
#include "output.h"
#include "reports.h"

#include <varve/operations/transactions.h>
#include <varve/store/item.h>

#include <algorithm>

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
    for (const OpenTransaction& one : operations::open_transactions(application)) {
        if (one.id != id) continue;
        const Verdict verdict = operations::settle(application, one);
        if (verdict == Verdict::undecided)
            throw UnavailableError("the store did not answer what would have ended it; ask again");
        print_settled(console, id, name_of(verdict));
        return done;
    }
    if (!console.json) print_line("there is no open transaction " + shown(id));
    return not_done;
}

/// Clears what the dead have left. Who lives is seen to renew its lease, or to finish, meanwhile.
int settle_all(Console& console) {
    Application& application = console.to_write(
        "put into place or undo what transactions have left whose owners are seen to stand still for a lease");
    const std::vector<OpenTransaction> before = operations::open_transactions(application);
    const Duration patience = 3 * console.program.options.transactions.lease + std::chrono::seconds{1};
    const bool is_clear = before.empty() || application.settle(patience);
    const std::vector<OpenTransaction> after = operations::open_transactions(application);
    std::size_t left = 0;
    for (const OpenTransaction& one : before) {
        if (std::ranges::find(after, one.id, &OpenTransaction::id) != after.end()) {
            ++left;
            continue;
        }
        const Verdict verdict = application.resolve(one.handle);
        print_settled(console, one.id, name_of(verdict));
    }
    if (!console.json && before.empty()) print_line("no transaction has a claim on anything");
    if (!console.json && left > 0) print_line(shown(static_cast<std::int64_t>(left)) + " go on: their owners live");
    return is_clear || left == 0 ? done : not_done;
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
