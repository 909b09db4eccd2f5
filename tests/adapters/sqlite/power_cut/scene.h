#pragma once

#include <varve/varve.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// What the worker does, and what must be found after a power cut: accounts that know by name each transfer they took
/// part in, and notes that fill the log.
namespace varve::power_cut {

inline constexpr int accounts = 5;
inline constexpr std::int64_t initial_cents = 1'000'000;

struct Credited {
    std::string transfer;
    std::int64_t cents;
};
struct Credit {
    std::string transfer;
    std::int64_t cents;
};

struct Account {
    static constexpr std::string_view name = "account";
    using Event = std::variant<Credited>;

    std::int64_t balance = 0;
    std::vector<std::string> transfers;

    void apply(const Credited& e) {
        balance += e.cents;
        transfers.push_back(e.transfer);
    }
    Decision<Event> decide(const Credit& c) const { return Credited{c.transfer, c.cents}; }
    bool knows(std::string_view transfer) const { return std::ranges::count(transfers, transfer) == 1; }
};

struct Noted {
    std::string text;
};
struct Note {
    std::string text;
};

struct Diary {
    static constexpr std::string_view name = "diary";
    using Event = std::variant<Noted>;

    void apply(const Noted&) {}
    Decision<Event> decide(const Note& c) const { return Noted{c.text}; }
};

}  // namespace varve::power_cut
