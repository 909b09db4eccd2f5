#include "output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace varve::console {

namespace {

/// Columns that a text takes; bytes that continue a character take none.
std::size_t width(const std::string& text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

void print_line(const std::string& line) {
    const std::string whole = line + "\n";
    if (std::fwrite(whole.data(), 1, whole.size(), stdout) == whole.size() && std::fflush(stdout) == 0) return;
    throw OutputFailed(std::string{"standard output does not take the result: "} + std::strerror(errno));
}

std::string shown(std::string_view text) {
    std::string line;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte != 0x7f) {
            line += c;
            continue;
        }
        constexpr const char* digits = "0123456789abcdef";
        line += "\\x";
        line += digits[byte >> 4];
        line += digits[byte & 0xf];
    }
    // The control characters beyond ASCII, which terminals obey as well.
    for (std::size_t at = 0; (at = line.find('\xc2', at)) != std::string::npos; ++at) {
        if (at + 1 < line.size() && static_cast<unsigned char>(line[at + 1]) < 0xa0) line.replace(at, 2, "?");
    }
    return line;
}

std::string shown(Time time) {
    std::string text = to_string(time).substr(0, 19);
    text[10] = ' ';
    return text;
}

std::string shown(Duration duration) {
    using std::chrono::duration_cast;
    using std::chrono::hours;
    using std::chrono::minutes;
    if (duration < Duration::zero()) return "-" + shown(-duration);
    if (duration < std::chrono::seconds{10}) return to_string(duration_cast<std::chrono::milliseconds>(duration));
    if (duration < minutes{2}) return std::to_string(duration_cast<std::chrono::seconds>(duration).count()) + " s";
    if (duration < hours{2}) return std::to_string(duration_cast<minutes>(duration).count()) + " min";
    if (duration < hours{48}) return std::to_string(duration_cast<hours>(duration).count()) + " h";
    return std::to_string(duration_cast<hours>(duration).count() / 24) + " d";
}

std::string shown(std::int64_t count) {
    std::string text = std::to_string(count);
    const std::size_t first = text.front() == '-' ? 1 : 0;
    for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
    return text;
}

void Table::add(std::vector<std::string> line) {
    constexpr std::size_t measured = 500;
    lines_.push_back(std::move(line));
    if (!widths_.empty() || lines_.size() == measured) print_all();
}

void Table::end() {
    if (!lines_.empty()) print_all();
}

void Table::print_all() {
    if (widths_.empty()) {
        std::vector<std::string> names;
        for (const Column& column : columns_) {
            names.push_back(column.name);
            widths_.push_back(width(column.name));
        }
        for (const std::vector<std::string>& line : lines_) {
            for (std::size_t i = 0; i < line.size(); ++i) widths_[i] = std::max(widths_[i], width(line[i]));
        }
        print(names);
    }
    for (const std::vector<std::string>& line : lines_) print(line);
    lines_.clear();
}

void Table::print(const std::vector<std::string>& line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const std::size_t used = width(line[i]);
        const std::string space(used < widths_[i] ? widths_[i] - used : 0, ' ');
        text += columns_[i].align == Align::right ? space + line[i] : line[i] + space;
        if (i + 1 < line.size()) text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    print_line(text);
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t to = std::min(text.find(at, from), text.size());
        if (to > from) parts.push_back(text.substr(from, to - from));
        from = to + 1;
    }
    return parts;
}

}  // namespace varve::console
