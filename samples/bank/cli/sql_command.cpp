#include "cli.h"

#include <varve/core/json.h>

#include <CLI/CLI.hpp>

#if __has_include(<varve/postgres/postgres.h>)  // it is linked
#include <varve/postgres/postgres.h>
#endif

namespace bank {

namespace {

struct SqlReport {
    bool ok = true;
    std::string sql;
};

int print_sql(const Cli& cli, const std::string& role) {
#if __has_include(<varve/postgres/postgres.h>)
    const auto store = varve::open(cli.store);
    const std::string sql = varve::postgres::ddl(*store, role);
    print_line(cli.json ? varve::json::encode(SqlReport{.sql = sql}) : sql.substr(0, sql.find_last_not_of('\n') + 1));
    return exit_done;
#else
    throw varve::ConfigError("no SQL of " + cli.store + " for role '" + role +
                             "': this program was built without PostgreSQL");
#endif
}

}  // namespace

void add_sql_command(CLI::App& app, Cli& cli) {
    const auto role = std::make_shared<std::string>();
    CLI::App* sql =
        app.add_subcommand("sql", "The SQL that creates the tables of a PostgreSQL store in another database");
    sql->add_option("--role", *role, "who is to be granted what the bank needs");
    sql->callback([&cli, role] { cli.chosen = [&cli, role] { return print_sql(cli, *role); }; });
}

}  // namespace bank
