#pragma once

#include <varve/core/clock.h>
#include <varve/core/json.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace varve::console {

/// What was asked for is done, but nobody can read it: standard output does not take it.
struct OutputFailed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// At once, so that who reads along sees it. Throws OutputFailed.
void print_line(const std::string& line);

/// One object on a line of its own.
template <class T>
void print_json(const T& value) {
    print_line(json::encode(value));
}

/// What somebody else has stored, for a terminal: on one line, without control characters.
std::string shown(std::string_view text);
/// "2026-01-31 12:00:00"
std::string shown(Time time);
/// "3 s", "5 min", "2 h", "4 d"
std::string shown(Duration duration);
/// "1,234,567"
std::string shown(std::int64_t count);
inline std::string shown(std::uint64_t count) {
    return shown(static_cast<std::int64_t>(count));
}

/// Lines in columns, as wide as the first few hundred lines need. Printed when it ends, or in between.
class Table {
  public:
    enum class Align { left, right };
    struct Column {
        std::string name;
        Align align = Align::left;
    };
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    void add(std::vector<std::string> line);
    /// Prints what is left. Throws OutputFailed, as add does.
    void end();

  private:
    void print(const std::vector<std::string>& line);
    void print_all();

    const std::vector<Column> columns_;
    std::vector<std::vector<std::string>> lines_;
    std::vector<std::size_t> widths_;  // empty: nothing was printed yet
};

/// "a" and "b" of "a,b".
std::vector<std::string> split(const std::string& text, char at);

}  // namespace varve::console
