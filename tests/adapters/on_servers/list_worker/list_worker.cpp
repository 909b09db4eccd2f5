// list_worker URL PROCESS TRANSACTIONS: appends unique values to lists and reads lists, several in one transaction, and
// writes each transaction to its standard output as JSON (checkers/history_json.h): in doubt as it begins, so that it
// is known if this process is killed, and once more as it ended.

#include "protocol/domain.h"

#include <varve/core/error.h>
#include <varve/varve.h>

#include <chrono>
#include <iostream>
#include <random>

#include <unistd.h>

namespace {

using namespace varve;
using protocol::AppendValue;
using protocol::List;
using protocol::ListRow;

constexpr int keys_of_each_kind = 4;
constexpr int operations_max = 4;

struct Operation {
    std::string key;  ///< s1: a stream; r1: a row
    std::optional<std::int64_t> append = {};
    std::optional<std::vector<std::int64_t>> seen = {};  ///< by a read
};

struct One {
    std::string id;
    int process;
    std::int64_t invoke;
    std::vector<Operation> operations;
};

std::int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch().count();  // the same for all processes of a machine
}

/// One write, so that a killed process leaves only whole lines.
void tell(const One& one, const char* status, std::optional<std::int64_t> complete) {
    std::string line = "{\"id\":\"" + one.id + "\",\"process\":" + std::to_string(one.process) +
                       ",\"invoke\":" + std::to_string(one.invoke) +
                       ",\"complete\":" + (complete ? std::to_string(*complete) : "null") + ",\"status\":\"" + status +
                       "\",\"ops\":[";
    for (const Operation& operation : one.operations) {
        if (&operation != &one.operations.front()) line += ",";
        line += "[\"" + std::string{operation.append ? "append" : "r"} + "\",\"" + operation.key + "\",";
        if (operation.append) {
            line += std::to_string(*operation.append);
        } else {
            line += operation.seen && complete ? json::encode(*operation.seen) : "null";
        }
        line += "]";
    }
    line += "]}\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(1);
}

void execute(Transaction& tx, Operation& operation) {
    const bool is_stream = operation.key.front() == 's';
    if (operation.append) {
        if (is_stream) {
            tx.execute<List>(operation.key, AppendValue{*operation.append});
        } else {
            tx.rows<ListRow>().update(operation.key, [&](ListRow& row) { row.values.push_back(*operation.append); });
        }
    } else {
        operation.seen = is_stream ? tx.load<List>(operation.key).values
                                   : tx.rows<ListRow>().get(operation.key).value_or(ListRow{}).values;
    }
}

}  // namespace

int main(int, char** arguments) {
    const int process = std::stoi(arguments[2]);
    const int transactions = std::stoi(arguments[3]);
    Application application{varve::open(arguments[1]), {.transactions = {.lease = std::chrono::milliseconds{300}}}};
    static_cast<void>(application.rows<ListRow>());
    std::mt19937 random{static_cast<unsigned>(process)};
    const auto below = [&](int limit) { return std::uniform_int_distribution<int>{0, limit - 1}(random); };
    for (int i = 0; i < transactions; ++i) {
        One one{.id = std::to_string(process) + "-" + std::to_string(i),
                .process = process,
                .invoke = 0,
                .operations = std::vector<Operation>(static_cast<std::size_t>(1 + below(operations_max)))};
        int appends = 0;
        for (Operation& operation : one.operations) {
            operation.key = (below(2) == 0 ? "s" : "r") + std::to_string(below(keys_of_each_kind));
            if (below(2) == 0) {
                operation.append = (std::int64_t{process} * transactions + i) * operations_max + appends++;
            }
        }
        one.invoke = now();
        tell(one, "info", std::nullopt);
        try {
            static_cast<void>(application.transact([&](Transaction& tx) {
                for (Operation& operation : one.operations) execute(tx, operation);
            }));
            tell(one, "ok", now());
        } catch (const Error& error) {
            if (!error.in_doubt()) {
                for (Operation& operation : one.operations) operation.seen.reset();
                tell(one, "fail", std::nullopt);
            } else {
                std::cerr << "in doubt: " << error.what() << "\n";
            }
        }
    }
}
