#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace bank {

/// A program run beside this one, its standard output read through a pipe. It dies with this process, however that
/// ends, and at the latest with this object.
///
/// Threads: one at a time; begin it on a thread that lives as long as the child shall.
class Child {
  public:
    /// `arguments[0]` is the program's path. Throws std::system_error if it cannot be started.
    explicit Child(const std::vector<std::string>& arguments);
    ~Child();
    Child(Child&& other) noexcept;
    Child& operator=(Child&& other) noexcept;

    pid_t pid() const { return pid_; }
    int output() const { return output_; }  ///< to be polled; readable also at its end

    /// The whole lines that it has written since the last call; waits for none. Sets `ended` once there will be no
    /// more; a line that a kill cut short is dropped.
    std::vector<std::string> lines(bool& ended);
    /// All there will ever be, waiting for its end.
    std::string rest();

    void kill(int signal);
    /// Waits for its end. The exit code, or 128 + the signal that ended it.
    int wait();

  private:
    void close_output();

    pid_t pid_ = -1;
    int output_ = -1;
    std::string buffer_;
};

/// The path of this very program.
std::string own_path();

}  // namespace bank
