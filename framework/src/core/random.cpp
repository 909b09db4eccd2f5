#include <varve/core/runtime.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include <pthread.h>
#include <sys/random.h>

namespace varve {
namespace {

std::atomic<unsigned> forks{0};

/// Buffers what getrandom gives, per thread; a forked child must not use its parent's rest.
class SystemRandom final : public Random {
  public:
    SystemRandom() {
        pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    }

    std::uint64_t next() override {
        struct Buffer {
            std::array<std::uint64_t, 32> words;
            std::size_t used = 32;
            unsigned forks = 0;
        };
        thread_local Buffer buffer;
        const unsigned forks_now = forks.load(std::memory_order_relaxed);
        if (buffer.used == buffer.words.size() || buffer.forks != forks_now) {
            fill(buffer.words);
            buffer.used = 0;
            buffer.forks = forks_now;
        }
        return buffer.words[buffer.used++];
    }

  private:
    static void fill(std::array<std::uint64_t, 32>& words) {
        // Requests of up to 256 bytes are never cut short, but may be interrupted before the pool is ready.
        while (getrandom(words.data(), sizeof words, 0) != static_cast<ssize_t>(sizeof words)) {
            if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
        }
    }
};

}  // namespace

std::uint64_t Random::below(std::uint64_t bound) {
    if (bound == 0) return 0;
    // The high word of a 64 x 64 bit product; biased by less than bound / 2^64.
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
}

Random& Random::system() {
    static SystemRandom random;
    return random;
}

}  // namespace varve
