#include <varve/core/own_process.h>

#include <unistd.h>

namespace varve {

OwnProcess::OwnProcess() noexcept : made_in_(getpid()) {}

bool OwnProcess::is_another() const noexcept {
    return getpid() != made_in_;
}

}  // namespace varve
