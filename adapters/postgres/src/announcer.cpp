#include "announcer.h"

#include "connection.h"
#include "table.h"

#include <varve/core/error.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace varve::postgres {
namespace {

constexpr int pause_ms = 5;           // between two announcements
constexpr int retry_pause_ms = 1000;  // where the server is away

/// Its thread must not keep the store from ending where a server is silent.
Options impatient(Options options) {
    options.timeout = std::min(options.timeout, std::chrono::milliseconds{2'000});
    return options;
}

int make_eventfd() {
    const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    return descriptor;
}

}  // namespace

/// Those who watch a table.
class Announcer::Watchers {
  public:
    struct One {
        std::string table;
        std::function<void()> changed;
    };
    using Place = std::list<One>::iterator;

    Place add(One one) {
        const MutexLock lock{mutex_};
        return all_.insert(all_.end(), std::move(one));
    }
    void remove(Place place) {
        const MutexLock lock{mutex_};
        all_.erase(place);
    }
    /// Of this table, or of all. They are called under the lock, so that none is once it has been removed.
    void call(const std::string* table) {
        const MutexLock lock{mutex_};
        for (const One& one : all_) {
            if (table == nullptr || one.table == *table) one.changed();
        }
    }

  private:
    Mutex mutex_;
    std::list<One> all_ VARVE_GUARDED_BY(mutex_);
};

Announcer::Announcer(const Options& options)
    : options_(impatient(options)),
      channel_("varve " + options.schema),
      watchers_(std::make_shared<Watchers>()),
      wake_(make_eventfd()) {}

Announcer::~Announcer() {
    { const BackgroundThread ending = std::move(thread_); }  // it uses the rest
    close(wake_);
}

void Announcer::changed(std::string_view table) noexcept {
    if (!options_.notify) return;
    try {
        const MutexLock lock{mutex_};
        if (changed_.contains(table)) return;  // it will be told
        begin();
        changed_.emplace(table);
    } catch (const std::exception&) {
        return;
    }
    wake();
}

std::shared_ptr<void> Announcer::watch(const std::string& table, std::function<void()> changed) {
    if (!options_.notify) return nullptr;
    const auto place = watchers_->add({table, std::move(changed)});
    std::shared_ptr<void> watch{watchers_.get(), [watchers = watchers_, place](void*) { watchers->remove(place); }};
    const MutexLock lock{mutex_};
    begin();
    return watch;
}

void Announcer::begin() {
    if (!thread_.is_running())
        thread_ = BackgroundThread{[this](const std::stop_token& stop) { run(stop); }, options_.runtime.threads};
}

void Announcer::wake() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(!write(wake_, &one, sizeof one));  // full: it is awake
}

void Announcer::wait(int socket, bool wakes, int milliseconds) {
    pollfd both[] = {{.fd = socket, .events = POLLIN, .revents = 0},
                     {.fd = wakes ? wake_ : -1, .events = POLLIN, .revents = 0}};
    static_cast<void>(poll(both, 2, milliseconds));
    std::uint64_t count = 0;
    if (both[1].revents != 0) static_cast<void>(!read(wake_, &count, sizeof count));
}

void Announcer::run(const std::stop_token& stop) {
    const std::stop_callback wake_up{stop, [this] { wake(); }};
    while (!stop.stop_requested()) {
        try {
            serve(stop);
        } catch (const std::exception&) {
            // Those who watch look by themselves, and whoever uses the store is told what is wrong with the server.
            if (!stop.stop_requested()) wait(-1, true, retry_pause_ms);
        }
    }
}

void Announcer::serve(const std::stop_token& stop) {
    Connection connection{options_};
    connection.listen(channel_);
    watchers_->call(nullptr);  // what was told before is not known
    while (!stop.stop_requested()) {
        announce(connection);
        wait(connection.socket(), false, pause_ms);
        const bool has_more = [&] {
            const MutexLock lock{mutex_};
            return !changed_.empty();
        }();
        if (!has_more) wait(connection.socket(), true, -1);
        for (const std::string& table : connection.heard()) watchers_->call(&table);
    }
}

void Announcer::announce(Connection& connection) {
    // What is told is a transaction, and would wait for a flush; it may be lost with the server.
    static const std::string tell =
        "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, name) FROM unnest($2::text[]) name";
    std::set<std::string, std::less<>> told;
    {
        const MutexLock lock{mutex_};
        told.swap(changed_);
    }
    if (told.empty()) return;
    try {
        Array names{Array::Type::text};
        for (const std::string& name : told) names.add(name);
        static_cast<void>(connection.read(tell, Parameters{}.add(channel_).add(std::move(names))));
    } catch (...) {
        const MutexLock lock{mutex_};
        changed_.merge(told);
        throw;
    }
}

}  // namespace varve::postgres
