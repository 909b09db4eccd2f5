#pragma once

#include "support/loopback.h"
#include "support/temporary_folder.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace varve::postgres {

/// The server's programs are not installed.
struct ServerMissing : std::runtime_error {
    using runtime_error::runtime_error;
};

/// A connection of a client that knows nothing of varve.
class ForeignClient {
  public:
    explicit ForeignClient(const std::string& url) : connection_(PQconnectdb(url.c_str()), PQfinish) {
        if (PQstatus(connection_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection_.get()));
        PQsetNoticeProcessor(
            connection_.get(), [](void*, const char*) {}, nullptr);
    }

    /// The rows of one statement or of several, columns joined by '|'. Throws std::runtime_error.
    std::vector<std::string> run(const std::string& sql) {
        const std::unique_ptr<PGresult, decltype(&PQclear)> result{PQexec(connection_.get(), sql.c_str()), PQclear};
        const ExecStatusType status = PQresultStatus(result.get());
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
            throw std::runtime_error(PQerrorMessage(connection_.get()));
        std::vector<std::string> rows;
        for (int row = 0; row < PQntuples(result.get()); ++row) {
            rows.emplace_back();
            for (int column = 0; column < PQnfields(result.get()); ++column)
                rows.back() += (column == 0 ? "" : "|") + std::string{PQgetvalue(result.get(), row, column)};
        }
        return rows;
    }

  private:
    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

/// A PostgreSQL server of its own, run by somebody who is not root, on a free port of this machine and in a folder that
/// goes with it. It flushes, as one in production does. It ends with this object, and with the process.
class Server {
  public:
    explicit Server(std::vector<std::string> settings = {}) : settings_(std::move(settings)) {
        give_to_user(folder_.path());
        run({program("initdb"), "-D", data(), "-U", "varve", "--auth=trust", "--encoding=UTF8", "--locale=C",
             "--no-sync", "--no-instructions"});
        start_on_some_port();
    }
    /// A standby that follows `primary`.
    explicit Server(const Server& primary) {
        give_to_user(folder_.path());
        run({program("pg_basebackup"), "-D", data(), "-d", primary.url("postgres"), "-R", "-X", "stream", "-c", "fast",
             "--no-sync"});
        start_on_some_port();
    }
    ~Server() { stop(SIGQUIT); }
    Server& operator=(const Server&) = delete;

    int port() const { return port_; }
    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    std::string url(const std::string& database = "postgres", const std::string& user = "varve") const {
        return "postgres://" + user + "@" + address() + "/" + database;
    }
    ForeignClient client() const { return ForeignClient{url()}; }
    /// What it has logged.
    std::string log() const {
        std::ostringstream text;
        text << std::ifstream{log_path()}.rdbuf();
        return text.str();
    }

    /// By a signal: SIGINT ends it in good order, SIGQUIT at once, and SIGKILL as kill -9 does.
    void stop(int signal) {
        if (process_ < 0) return;
        kill(process_, signal);
        waitpid(process_, nullptr, 0);
        process_ = -1;
    }
    /// On the same port, after `stop`.
    void start_again() {
        // After a kill -9, processes of the old one may live for a moment.
        for (int i = 0; i < 100; ++i) {
            if (start()) return;
            usleep(100'000);
        }
        throw std::runtime_error("the server does not start again: " + log());
    }
    /// A standby becomes a primary.
    void promote() { run({program("pg_ctl"), "-D", data(), "-w", "promote"}); }

    /// Runs one of the server's programs as its user, to the end.
    void run(const std::vector<std::string>& words) {
        const pid_t child = start_program(words);
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) throw std::runtime_error(words.front() + " failed: " + log());
    }
    static std::string program(const std::string& name) {
        // Debian keeps each version's programs in a folder that is in nobody's PATH.
        std::string best;
        std::error_code ignored;
        for (const auto& version : std::filesystem::directory_iterator{"/usr/lib/postgresql", ignored}) {
            const std::filesystem::path path = version.path() / "bin" / name;
            if (std::filesystem::exists(path, ignored)) best = std::max(best, path.string());
        }
        if (best.empty()) throw ServerMissing("PostgreSQL's " + name + " is not installed");
        return best;
    }

  private:
    std::string data() const { return (folder_.path() / "data").string(); }
    std::string log_path() const { return (folder_.path() / "log").string(); }

    static const passwd* user() {
        if (geteuid() != 0) return nullptr;
        const passwd* found = getpwnam("postgres");
        return found != nullptr ? found : getpwnam("nobody");
    }
    static void give_to_user(const std::filesystem::path& path) {
        if (const passwd* const other = user(); other != nullptr) {
            if (chown(path.c_str(), other->pw_uid, other->pw_gid) != 0) throw std::runtime_error("chown");
        }
    }

    pid_t start_program(const std::vector<std::string>& words) const {
        std::vector<char*> arguments;
        for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        const passwd* const other = user();
        const std::string log = log_path();
        const pid_t child = fork();
        if (child != 0) return child;
        if (other != nullptr && (setgid(other->pw_gid) != 0 || setuid(other->pw_uid) != 0)) _exit(126);
        prctl(PR_SET_PDEATHSIG, SIGQUIT);
        const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        if (chdir("/") != 0) _exit(126);
        execv(arguments[0], arguments.data());
        _exit(127);
    }

    void start_on_some_port() {
        for (int i = 0; i < 5; ++i) {
            port_ = LoopbackSocket::bound().port();
            if (start()) return;
        }
        throw std::runtime_error("the server does not start: " + log());
    }

    /// Returns when it takes connections; false if it has ended instead.
    bool start() {
        std::vector<std::string> words{program("postgres"), "-D", data(), "-p", std::to_string(port_)};
        std::vector<std::string> settings{"listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=on",
                                          "shared_buffers=16MB", "max_connections=60"};
        settings.insert(settings.end(), settings_.begin(), settings_.end());
        for (const std::string& setting : settings) words.insert(words.end(), {"-c", setting});
        process_ = start_program(words);
        for (;;) {
            const PGPing ping = PQping(url().c_str());
            if (ping == PQPING_OK) return true;
            if (waitpid(process_, nullptr, WNOHANG) == process_) {
                process_ = -1;
                return false;
            }
            usleep(20'000);
        }
    }

    const TemporaryFolder folder_{"postgres"};
    std::vector<std::string> settings_;
    int port_ = 0;
    pid_t process_ = -1;
};

/// The server of all tests of this program.
inline Server& shared_server() {
    static Server server;
    return server;
}

/// The URL of a store in a schema that nobody has used.
inline std::string fresh_url(const Server& server, const std::string& options = "") {
    static int count = 0;
    return server.url() + "?schema=s" + std::to_string(++count) + options;
}

}  // namespace varve::postgres
