#pragma once

#include <varve/core/runtime.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace varve::detail {

/// The lines in front of what commands write, aggregates and rows, inside one process: who is about to write some of
/// them goes when all who came before it to one of these have ended. Without them, of many commands on the same few
/// aggregates each round of attempts lets one through and costs all the others theirs.
///
/// They give order, and nothing rests on them: other processes do not stand in them, and whoever has been next behind
/// the same one for `patience` goes on beside it.
///
/// Threads: all methods may be called from any thread.
class Lines {
  private:
    struct Place;
    struct Directory;

  public:
    Lines(Runtime runtime, Duration patience);
    ~Lines();

    /// Where one command stands. Leaves all lines when it is destroyed.
    class Places {
      public:
        explicit Places(Lines& lines);
        ~Places();
        Places(const Places&) = delete;
        Places& operator=(const Places&) = delete;

        /// Takes places in the lines `names`, keeping those it has, and returns when it is first in each. True if
        /// somebody was before it: what was decided until now may be out of date. Places are taken in the order of
        /// names, and left where that takes it, so that nobody waits in a circle.
        bool enter(const std::set<std::string>& names);
        void leave() noexcept;

      private:
        Lines& lines_;
        std::map<std::string, std::unique_ptr<Place>> places_;
    };

    /// Nobody stands in any line.
    bool are_empty() const { return standing_.load(std::memory_order_relaxed) == 0; }

  private:
    /// True if it had to wait.
    bool enter(const std::string& name, Place& place);
    void leave(const std::string& name, Place& place) noexcept;
    /// Whether `place` is the one after the first.
    bool is_next(const std::string& name, const Place& place, const Place*& first);

    const Runtime runtime_;
    const Duration patience_;
    std::unique_ptr<Directory> lines_;
    std::atomic<std::size_t> standing_{0};
};

}  // namespace varve::detail
