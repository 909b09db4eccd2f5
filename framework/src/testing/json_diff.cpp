#include "testing/json_diff.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <algorithm>
#include <map>
#include <optional>

namespace varve::testing::detail {
namespace {

using Object = std::map<std::string, json::Raw>;
using Array = std::vector<json::Raw>;

std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return first == std::string::npos ? text : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

template <class T>
T decode(const std::string& text) {
    Result<T, json::DecodeError> value = json::decode<T>(text);
    if (!value) throw InvalidError("cannot compare what is no JSON: " + value.error().message);
    return std::move(value).value();
}

void print(const json::Raw& value, const std::string& indent, const std::string& name, const char* comma,
           std::vector<std::string>& lines) {
    const std::string text = trimmed(value.text);
    const std::string deeper = indent + "  ";
    if (text.starts_with('{')) {
        const auto members = decode<Object>(text);
        lines.push_back(indent + name + (members.empty() ? std::string{"{}"} + comma : "{"));
        std::size_t left = members.size();
        for (const auto& [member, inner] : members) {
            print(inner, deeper, json::quote(member) + ": ", --left > 0 ? "," : "", lines);
        }
        if (!members.empty()) lines.push_back(indent + "}" + comma);
    } else if (text.starts_with('[')) {
        const auto elements = decode<Array>(text);
        lines.push_back(indent + name + (elements.empty() ? std::string{"[]"} + comma : "["));
        std::size_t left = elements.size();
        for (const json::Raw& inner : elements) print(inner, deeper, "", --left > 0 ? "," : "", lines);
        if (!elements.empty()) lines.push_back(indent + "]" + comma);
    } else {
        lines.push_back(indent + name + text + comma);
    }
}

std::vector<std::string> printed(const std::string& text) {
    std::vector<std::string> lines;
    print({text}, "", "", "", lines);
    return lines;
}

/// The longest common subsequence stays, all else is expected or actual only. Texts of tests are short.
std::vector<std::string> diff_lines(const std::vector<std::string>& expected, const std::vector<std::string>& actual) {
    const std::size_t rows = expected.size();
    const std::size_t columns = actual.size();
    std::vector<std::vector<std::size_t>> common(rows + 1, std::vector<std::size_t>(columns + 1));
    for (std::size_t i = rows; i-- > 0;) {
        for (std::size_t j = columns; j-- > 0;) {
            common[i][j] =
                expected[i] == actual[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
        }
    }
    std::vector<std::string> lines;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < rows || j < columns) {
        if (i < rows && j < columns && expected[i] == actual[j]) {
            lines.push_back("  " + expected[i++]);
            ++j;
        } else if (j == columns || (i < rows && common[i + 1][j] >= common[i][j + 1])) {
            lines.push_back("- " + expected[i++]);
        } else {
            lines.push_back("+ " + actual[j++]);
        }
    }
    return lines;
}

/// Every path with a value of its own: members of objects and elements of arrays, down to what has none.
void collect(const json::Raw& value, const std::string& path, std::map<std::string, std::string>& leaves) {
    const std::string text = trimmed(value.text);
    if (text.starts_with('{')) {
        const auto members = decode<Object>(text);
        for (const auto& [member, inner] : members) collect(inner, path + "." + member, leaves);
        if (members.empty()) leaves.emplace(path, "{}");
    } else if (text.starts_with('[')) {
        const auto elements = decode<Array>(text);
        for (std::size_t i = 0; i < elements.size(); ++i) {
            collect(elements[i], path + "[" + std::to_string(i) + "]", leaves);
        }
        if (elements.empty()) leaves.emplace(path, "[]");
    } else {
        leaves.emplace(path, text);
    }
}

std::vector<std::string> diff_fields(const std::string& expected, const std::string& actual) {
    std::map<std::string, std::string> wanted;
    std::map<std::string, std::string> found;
    collect({expected}, "$", wanted);
    collect({actual}, "$", found);
    std::vector<std::string> fields;
    for (const auto& [path, value] : wanted) {
        const auto other = found.find(path);
        if (other == found.end()) {
            fields.push_back(path + ": expected " + value + ", actual: not there");
        } else if (other->second != value) {
            fields.push_back(path + ": expected " + value + ", actual " + other->second);
        }
    }
    for (const auto& [path, value] : found) {
        if (!wanted.contains(path)) fields.push_back(path + ": expected: not there, actual " + value);
    }
    return fields;
}

}  // namespace

JsonDiff diff_json(const std::string& expected, const std::string& actual) {
    return {.lines = diff_lines(printed(expected), printed(actual)), .fields = diff_fields(expected, actual)};
}

}  // namespace varve::testing::detail
