#include "failing_new.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> armed{false};
std::atomic<bool> failed{false};
std::atomic<bool> for_good{false};
std::atomic<long> left{0};

bool fails_now() {
    if (!armed.load(std::memory_order_relaxed)) return false;
    const long before = left.fetch_sub(1);
    const bool fails = before == 1 || (before < 1 && for_good);
    if (fails) failed = true;
    return fails;
}

void* allocate(std::size_t bytes) {
    if (fails_now()) throw std::bad_alloc{};
    if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc{};
}

}  // namespace

void* operator new(std::size_t bytes) {
    return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
    return allocate(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return fails_now() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return fails_now() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}

namespace varve {

FailingNew::FailingNew(long n, Which which) {
    left = n;
    failed = false;
    for_good = which == Which::all_after;
    armed = true;
}

void FailingNew::stop() {
    armed = false;
}

bool FailingNew::has_failed() const {
    return failed;
}

}  // namespace varve
