#include "raw_postgres.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace bench {

Pgbench::Pgbench(const Plan& plan, const varve::postgres::Server& server, std::string database)
    : plan_(plan), server_(server), database_(std::move(database)) {}

double Pgbench::rate(unsigned clients, const std::string& script) {
    const std::filesystem::path file = plan_.folder / "pgbench.sql";
    std::ofstream{file} << script;
    const auto seconds =
        std::max<std::chrono::seconds>(std::chrono::ceil<std::chrono::seconds>(plan_.time), std::chrono::seconds{1});
    const std::string command = "'" + varve::postgres::Server::program("pgbench") +
                                "' -n -M prepared -h 127.0.0.1 -p " + std::to_string(server_.port()) + " -U varve -c " +
                                std::to_string(clients) + " -j " + std::to_string(std::min(clients, 2u)) + " -T " +
                                std::to_string(seconds.count()) + " -D v=-1 -D run=" + std::to_string(++runs_) +
                                " -f '" + file.string() + "' " + database_ + " 2>&1";
    const std::unique_ptr<FILE, int (*)(FILE*)> output{popen(command.c_str(), "r"), pclose};
    if (!output) throw std::runtime_error("cannot run pgbench");
    std::string said;
    std::array<char, 4096> bytes{};
    for (std::size_t count = 0; (count = std::fread(bytes.data(), 1, bytes.size(), output.get())) > 0;)
        said.append(bytes.data(), count);
    const std::size_t at = said.find("tps = ");
    if (at == std::string::npos || said.find("aborted") != std::string::npos)
        throw std::runtime_error("pgbench: " + said);
    return std::stod(said.substr(at + 6));
}

}  // namespace bench
