#include "transfers.h"

#include <limits>
#include <string>
#include <vector>

namespace bank {

namespace {

varve::CommandOptions command_of(const std::string& id, Repeats repeats) {
    return {.command_id = repeats == Repeats::once ? id : "", .correlation = id};
}

}  // namespace

varve::Outcome transfer(varve::Application& bank, const TransferOrder& order, Repeats repeats) {
    return bank.transact(
        [&](varve::Transaction& tx) {
            if (order.from == order.to) tx.reject(varve::reject("same_account", "a transfer needs two accounts"));
            tx.load_all<Account>({order.from, order.to});
            tx.execute<Account>(order.from, Withdraw{order.cents, Transfer{.id = order.id, .with = order.to}});
            tx.execute<Account>(order.to, Deposit{order.cents, Transfer{.id = order.id, .with = order.from}});
        },
        command_of(order.id, repeats));
}

varve::Outcome payroll(varve::Application& bank, const PayrollOrder& order, Repeats repeats) {
    const auto legs = static_cast<std::int64_t>(order.salaries.size()) + 1;
    return bank.transact(
        [&](varve::Transaction& tx) {
            Cents total = 0;
            std::vector<std::string> accounts{order.from};
            for (const PayrollOrder::Salary& salary : order.salaries) {
                if (salary.cents <= 0) tx.reject(varve::reject("bad_amount", "an amount must be more than 0"));
                if (salary.to == order.from) tx.reject(varve::reject("same_account", "nobody pays a salary to itself"));
                if (salary.cents > std::numeric_limits<Cents>::max() - total)
                    tx.reject(varve::reject("too_much", "the salaries together are more than any account holds"));
                total += salary.cents;
                accounts.push_back(salary.to);
            }
            tx.load_all<Account>(accounts);
            tx.execute<Account>(order.from, Withdraw{total, Transfer{.id = order.id, .with = "", .legs = legs}});
            for (const PayrollOrder::Salary& salary : order.salaries) {
                tx.execute<Account>(salary.to, Deposit{salary.cents, Transfer{order.id, order.from, legs}});
            }
        },
        command_of(order.id, repeats));
}

}  // namespace bank
