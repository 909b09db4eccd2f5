#include "scratch_file.h"

#include <varve/store/item_store.h>

#include <array>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

/// Of this thread: so many succeed, the next one fails; negative: none does.
thread_local int allocations_to_come = -1;

}  // namespace

// Where the compiler sees through only one of a pair, it takes it for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (allocations_to_come >= 0 && allocations_to_come-- == 0) throw std::bad_alloc{};
    if (void* const memory = std::malloc(size)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace varve::sqlite {
namespace {

using store::Applied;
using store::Write;

/// Runs `call` again and again, and each time another one of its allocations fails; `check` is told whether it threw.
template <class Call, class Check>
void fail_each_allocation(Call call, Check check) {
    for (int allocations = 0;; ++allocations) {
        ASSERT_LT(allocations, 10'000);
        bool threw = false;
        allocations_to_come = allocations;
        try {
            call();
        } catch (const std::bad_alloc&) {
            threw = true;
        }
        const bool failed = std::exchange(allocations_to_come, -1) < 0;
        check(threw);
        if (::testing::Test::HasFailure()) FAIL() << "the allocation that failed was number " << allocations + 1;
        if (!failed) return;
    }
}

/// Whether what was said of a write is so. Nothing may be said to be in doubt, since the disk is well.
void expect_true(store::ItemStore& store, const Write& write, bool applied, const Failure* failure) {
    const auto item = read_one(store, write.key);
    EXPECT_EQ(item.has_value(), applied) << to_string(write.key);
    if (failure == nullptr) return;
    EXPECT_EQ(failure->kind, ErrorKind::unavailable);
    EXPECT_FALSE(failure->in_doubt);
    EXPECT_NE(failure->message.find("memory"), std::string::npos) << failure->message;
}

TEST(Allocations, each_that_fails_in_a_batch_of_writes_is_told_and_the_next_write_goes_on) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, {account("taken", 1), store::Put{}})));
    std::int64_t version = 0;
    std::vector<Write> batch;
    std::vector<store::WriteAnswer> answers;
    fail_each_allocation(
        [&] {
            answers.clear();
            const int armed = std::exchange(allocations_to_come, -1);
            ++version;
            batch = {{account("a stream whose name is long enough for the heap", version),
                      store::Put{{{"text", std::string(100, 'x')}}}, !store::item_exists()},
                     {account("another stream of a long name", version), store::Update{{{"n", version}}, {}}},
                     {account("taken", 1), store::Put{}, !store::item_exists()}};
            allocations_to_come = armed;
            answers = store->write(batch);
        },
        [&](bool threw) {
            ASSERT_EQ(answers.size(), threw ? 0U : batch.size());
            for (std::size_t i = 0; i < 2; ++i) {
                const Failure* const failure = threw ? nullptr : std::get_if<Failure>(&answers[i]);
                expect_true(*store, batch[i], !threw && std::holds_alternative<Applied>(answers[i]), failure);
            }
            EXPECT_TRUE(threw || !std::holds_alternative<Applied>(answers[2]));
            EXPECT_TRUE(is_applied(write_one(*store, {account("between", version), store::Put{}})));
        });
}

TEST(Allocations, each_that_fails_in_an_atomic_batch_is_told_and_the_next_write_goes_on) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    std::int64_t version = 0;
    std::vector<Write> batch;
    store::AtomicAnswer answer;
    fail_each_allocation(
        [&] {
            const int armed = std::exchange(allocations_to_come, -1);
            ++version;
            batch = {{account("a stream whose name is long enough for the heap", version), store::Put{}},
                     {account("another stream of a long name", version), store::Update{{{"n", version}}, {}}}};
            allocations_to_come = armed;
            answer = store->write_atomically(batch);
        },
        [&](bool threw) {
            for (const Write& write : batch) {
                expect_true(*store, write, !threw && std::holds_alternative<Applied>(answer),
                            threw ? nullptr : std::get_if<Failure>(&answer));
            }
            EXPECT_TRUE(is_applied(write_one(*store, {account("between", version), store::Put{}})));
        });
}

TEST(Allocations, those_that_fail_in_one_thread_keep_no_other_waiting) {
    constexpr int threads = 8;
    constexpr std::int64_t writes = 200;
    const ScratchFile file;
    Options options = file.options();
    options.synchronous = Synchronous::normal;
    const auto store = sqlite::open(options);
    store->ensure_table(accounts);
    std::vector<std::jthread> callers;
    std::array<std::vector<bool>, threads> applied;
    for (std::size_t thread = 0; thread < threads; ++thread) {
        callers.emplace_back([&, thread] {
            applied.at(thread).resize(writes);
            for (std::int64_t version = 0; version < writes; ++version) {
                const Write write{account("a stream with a long name " + std::to_string(thread), version),
                                  store::Put{{{"text", std::string(100, 'x')}}}, !store::item_exists()};
                allocations_to_come = static_cast<int>(version % 60);
                try {
                    const auto answers = store->write({&write, 1});
                    allocations_to_come = -1;
                    applied.at(thread)[static_cast<std::size_t>(version)] = std::holds_alternative<Applied>(answers[0]);
                } catch (const std::bad_alloc&) {
                    allocations_to_come = -1;
                }
            }
        });
    }
    callers.clear();
    for (std::size_t thread = 0; thread < threads; ++thread) {
        for (std::int64_t version = 0; version < writes; ++version) {
            const auto key = account("a stream with a long name " + std::to_string(thread), version);
            EXPECT_EQ(read_one(*store, key).has_value(), applied.at(thread)[static_cast<std::size_t>(version)]);
        }
    }
}

}  // namespace
}  // namespace varve::sqlite
