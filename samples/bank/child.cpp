#include "child.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bank {

namespace {
constexpr int exit_not_started = 127;
}

Child::Child(const std::vector<std::string>& arguments) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) {
        const int error = errno;
        ::close(ends[0]);
        ::close(ends[1]);
        throw std::system_error(error, std::generic_category(), "fork");
    }
    if (pid_ == 0) {  // only calls that are safe between fork and exec
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(exit_not_started);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        dup2(ends[1], STDOUT_FILENO);
        execv(argv[0], argv.data());
        _exit(exit_not_started);
    }
    ::close(ends[1]);
    output_ = ends[0];
    fcntl(output_, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
    if (pid_ > 0) {
        kill(SIGKILL);
        wait();
    }
    close_output();
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      buffer_(std::move(other.buffer_)) {}

Child& Child::operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(output_, other.output_);
    std::swap(buffer_, other.buffer_);
    return *this;
}

std::vector<std::string> Child::lines(bool& ended) {
    char chunk[16384];
    ended = false;
    for (;;) {
        const ssize_t count = ::read(output_, chunk, sizeof chunk);
        if (count > 0) {
            buffer_.append(chunk, static_cast<std::size_t>(count));
        } else if (count == 0) {
            ended = true;
            break;
        } else if (errno != EINTR) {
            break;
        }
    }
    std::vector<std::string> lines;
    std::size_t begin = 0;
    for (std::size_t end; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1) {
        lines.push_back(buffer_.substr(begin, end - begin));
    }
    buffer_.erase(0, begin);
    return lines;
}

std::string Child::rest() {
    fcntl(output_, F_SETFL, 0);
    char chunk[16384];
    for (;;) {
        const ssize_t count = ::read(output_, chunk, sizeof chunk);
        if (count > 0) buffer_.append(chunk, static_cast<std::size_t>(count));
        if (count == 0 || (count < 0 && errno != EINTR)) return std::exchange(buffer_, {});
    }
}

void Child::kill(int signal) {
    if (pid_ > 0) ::kill(pid_, signal);
}

int Child::wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Child::close_output() {
    if (output_ >= 0) ::close(output_);
    output_ = -1;
}

std::string own_path() {
    return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace bank
