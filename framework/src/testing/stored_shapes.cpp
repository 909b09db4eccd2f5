#include <varve/testing/stored_shapes.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace varve::testing::detail {
namespace {

/// By path, as "lines.product": "text". What holds others says so itself, as "lines": "list of object".
using Fields = std::map<std::string, std::string>;

struct Frozen {
    int schema = 1;
    Fields fields;

    bool operator==(const Frozen&) const = default;
};

/// The file.
struct File {
    std::map<std::string, Frozen> events;
    std::map<std::string, Frozen> effects;
    std::map<std::string, Frozen> rows;
    std::map<std::string, Frozen> snapshots;

    bool operator==(const File&) const = default;
};

constexpr std::string_view enumerator = "enumerator";
constexpr std::string_view alternative = "alternative";

class Flattened {
  public:
    static Fields of(const json::detail::Type& type) {
        Flattened flattened;
        flattened.within(type, "");
        return std::move(flattened.fields_);
    }

  private:
    using Kind = json::detail::Kind;
    using Type = json::detail::Type;

    /// Notes what is within a type, and returns what the type is called.
    std::string within(const Type& type, const std::string& path) {
        switch (type.kind) {
            case Kind::boolean: return "bool";
            case Kind::signed_integer: return "int" + bits(type) + unit(type);
            case Kind::unsigned_integer: return "uint" + bits(type) + unit(type);
            case Kind::floating: return "float" + bits(type);
            case Kind::text: return "text";
            case Kind::time: return "time";
            case Kind::raw: return "any";
            case Kind::enumeration:
                for (const auto& one : type.enumeration->enumerators) fields_[under(path, one.name)] = enumerator;
                return "enum";
            case Kind::optional: return "optional " + within(*type.optional->value, path);
            case Kind::sequence: {
                const std::size_t size = type.sequence->fixed_size;
                const std::string list =
                    size == json::detail::Sequence::growing ? "list" : "array " + std::to_string(size);
                return list + " of " + within(*type.sequence->element, path);
            }
            case Kind::map: return "map from " + within(*type.map->key, path) + " to " + within(*type.map->value, path);
            case Kind::variant:
                if (const std::string* outer = begun_at(type)) return "variant as " + *outer;
                outer_.push_back({&type, path.empty() ? "the whole" : path});
                for (const auto& one : type.variant->alternatives) {
                    const std::string place = under(path, one.name);
                    fields_[place] = std::string{alternative} + " " + within(*one.type, place);
                }
                outer_.pop_back();
                return "variant";
            case Kind::object:
                if (const std::string* outer = begun_at(type)) return "object as " + *outer;
                outer_.push_back({&type, path.empty() ? "the whole" : path});
                for (const auto& field : type.object->fields) {
                    const std::string place = under(path, field.name);
                    fields_[place] = within(*field.type, place);
                }
                outer_.pop_back();
                return "object";
        }
        return {};
    }

    static std::string bits(const Type& type) { return std::to_string(8 * type.bytes); }
    static std::string unit(const Type& type) {
        if (type.unit == nullptr) return {};
        return " of " + std::to_string(type.unit->numerator) + "/" + std::to_string(type.unit->denominator) + " s";
    }
    static std::string under(const std::string& path, std::string_view name) {
        return path.empty() ? std::string{name} : path + "." + std::string{name};
    }
    /// Of what is being noted, for types that contain themselves.
    const std::string* begun_at(const Type& type) const {
        const auto found = std::ranges::find(outer_, &type, &Outer::type);
        return found == outer_.end() ? nullptr : &found->path;
    }

    struct Outer {
        const Type* type;
        std::string path;
    };
    Fields fields_;
    std::vector<Outer> outer_;
};

std::string parent_of(const std::string& path) {
    const std::size_t dot = path.rfind('.');
    return dot == std::string::npos ? std::string{} : path.substr(0, dot);
}

/// "int", "32" of "int32"; the second is empty for other types.
std::pair<std::string, int> split_number(const std::string& type) {
    const std::size_t digit = type.find_first_of("0123456789");
    const std::string name = type.substr(0, digit);
    if ((name != "int" && name != "uint" && name != "float") || type.find(' ') != std::string::npos) return {type, 0};
    return {name, std::stoi(type.substr(digit))};
}

bool reads(const std::string& now, const std::string& before) {
    if (now == before || now == "optional " + before) return true;
    const auto [name, bits] = split_number(now);
    const auto [name_before, bits_before] = split_number(before);
    return bits > bits_before && bits_before > 0 && (name == name_before || (name == "int" && name_before == "uint"));
}

/// What of `before` would not be read as it was meant: one sentence each.
std::vector<std::string> broken(const Fields& before, const Fields& now) {
    std::vector<std::string> found;
    std::map<std::string, std::vector<std::string>> gone;
    std::map<std::string, std::vector<std::string>> added;
    for (const auto& [path, type] : before) {
        const auto at = now.find(path);
        if (at != now.end()) {
            if (!reads(at->second, type)) found.push_back(path + " was " + type + " and is " + at->second);
        } else if (before.contains(parent_of(path)) && !now.contains(parent_of(path))) {
            continue;  // its parent says it
        } else if (type == enumerator || type.starts_with(alternative)) {
            found.push_back((type == enumerator ? "the enumerator " : "the alternative ") + path + " is gone");
        } else {
            gone[parent_of(path)].push_back(path);
        }
    }
    for (const auto& [path, type] : now) {
        if (!before.contains(path) && type != enumerator && !type.starts_with(alternative))
            added[parent_of(path)].push_back(path);
    }
    for (const auto& [parent, paths] : gone) {
        if (added.contains(parent))
            found.push_back(paths.front() + " is gone and " + added[parent].front() + " is new, as if it was renamed");
    }
    return found;
}

std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
    return text;
}

