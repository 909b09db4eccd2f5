#include "waiting.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <sqlite3.h>

namespace varve::sqlite {
namespace {

// An index is half written for microseconds, unless its writer was stopped. Even who asked not to wait gets over that.
constexpr Duration own_sleeps_min = std::chrono::milliseconds{100};

thread_local Waiting* current = nullptr;

struct Vfs {
    std::string name;
    sqlite3_vfs vfs;
};

}  // namespace

Waiting::Call::Call(Waiting& waiting, Duration spent) : outer_(std::exchange(current, &waiting)) {
    waiting.call_max_ = waiting.time_max_ - spent;
    waiting.since_.reset();
}

Waiting::Call::~Call() {
    current = outer_;
}

bool Waiting::sleep(Duration time, Duration time_max) {
    Clock& clock = Clock::system();
    const SteadyTime now = clock.steady_now();
    if (!since_) since_ = now;
    const Duration left = time_max - (now - *since_);
    if (left <= Duration::zero()) return false;
    clock.sleep_for(std::min(time, left));
    return true;
}

int Waiting::sleep_of_sqlite(sqlite3_vfs*, int us) {
    const Duration time{us};
    if (current == nullptr) {
        Clock::system().sleep_for(time);
    } else {
        // Without a sleep it tries again at once, and soon gives up.
        current->sleep(time, std::max(current->call_max_, own_sleeps_min));
    }
    return us;
}

const char* Waiting::vfs() {
    static std::mutex mutex;
    // Never destroyed: files of static objects are closed later.
    static auto& copies = *new std::map<const sqlite3_vfs*, std::unique_ptr<Vfs>>;
    sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
    if (system == nullptr) return nullptr;  // opening says so
    const std::lock_guard lock{mutex};
    std::unique_ptr<Vfs>& copy = copies[system];
    if (!copy) {
        copy = std::make_unique<Vfs>(Vfs{.name = std::string{system->zName} + "-varve", .vfs = *system});
        copy->vfs.pNext = nullptr;
        copy->vfs.zName = copy->name.c_str();
        copy->vfs.xSleep = &Waiting::sleep_of_sqlite;
        sqlite3_vfs_register(&copy->vfs, 0);
    }
    return copy->name.c_str();
}

}  // namespace varve::sqlite
