#include "../balances.h"
#include "../turnover.h"

#include <varve/console/console.h>

/// The operator's command line with the bank's own types: it can also verify, and take up what was set aside.
int main(int argc, char** argv) {
    return varve::console::run(argc, argv, {.name = "bank-varve", .meet = [](varve::Application& bank) {
                                                bank.project<bank::Account>(bank::ProjectBalance{});
                                                bank::follow_turnover(bank);
                                            }});
}
