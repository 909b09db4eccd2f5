#include "core/json_text.h"

#include <varve/core/json.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <rapidjson/document.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

namespace varve::json {
namespace {

/// Writes down what JSON stands for a type. Types that contain themselves are named by when they were met.
class Shape {
  public:
    std::string of(const detail::Type& type) {
        write(type);
        return std::move(out_);
    }

  private:
    void write(const detail::Type& type) {
        using detail::Kind;
        switch (type.kind) {
            case Kind::boolean: out_ += "bool"; return;
            case Kind::signed_integer: out_ += "int" + std::to_string(type.bytes) + unit(type); return;
            case Kind::unsigned_integer: out_ += "uint" + std::to_string(type.bytes) + unit(type); return;
            case Kind::floating: out_ += "float" + std::to_string(type.bytes); return;
            case Kind::text: out_ += "text"; return;
            case Kind::time: out_ += "time"; return;
            case Kind::raw: out_ += "raw"; return;
            case Kind::enumeration:
                out_ += "enum(";
                for (const auto& one : type.enumeration->enumerators)
                    out_ += std::string{one.name} + "=" + std::to_string(one.value) + ",";
                out_ += ")";
                return;
            case Kind::optional: return write_around("optional", *type.optional->value);
            case Kind::sequence: {
                const std::size_t size = type.sequence->fixed_size;
                const bool grows = size == detail::Sequence::growing;
                return write_around(grows ? "list" : "array" + std::to_string(size), *type.sequence->element);
            }
            case Kind::map:
                out_ += "map(";
                write(*type.map->key);
                out_ += ",";
                write(*type.map->value);
                out_ += ")";
                return;
            case Kind::variant:
                if (met(type)) return;
                out_ += "variant(";
                for (const detail::Alternative& one : type.variant->alternatives) write_named(one.name, *one.type);
                out_ += ")";
                return;
            case Kind::object:
                if (met(type)) return;
                out_ += "{";
                for (const detail::Field& field : type.object->fields) write_named(field.name, *field.type);
                out_ += "}";
                return;
        }
    }

    static std::string unit(const detail::Type& type) {
        if (type.unit == nullptr) return {};
        return " of " + std::to_string(type.unit->numerator) + "/" + std::to_string(type.unit->denominator) + " s";
    }
    void write_around(const std::string& name, const detail::Type& inner) {
        out_ += name + "(";
        write(inner);
        out_ += ")";
    }
    void write_named(std::string_view name, const detail::Type& type) {
        out_.append(name).append(":");
        write(type);
        out_ += ",";
    }
    bool met(const detail::Type& type) {
        const auto found = std::ranges::find(met_, &type);
        if (found == met_.end()) {
            met_.push_back(&type);
            return false;
        }
        out_ += "^" + std::to_string(found - met_.begin());
        return true;
    }

    std::string out_;
    std::vector<const detail::Type*> met_;
};

}  // namespace

std::string detail::shape(const Type& type) {
    return Shape{}.of(type);
}

namespace {

/// A number as its digits without zeros at either end and a power of ten, so that equal numbers give equal texts.
std::string decimal(std::string_view number) {
    const std::string sign = number.starts_with('-') ? "-" : "";
    const std::size_t e = std::min(number.find_first_of("eE"), number.size());
    const std::string_view mantissa = number.substr(sign.size(), e - sign.size());
    std::int64_t exponent = 0;
    if (e < number.size()) {
        std::string_view digits = number.substr(e + 1);
        if (digits.starts_with('+')) digits.remove_prefix(1);
        // What is beyond 64 bits is nobody's number: the same if it is written alike.
        if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc{} ||
            exponent < std::numeric_limits<std::int64_t>::min() / 2) {
            return std::string{number};
        }
    }
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    std::string digits{mantissa.substr(0, point)};
    if (point < mantissa.size()) {
        digits += mantissa.substr(point + 1);
        exponent -= static_cast<std::int64_t>(mantissa.size() - point - 1);
    }
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.empty()) return "0";
    const std::size_t end = digits.find_last_not_of('0') + 1;
    exponent += static_cast<std::int64_t>(digits.size() - end);
    digits.resize(end);
    return sign + digits + "e" + std::to_string(exponent);
}

