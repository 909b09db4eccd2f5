#pragma once

#include <varve/core/background_thread.h>
#include <varve/core/mutex.h>
#include <varve/postgres/postgres.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace varve::postgres {

class Connection;

/// Tells other processes which tables have changed, and those who watch them here what others tell, by NOTIFY on the
/// channel "varve SCHEMA". Nobody waits for it: a thread with a connection of its own does it when a commit is over, at
/// most 200 times a second, so that commits do not queue for the server's one queue of notifications. It begins with
/// the first that there is to tell or to watch.
///
/// Threads: any.
class Announcer {
  public:
    explicit Announcer(const Options& options);
    ~Announcer();
    Announcer(const Announcer&) = delete;
    Announcer& operator=(const Announcer&) = delete;

    /// Something was committed to the table. If there is no memory to tell it, nobody is told.
    void changed(std::string_view table) noexcept;
    /// As ItemStore::watch. What is returned may outlive this object.
    std::shared_ptr<void> watch(const std::string& table, std::function<void()> changed);

  private:
    class Watchers;

    void begin() VARVE_REQUIRES(mutex_);
    void run(const std::stop_token& stop);
    /// Until it is to stop; throws if the connection is lost.
    void serve(const std::stop_token& stop);
    void announce(Connection& connection);
    /// Waits until there is something to read, or to tell, or the time is over; -1: for ever.
    void wait(int socket, bool wakes, int milliseconds);
    void wake() noexcept;

    const Options options_;
    const std::string channel_;
    const std::shared_ptr<Watchers> watchers_;
    const int wake_;  // an eventfd

    Mutex mutex_;
    std::set<std::string, std::less<>> changed_ VARVE_GUARDED_BY(mutex_);
    BackgroundThread thread_ VARVE_GUARDED_BY(mutex_);
};

}  // namespace varve::postgres
