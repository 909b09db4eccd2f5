#pragma once

#include <varve/commands/application.h>

#include <string>
#include <string_view>
#include <vector>

namespace varve {

// Lists of streams: which aggregates there are. Included by those who ask.
//
//     varve::PageOptions options{.limit = 100};
//     do {
//         varve::StreamListPage page = bank.aggregates<Account>(options);
//         for (const varve::ListedStream& account : page.streams) … account.id() …
//         options.next = std::move(page.next);
//     } while (!options.next.empty());
//
//     bank.streams("account-a")       // the accounts with an id that begins with "a"
//     bank.streams("")                // all streams; those of the framework's own are in no list

/// A stream that has events.
struct ListedStream {
    std::string name;  ///< "account-alice"
    Time since;        ///< when its first event was decided
    /// "alice"
    std::string_view id() const { return id_of(name); }
};

/// Some streams of a list, in its order, and where the list goes on.
struct StreamListPage {
    std::vector<ListedStream> streams;
    std::string next;  ///< for PageOptions::next; empty: the list ends here. Opaque, and nothing secret
};

template <Aggregate A>
StreamListPage Application::aggregates(const PageOptions& page) {
    return streams(std::string{aggregate_type<A>().named.name} + "-", page);
}

}  // namespace varve
