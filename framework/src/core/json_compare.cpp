#include <varve/core/json.h>

#include <algorithm>
#include <vector>

#include <rapidjson/document.h>

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

bool same(std::string_view a, std::string_view b) {
    if (a == b) return true;
    rapidjson::Document first;
    rapidjson::Document second;
    constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag;
    first.Parse<flags>(a.data(), a.size());
    second.Parse<flags>(b.data(), b.size());
    return !first.HasParseError() && !second.HasParseError() && first == second;
}

}  // namespace varve::json
