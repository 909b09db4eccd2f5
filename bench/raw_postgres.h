#pragma once

#include "adapters/postgres/server.h"
#include "figures.h"

#include <filesystem>
#include <string>

namespace bench {

/// PostgreSQL without varve, as its own pgbench drives it: each client waits for one transaction at a time.
class Pgbench {
  public:
    /// `database` of `server`; scripts are kept in the plan's folder.
    Pgbench(const Plan& plan, const varve::postgres::Server& server, std::string database = "postgres");

    /// Transactions per second of `script`, which finds a number that none before had in :run.
    double rate(unsigned clients, const std::string& script);

  private:
    const Plan& plan_;
    const varve::postgres::Server& server_;
    const std::string database_;
    int runs_ = 0;
};

}  // namespace bench
