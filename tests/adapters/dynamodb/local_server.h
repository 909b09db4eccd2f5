#pragma once

#include "support/loopback.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace varve::dynamodb {

/// There is no npm to install the server with.
struct ServerMissing : std::runtime_error {
    using runtime_error::runtime_error;
};

/// A server of DynamoDB's protocol, in memory or on a file, on a free port of this machine. It ends with this object,
/// and with the process.
class LocalServer {
  public:
    enum class Kind {
        dynoxide,  ///< expiry, the item that refused a write
        dynalite,  ///< neither
    };

    friend std::string to_string(Kind kind) { return kind == Kind::dynoxide ? "dynoxide" : "dynalite"; }

    explicit LocalServer(Kind kind, std::string path = "") : kind_(kind), path_(std::move(path)) {
        install();
        constexpr int tries = 5;
        for (int i = 0; i < tries && process_ < 0; ++i) {
            port_ = LoopbackSocket::bound().port();
            start();
        }
        if (process_ < 0) throw std::runtime_error("the server does not start");
    }
    ~LocalServer() { kill_now(); }
    LocalServer(const LocalServer&) = delete;
    LocalServer& operator=(const LocalServer&) = delete;

    int port() const { return port_; }
    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    std::string url(const std::string& prefix) const {
        return "dynamodb://" + address() + "/" + prefix + "?region=eu-west-1";
    }

    /// kill -9
    void kill_now() {
        if (process_ < 0) return;
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        process_ = -1;
    }
    /// On the same port, after `kill_now`.
    void start_again() {
        for (int i = 0; i < 50 && process_ < 0; ++i) {  // somebody may have the port for a moment
            if (i > 0) usleep(100'000);
            start();
        }
        if (process_ < 0) throw std::runtime_error("the server does not start again");
    }

  private:
    static void install() {
        static const int status = [] {
            int ended = -1;
            for (int i = 0; i < 3 && ended != 0; ++i) {  // a package registry may be away for a moment
                ended = std::system("'" VARVE_DYNAMODB_SERVERS_INSTALL "' '" VARVE_DYNAMODB_SERVERS "'");
                if (WIFEXITED(ended) && WEXITSTATUS(ended) == 3) break;
            }
            return ended;
        }();
        if (WIFEXITED(status) && WEXITSTATUS(status) == 3) throw ServerMissing("npm is not installed");
        if (status != 0) throw std::runtime_error("the servers could not be installed");
    }

    std::vector<std::string> command() const {
        const std::string modules = VARVE_DYNAMODB_SERVERS "/node_modules/";
        std::vector<std::string> words;
        if (kind_ == Kind::dynoxide) {
            words = {modules + "@dynoxide/linux-x64/dynoxide", "serve", "--port", std::to_string(port_)};
            if (!path_.empty()) words.insert(words.end(), {"--db-path", path_});
        } else {
            words = {"node",      "--require", VARVE_DYNALITE_GUARD,  modules + "dynalite/cli.js", "--host",
                     "127.0.0.1", "--port",    std::to_string(port_), "--createTableMs",           "0"};
            if (!path_.empty()) words.insert(words.end(), {"--path", path_});
        }
        return words;
    }

    /// Returns once the server has said that it listens; leaves `process_` at -1 if it ends instead.
    void start() {
        int out[2];
        if (pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
        const std::vector<std::string> words = command();
        std::vector<char*> arguments;
        for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        process_ = fork();
        if (process_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(out[1], STDOUT_FILENO);
            if (kind_ == Kind::dynoxide) dup2(out[1], STDERR_FILENO);
            execvp(arguments[0], arguments.data());
            _exit(127);
        }
        close(out[1]);
        std::string said;
        char bytes[256];
        for (ssize_t count = 0; said.find("listening") == std::string::npos;
             said.append(bytes, static_cast<std::size_t>(count))) {
            count = ::read(out[0], bytes, sizeof bytes);
            if (count <= 0) {
                close(out[0]);
                kill_now();
                return;
            }
        }
        // The pipe stays open: a server that cannot write may end.
        if (output_ >= 0) close(output_);
        output_ = out[0];
    }

    const Kind kind_;
    const std::string path_;
    int port_ = 0;
    pid_t process_ = -1;
    int output_ = -1;
};

}  // namespace varve::dynamodb
