#pragma once

#include "child.h"
#include "support/temporary_folder.h"

#include <varve/core/json.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace bank {

/// What a run of the program left.
struct Ran {
    int code;
    std::string output;
};

/// A SQLite file of its own, and the program on it. Removed at the end of the test.
class ScratchBank {
  public:
    std::string file() const { return (folder_.path() / "bank.db").string(); }
    std::string url() const { return "sqlite:" + file() + "?synchronous=normal"; }

    static Child start(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), BANK_PROGRAM);
        return Child{arguments};
    }
    static Ran run_plain(std::vector<std::string> arguments) {
        Child child = start(std::move(arguments));
        std::string output = child.rest();
        return {child.wait(), std::move(output)};
    }
    /// On this file.
    Ran run(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"--store", url()});
        return run_plain(std::move(arguments));
    }
    /// On this file, asking for JSON, of which the parts that T names are read.
    template <class T>
    T run_json(std::vector<std::string> arguments, int code = 0) const {
        arguments.emplace_back("--json");
        const Ran result = run(std::move(arguments));
        EXPECT_EQ(result.code, code) << result.output;
        return decode<T>(result.output);
    }
    template <class T>
    static T decode(const std::string& text) {
        auto value = varve::json::decode<T>(text);
        if (!value) throw std::runtime_error(value.error().message + " in " + text);
        return *value;
    }

    /// Changes the file behind the bank's back.
    void tamper(const std::string& sql) const {
        sqlite3* database = nullptr;
        ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
        char* error = nullptr;
        const int code = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error);
        const int changed = sqlite3_changes(database);
        EXPECT_EQ(code, SQLITE_OK) << (error != nullptr ? error : "");
        EXPECT_GT(changed, 0) << sql;
        sqlite3_free(error);
        sqlite3_close(database);
    }

  private:
    const varve::TemporaryFolder folder_{"bank-test"};
};

}  // namespace bank
