#include "console.h"
#include "output.h"

#include <varve/operations/transactions.h>
#include <varve/store/item.h>

#include <algorithm>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

using operations::OpenTransaction;
using transactions::Verdict;

const char* name_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::committed: return "committed";
        case Verdict::aborted: return "aborted";
        case Verdict::undecided: return "undecided";
    }
    return "undecided";
}

struct TransactionReport {
    std::string transaction;
    std::string verdict;
    std::string primary;
    Time since;
    Time lease;
    std::vector<std::string> claims;
};

TransactionReport report_of(const OpenTransaction& one) {
    TransactionReport report{.transaction = one.id,
                             .verdict = name_of(one.verdict),
                             .primary = store::to_string(one.primary),
                             .since = one.since,
                             .lease = one.lease,
                             .claims = {}};
    for (const store::Key& key : one.claims) report.claims.push_back(store::to_string(key));
    return report;
}

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

/// Of all whose lease is over, or of this one.
int settle(Console& console, const std::string& id) {
    Application& application = console.to_write(
        id.empty() ? "end the transactions whose lease is over, and put into place or undo what they have left"
                   : "end the transaction " + id + ", whether its owner lives or not, and clear what it has left");
    const Time now = application.runtime().clock.get().now();
    std::size_t count = 0;
    bool is_all = true;
    for (const OpenTransaction& one : operations::open_transactions(application)) {
        if (id.empty() ? one.lease > now : one.id != id) continue;
        ++count;
        const Verdict verdict = operations::settle(application, one);
        is_all = is_all && verdict != Verdict::undecided;
        if (console.json) {
            print_json(Settled{one.id, name_of(verdict)});
        } else {
            print_line(shown(one.id) + " is " + name_of(verdict) + ", and cleared");
        }
    }
    if (count == 0 && !console.json)
        print_line(id.empty() ? "no transaction's lease is over" : "there is no open transaction " + id);
    if (count == 0) return id.empty() ? done : not_done;
    return is_all ? done : failed;
}

}  // namespace

void add_transactions_command(CLI::App& app, Console& console) {
    CLI::App* transactions =
        app.add_subcommand("transactions", "List transactions that hold stored items, and end them");
    transactions->callback([&console, transactions] {
        if (transactions->get_subcommands().empty()) console.chosen = [&console] { return list_transactions(console); };
    });
    CLI::App* settling = transactions->add_subcommand("settle", "End one, or all whose lease is over");
    const auto id = std::make_shared<std::string>();
    settling->add_option("transaction", *id, "its id; without it, those whose lease is over");
    settling->callback([&console, id] { console.chosen = [&console, id] { return settle(console, *id); }; });
}

}  // namespace varve::console
