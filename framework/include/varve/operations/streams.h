#pragma once

#include <varve/commands/stream_list.h>
#include <varve/core/clock.h>
#include <varve/core/mutex.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::operations {

/// What StreamLister::page is asked for.
struct ListedAsked {
    std::string prefix = {};
    std::string after = {};                       ///< a name, which is left out itself; empty: from the first
    std::size_t limit = 100;                      ///< at least 1
    Duration patience = std::chrono::seconds{2};  ///< how long it may read events that it has not looked at
};

/// A page of the list of streams as StreamLister knows it.
struct ListedPage {
    std::vector<ListedStream> streams;
    bool has_more = false;
    bool is_complete = false;    ///< all events are looked at; else streams may be missing, and the next call goes on
    std::uint64_t position = 0;  ///< in the order of all slots: up to here they are looked at
    std::uint64_t end = 0;       ///< and up to here there were some
};

/// Pages of the list of streams, for who does not write. As Application::streams, but what the stored list lacks is
/// read from the events after it, and stays in memory from one page to the next, about 200 bytes for each such stream.
///
///     operations::StreamLister lister{bank};
///     operations::ListedPage page = lister.page({.prefix = "account-"});
///     page = lister.page({.prefix = "account-", .after = page.streams.back().name});
///
/// The first look at many events takes several calls (ListedPage::is_complete). Errors: ConfigError for a store without
/// a feed, and where the stored list lacks more streams than `unlisted_max`; those of the store. Threads: any; one of
/// them reads events on, the others get what there is meanwhile. Lifetime: that of the application.
class StreamLister {
  public:
    explicit StreamLister(Application& application, std::size_t unlisted_max = 5'000'000)
        : application_(application), unlisted_max_(unlisted_max) {}

    ListedPage page(const ListedAsked& asked);

  private:
    void read_on(Duration patience, ListedPage& page);
    void read_on_alone(Duration patience, ListedPage& page);
    std::vector<ListedStream> unlisted(const ListedAsked& asked, std::size_t count);

    Application& application_;
    const std::size_t unlisted_max_;
    Mutex mutex_;
    std::map<std::string, Time, std::less<>> unlisted_ VARVE_GUARDED_BY(mutex_);
    std::optional<std::uint64_t> position_ VARVE_GUARDED_BY(mutex_);  ///< up to where it has looked; nullopt: not yet
    bool is_reading_ VARVE_GUARDED_BY(mutex_) = false;                ///< somebody does
};

/// Calls `found` for each stream with a name that begins with `prefix`, in the order of names, as long as it returns
/// true. However many events have to be looked at first. Errors and threads: as StreamLister.
///
///     operations::each_stream(bank, "account-", [](const ListedStream& one) {
///         std::cout << one.name << "\n";
///         return true;
///     });
void each_stream(Application& application, std::string_view prefix,
                 const std::function<bool(const ListedStream& stream)>& found);

}  // namespace varve::operations
