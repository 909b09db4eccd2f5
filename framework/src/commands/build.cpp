#include "commands/build.h"

#include "rows/stored_rows.h"

#include <varve/core/error.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace varve::detail {

namespace {

constexpr std::string_view table_infix = ".build-";
constexpr char name_infix = '@';
constexpr char partition_infix = '#';
constexpr char token_infix = '.';

/// Of decimal digits alone; nullopt: something else.
std::optional<std::int64_t> number_in(std::string_view digits) {
    std::int64_t number = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure != std::errc{} || end != digits.data() + digits.size() || number < 1) return std::nullopt;
    return number;
}

/// What stands behind the last `infix`, if that is a number, and is split off; else 1.
std::int64_t split_off(std::string_view& name, std::string_view infix) {
    const std::size_t at = name.rfind(infix);
    if (at == std::string_view::npos) return 1;
    const std::optional<std::int64_t> number = number_in(name.substr(at + infix.size()));
    if (!number) return 1;
    name = name.substr(0, at);
    return *number;
}

}  // namespace

Build* Builds::written_by(const BuildOf& keeper) {
    const auto is_it = [&](const Build& build) {
        return build.number == keeper.number && build.version == keeper.version &&
               build.partitions == keeper.partitions;
    };
    if (is_it(live)) return &live;
    return next && is_it(*next) ? &*next : nullptr;
}

bool Builds::is_whole(std::int64_t number) const {
    return number == live.number || std::ranges::any_of(replaced, [&](const ReplacedBuild& one) {
               return one.build.number == number && !one.emptying;
           });
}

void Builds::begin(Build build, Time now) {
    if (next) replaced.push_back({.build = *std::move(next), .until = now, .emptying = true});  // nobody ever read it
    build.number = ++last;
    next = std::move(build);
    paused = false;
}

void Builds::swap(Time keep_until) {
    replaced.push_back({.build = std::exchange(live, *std::move(next)), .until = keep_until, .emptying = false});
    next.reset();
}

std::string build_name(std::string_view follower, std::int64_t number) {
    std::string name{follower};
    if (number > 1) (name += name_infix) += std::to_string(number);
    return name;
}

std::string partition_name(std::string_view build_name, const feed::Partition& partition) {
    std::string name{build_name};
    if (partition.of > 1) (name += partition_infix) += std::to_string(partition.number);
    return name;
}

NameOfFollower split_name(std::string_view name) {
    NameOfFollower parts;
    parts.partition = split_off(name, {&partition_infix, 1});
    parts.build = split_off(name, {&name_infix, 1});
    parts.follower = name;
    return parts;
}

std::pair<std::string, std::int64_t> split_build_table(std::string_view name) {
    const std::int64_t number = split_off(name, table_infix);
    return {std::string{name}, number};
}

bool is_partition_of(std::string_view name, std::string_view follower) {
    if (!name.starts_with(follower)) return false;
    name.remove_prefix(follower.size());
    return name.empty() || (name.front() == partition_infix && number_in(name.substr(1)));
}

std::string build_table(std::string_view table, std::int64_t number) {
    std::string name{table};
    if (number > 1) (name += table_infix) += std::to_string(number);
    return name;
}

bool is_name_of_build_table(std::string_view name) {
    const std::size_t at = name.rfind(table_infix);
    return at != std::string_view::npos && number_in(name.substr(at + table_infix.size()));
}

bool is_name_of_build(std::string_view name) {
    const std::size_t at = name.rfind(name_infix);
    return at != std::string_view::npos && number_in(name.substr(at + 1));
}

bool is_name_of_partition(std::string_view name) {
    const std::size_t at = name.rfind(partition_infix);
    return at != std::string_view::npos && number_in(name.substr(at + 1));
}

store::Key builds_key(std::string_view follower) {
    return stored_key(row_table<Builds>, RowKey{follower});
}

Builds decode_builds(std::string_view follower, const std::optional<std::string>& data) {
    return data ? decode_row<Builds>(RowKey{follower}, *data) : Builds{};
}

PageOfBuild::PageOfBuild(const PageOptions& of) : page(of) {
    if (of.next.empty()) return;
    number = 1;
    const std::size_t at = of.next.find(token_infix);
    if (at == std::string::npos) return;
    if (const std::optional<std::int64_t> found = number_in(std::string_view{of.next}.substr(0, at))) {
        number = found;
        page.next = of.next.substr(at + 1);
    }
}

StoredPage PageOfBuild::of(StoredPage page, std::int64_t number) {
    if (!page.next.empty() && number > 1) page.next = std::to_string(number) + token_infix + page.next;
    return page;
}

void throw_list_is_gone(const RowTable& table) {
    throw InvalidError("this list of rows of '" + std::string{table.type.name} + "' began before '" +
                       std::string{table.kept_by} +
                       "' was rebuilt, and the rows of that time are gone; read the list from its beginning");
}

void throw_not_kept(const RowTable& table, const BuildOf& writer) {
    throw ConfigError("the projection '" + writer.follower + "' cannot be rebuilt: it writes rows of '" +
                      std::string{table.type.name} + "', and " +
                      (table.kept_by.empty()
                           ? std::string{"nothing says"}
                           : "these are kept by '" + std::string{table.kept_by} + "', so no one says") +
                      " that they are made anew with it. Add to " + std::string{table.type.cpp_name} +
                      ": static constexpr std::string_view kept_by = \"" + writer.follower + "\";");
}

void throw_kept(const RowTable& table) {
    throw InvalidError("rows of '" + std::string{table.type.name} + "' are kept by the follower '" +
                       std::string{table.kept_by} +
                       "' alone (kept_by), and what others write would be lost when it is rebuilt; change them by an "
                       "event");
}

void throw_replaced(const BuildOf& keeper, const Builds& builds) {
    const auto said = [](std::int64_t version, std::int64_t partitions) {
        std::string text = " (version " + std::to_string(version);
        if (partitions > 1) text += ", " + std::to_string(partitions) + " partitions";
        return text + ")";
    };
    throw UnavailableError("build " + std::to_string(keeper.number) + " of '" + keeper.follower + "'" +
                           said(keeper.version, keeper.partitions) + " is not kept any more: build " +
                           std::to_string(builds.live.number) + said(builds.live.version, builds.live.partitions) +
                           " is live. Nothing was written");
}

void throw_split(const BuildOf& keeper, const Builds& builds) {
    const std::string begun = std::to_string(builds.live.partitions);
    throw ConfigError("the subscription '" + keeper.follower +
                      "' cannot begin: it was begun with partitions = " + begun + ", and this program says " +
                      std::to_string(keeper.partitions) + ". Say FollowOptions::partitions = " + begun +
                      "; or end it in all programs and begin another one, under another name, with "
                      "SubscribeOptions::after = the smallest position that followers() shows for this one");
}

std::string refused_version(std::string_view follower, std::int64_t version, const Builds& builds) {
    return "version " + std::to_string(builds.live.version) + " is live; this program has version " +
           std::to_string(version) + " of '" + std::string{follower} +
           "', which would go back. Run the program with the live version, or give what this one does a higher one";
}

std::int64_t LastSeenBuilds::live(std::string_view follower) const {
    const SharedLock lock{mutex_};
    const auto found = live_.find(follower);
    return found == live_.end() ? 1 : found->second;
}

void LastSeenBuilds::learn(std::string_view follower, std::int64_t number) {
    if (live(follower) == number) return;
    const ExclusiveLock lock{mutex_};
    live_.insert_or_assign(std::string{follower}, number);
}

}  // namespace varve::detail
