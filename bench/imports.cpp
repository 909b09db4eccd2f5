#include "account.h"
#include "figures.h"
#include "raw_sqlite.h"

#include <stdexcept>

namespace bench {
namespace {

struct Balance {
    static constexpr std::string_view table = "balances";
    std::int64_t cents = 0;
};
struct ProjectBalance {
    void operator()(const Deposited& e, varve::ProjectionContext& context) const {
        context.rows<Balance>().update(context.aggregate_id(), [&](Balance& row) { row.cents += e.cents; });
    }
};

}  // namespace

std::vector<Figure> imports(const Plan& plan) {
    constexpr int accounts = 10'000;
    constexpr int events_each = 100;
    constexpr int accounts_in_chunk = 200;
    constexpr long events = static_cast<long>(accounts) * events_each;
    Figure figure{.name = "sqlite_import_of_1000000_events_with_a_projection",
                  .unit = "events/s",
                  .raw = "as many slots and bytes in commits of as many rows, by one thread"};
    if (!plan.wants(figure.name)) return {};
    varve::Application bank{varve::open("sqlite:" + (plan.folder / "import.db").string()), {.sweep = false}};
    bank.project<Account>(ProjectBalance{});
    figure.rate = events / seconds([&] {
                      const std::vector<Account::Event> history(events_each, Deposited{1});
                      for (int first = 0; first < accounts; first += accounts_in_chunk) {
                          const auto outcome = bank.transact(
                              [&](varve::Transaction& tx) {
                                  for (int id = first; id < first + accounts_in_chunk; ++id)
                                      tx.append<Account>(std::to_string(id), history);
                              },
                              {.command_id = "import/" + std::to_string(first)});
                          if (!outcome) throw std::runtime_error("the import was rejected");
                      }
                  });
    if (bank.rows<Balance>().get(std::to_string(accounts - 1))->cents != events_each)
        throw std::runtime_error("the import is not whole");
    RawSqlite raw{plan.folder / "import_raw.db"};
    constexpr std::size_t slot_bytes = events_each * 45;
    figure.raw_rate = events / seconds([&] {
                          for (int first = 0; first < accounts; first += accounts_in_chunk)
                              raw.commit(accounts_in_chunk, slot_bytes);
                      });
    return {figure};
}

}  // namespace bench