/// Builds a document in which numbers are texts, so that none loses a digit, and texts are told from numbers by a
/// letter before them.
class Exact {
  public:
    explicit Exact(rapidjson::Document& into) : into_(into) {}

    bool Null() { return into_.Null(); }
    bool Bool(bool value) { return into_.Bool(value); }
    bool Int(int) { return false; }
    bool Uint(unsigned) { return false; }
    bool Int64(std::int64_t) { return false; }
    bool Uint64(std::uint64_t) { return false; }
    bool Double(double) { return false; }
    bool RawNumber(const char* data, rapidjson::SizeType size, bool) { return marked('n', decimal({data, size})); }
    bool String(const char* data, rapidjson::SizeType size, bool) { return marked('s', {data, size}); }
    bool StartObject() { return into_.StartObject(); }
    bool Key(const char* data, rapidjson::SizeType size, bool) { return into_.Key(data, size, true); }
    bool EndObject(rapidjson::SizeType count) { return into_.EndObject(count); }
    bool StartArray() { return into_.StartArray(); }
    bool EndArray(rapidjson::SizeType count) { return into_.EndArray(count); }

  private:
    bool marked(char mark, const std::string& text) {
        const std::string whole = mark + text;
        return into_.String(whole.data(), static_cast<rapidjson::SizeType>(whole.size()), true);
    }

    rapidjson::Document& into_;
};

/// The members of an object by their names.
std::vector<const rapidjson::Value::Member*> sorted_members(const rapidjson::Value& object) {
    std::vector<const rapidjson::Value::Member*> members;
    for (const auto& member : object.GetObject()) members.push_back(&member);
    const auto name = [](const rapidjson::Value::Member* member) {
        return std::string_view{member->name.GetString(), member->name.GetStringLength()};
    };
    std::ranges::stable_sort(members, {}, name);
    return members;
}

/// By a stack of its own: texts may nest deeper than the stack of calls.
bool equal(const rapidjson::Value& a, const rapidjson::Value& b) {
    std::vector<std::pair<const rapidjson::Value*, const rapidjson::Value*>> open{{&a, &b}};
    while (!open.empty()) {
        const auto [one, other] = open.back();
        open.pop_back();
        if (one->GetType() != other->GetType()) return false;
        if (one->IsString() && *one != *other) return false;
        if (one->IsArray()) {
            if (one->Size() != other->Size()) return false;
            for (rapidjson::SizeType i = 0; i < one->Size(); ++i) open.emplace_back(&(*one)[i], &(*other)[i]);
        } else if (one->IsObject()) {
            if (one->MemberCount() != other->MemberCount()) return false;
            const auto members = sorted_members(*one);
            const auto others = sorted_members(*other);
            for (std::size_t i = 0; i < members.size(); ++i) {
                if (members[i]->name != others[i]->name) return false;
                open.emplace_back(&members[i]->value, &others[i]->value);
            }
        }
    }
    return true;
}

bool parse(rapidjson::Document& document, std::string_view text) {
    constexpr std::size_t any_depth = std::numeric_limits<std::size_t>::max();
    if (!detail::check(text, any_depth).empty()) return false;
    const auto parse = [text](rapidjson::Document& into) {
        rapidjson::MemoryStream stream{text.data(), text.size()};
        Exact handler{into};
        rapidjson::Reader reader;
        return !reader.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag>(stream, handler)
                    .IsError();
    };
    document.Populate(parse);
    return true;
}

}  // namespace

bool same(std::string_view a, std::string_view b) {
    rapidjson::Document first;
    rapidjson::Document second;
    return parse(first, a) && parse(second, b) && equal(first, second);
}

}  // namespace varve::json