constexpr std::string_view advice_for_event = "keep the old form as Previous and add static upcast(const Previous&)";
constexpr std::string_view advice_for_row =
    "rows have no upcasters: keep the old field beside the new one, or begin a new table";

/// What of a thing's frozen shape the program would not read; empty if all.
std::string unreadable(const StoredShape& shape, const Frozen& before, const Fields& now) {
    if (shape.kind == StoredShape::Kind::snapshot) return {};  // one of another shape is not used
    const bool is_row = shape.kind == StoredShape::Kind::row;
    const int schema = shape.forms.front().schema;
    if (schema < before.schema) {
        return "its schema was " + std::to_string(before.schema) + " and is " + std::to_string(schema) +
               ": a Previous is missing, with which the older ones are read";
    }
    if (schema == before.schema) {
        const std::vector<std::string> found = broken(before.fields, now);
        return found.empty() ? "" : joined(found) + ": " + std::string{is_row ? advice_for_row : advice_for_event};
    }
    for (const StoredShape::Form& form : shape.forms) {
        if (form.schema != before.schema) continue;
        const std::vector<std::string> found = broken(before.fields, Flattened::of(*form.type));
        if (!found.empty())
            return "its form of schema " + std::to_string(form.schema) + " is not what was stored: " + joined(found) +
                   ": make that Previous what the struct was";
    }
    return {};
}

std::map<std::string, Frozen>& section(File& file, StoredShape::Kind kind) {
    switch (kind) {
        case StoredShape::Kind::event: return file.events;
        case StoredShape::Kind::effect: return file.effects;
        case StoredShape::Kind::row: return file.rows;
        case StoredShape::Kind::snapshot: return file.snapshots;
    }
    return file.events;
}

/// A line for each member, so that a change is one in a diff.
std::string indented(std::string_view compact) {
    std::string text;
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < compact.size(); ++i) {
        const char c = compact[i];
        if (c == '"' && (i == 0 || compact[i - 1] != '\\')) in_string = !in_string;
        const auto new_line = [&] { (text += '\n').append(2 * depth, ' '); };
        if (in_string) {
            text += c;
        } else if (c == '{' && compact[i + 1] == '}') {
            text += "{}";
            ++i;
        } else if (c == '{') {
            text += c;
            ++depth;
            new_line();
        } else if (c == '}') {
            --depth;
            new_line();
            text += c;
        } else {
            text += c;
            if (c == ',') new_line();
            if (c == ':') text += ' ';
        }
    }
    return text + '\n';
}

}  // namespace

void check_shapes(const std::string& path, const std::vector<StoredShape>& shapes) {
    const char* asked = std::getenv("VARVE_UPDATE_SHAPES");
    const bool update = asked != nullptr && std::string_view{asked} == "1";
    const std::string how_to_update =
        "run this test with VARVE_UPDATE_SHAPES=1 in its environment, and commit the file";

    File before;
    std::stringstream text;
    if (std::ifstream in{path}; in) {
        text << in.rdbuf();
        auto file = json::decode<File>(text.str());
        if (!file) throw AssertionFailed(path + " cannot be read: " + file.error().message);
        before = std::move(*file);
    } else if (!update) {
        throw AssertionFailed("there is no " + path + ", which says what is stored; " + how_to_update);
    }

    File now;
    std::vector<std::string> problems;
    for (const StoredShape& shape : shapes) {
        Frozen& frozen = section(now, shape.kind)[shape.name];
        frozen = {shape.forms.front().schema, Flattened::of(*shape.forms.front().type)};
        if (shape.kind == StoredShape::Kind::row) frozen.fields["(key)"] = shape.is_sorted ? "two parts" : "one part";
        const auto& known = section(before, shape.kind);
        const auto found = known.find(shape.name);
        if (found == known.end()) continue;
        if (const std::string why = unreadable(shape, found->second, frozen.fields); !why.empty())
            problems.push_back(shape.name + ": " + why);
    }
    for (const auto kind : {StoredShape::Kind::event, StoredShape::Kind::effect}) {
        for (const auto& [name, frozen] : section(before, kind)) {
            if (section(now, kind).contains(name)) continue;
            problems.push_back(name +
                               " is gone, and what is stored of it could not be read: keep it, or if its struct "
                               "was renamed, give it static constexpr std::string_view name = \"" +
                               name.substr(name.find('/') + 1) + "\"");
        }
    }
    if (!problems.empty()) {
        std::string message = "what is stored could not be read any more, says " + path + ":";
        for (const std::string& problem : problems) message += "\n  " + problem;
        throw AssertionFailed(message + "\nIf nothing was ever stored in the old form, take it out of the file.");
    }
    if (now == before) return;
    if (!update) {
        throw AssertionFailed(path +
                              " does not know all that is stored; what has changed is safe, but must be in it, or "
                              "the next change is not noticed: " +
                              how_to_update);
    }
    std::ofstream out{path, std::ios::trunc};
    out << indented(json::encode(now));
    if (!out.flush()) throw AssertionFailed(path + " cannot be written");
}

}  // namespace varve::testing::detail
