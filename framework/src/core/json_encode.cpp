#include "core/json_numbers.h"
#include "core/json_text.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace varve::json::detail {
namespace {

class Encoder {
  public:
    explicit Encoder(const EncodeOptions& options) : options_(options) {}

    std::string encode(const Type& type, const void* value) {
        write(type, value);
        return std::move(out_);
    }

  private:
    /// One object or array around the value being written; they are linked, innermost first, to name its path.
    struct Level {
        explicit Level(Encoder& owner) : encoder(owner), outer(owner.level_) {
            if (++encoder.depth_ > encoder.options_.depth_max) {
                --encoder.depth_;
                encoder.fail("nested deeper than " + std::to_string(encoder.options_.depth_max) + " levels");
            }
            encoder.level_ = this;
        }
        ~Level() {
            encoder.level_ = outer;
            --encoder.depth_;
        }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

        Encoder& encoder;
        const Level* outer;
        bool in_array = false;
        std::string_view member;
        std::size_t index = 0;
    };

    struct Elements final : Visitor {
        Elements(Encoder& owner, const Type& type) : encoder(owner), element(type), level(owner) {
            level.in_array = true;
        }
        void visit(const void*, const void* value) override {
            if (count > 0) encoder.out_ += ',';
            level.index = count++;
            encoder.write(element, value);
        }

        Encoder& encoder;
        const Type& element;
        Level level;
        std::size_t count = 0;
    };

    struct Entries final : Visitor {
        Entries(Encoder& owner, const Map& type) : encoder(owner), map(type), level(owner) {}
        void visit(const void* key, const void* value) override {
            if (!first) encoder.out_ += ',';
            first = false;
            std::string number;
            level.member = {};
            if (map.key->kind == Kind::text) {
                level.member = *static_cast<const std::string*>(key);
            } else {
                number = encoder.scalar_key(*map.key, key);
                level.member = number;
            }
            encoder.quoted(level.member);
            encoder.out_ += ':';
            encoder.write(*map.value, value);
        }

        Encoder& encoder;
        const Map& map;
        Level level;
        bool first = true;
    };

    [[noreturn]] void fail(const std::string& what) const {
        std::vector<const Level*> levels;
        for (const Level* at = level_; at != nullptr; at = at->outer) levels.push_back(at);
        std::string message = "$";
        std::ranges::for_each(levels.rbegin(), levels.rend(), [&](const Level* at) {
            at->in_array ? append_index(message, at->index) : append_member(message, at->member);
        });
        throw InvalidError(message + ": " + what);
    }

    void write(const Type& type, const void* value) {
        switch (type.kind) {
            case Kind::boolean: out_ += *static_cast<const bool*>(value) ? "true" : "false"; break;
            case Kind::signed_integer: append_number(load_signed(value, type.bytes)); break;
            case Kind::unsigned_integer: append_number(load_unsigned(value, type.bytes)); break;
            case Kind::floating: floating(type, value); break;
            case Kind::text: quoted(*static_cast<const std::string*>(value)); break;
            case Kind::time: time(*static_cast<const Time*>(value)); break;
            case Kind::raw: raw(static_cast<const Raw*>(value)->text); break;
            case Kind::enumeration: quoted(enumerator(type, value)); break;
            case Kind::optional: {
                const void* held = type.optional->get(value);
                held == nullptr ? void(out_ += "null") : write(*type.optional->value, held);
                break;
            }
            case Kind::sequence: {
                out_ += '[';
                Elements elements{*this, *type.sequence->element};
                type.sequence->each(value, elements);
                out_ += ']';
                break;
            }
            case Kind::map: {
                out_ += '{';
                Entries entries{*this, *type.map};
                type.map->each(value, entries);
                out_ += '}';
                break;
            }
            case Kind::variant: variant(*type.variant, value); break;
            case Kind::object: object(*type.object, value); break;
        }
        if (out_.size() > options_.bytes_max) {
            fail("the text is longer than " + std::to_string(options_.bytes_max) + " bytes");
        }
    }

    template <class Number>
    void append_number(Number number) {
        char digits[32];
        out_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    }

    void floating(const Type& type, const void* value) {
        const auto append = [&](auto number) {
            if (!std::isfinite(number)) fail("NaN and infinity have no JSON form");
            append_number(number);
        };
        if (type.bytes == sizeof(float)) {
            append(*static_cast<const float*>(value));
        } else {
            append(*static_cast<const double*>(value));
        }
    }

    void quoted(std::string_view text) {
        if (const std::size_t invalid = append_quoted(out_, text); invalid != std::string_view::npos) {
            fail("a string that is not valid UTF-8 at its byte " + std::to_string(invalid));
        }
    }

    void time(Time time) {
        using namespace std::chrono;
        // Years beyond four digits could not be read back.
        if (time < sys_days{year{0} / 1 / 1} || time >= sys_days{year{10000} / 1 / 1}) {
            fail("a time outside the years 0000 to 9999");
        }
        out_ += '"';
        out_ += to_string(time);
        out_ += '"';
    }

    void raw(const std::string& text) {
        if (const std::string wrong = check(text, options_.depth_max - depth_); !wrong.empty()) {
            fail("a Raw that is no JSON value: " + wrong);
        }
        out_ += text;
    }

    std::string_view enumerator(const Type& type, const void* value) const {
        const Enumeration& enumeration = *type.enumeration;
        const auto number = enumeration.is_signed ? load_signed(value, type.bytes)
                                                  : static_cast<std::int64_t>(load_unsigned(value, type.bytes));
        for (const auto& candidate : enumeration.enumerators) {
            if (candidate.value == number) return candidate.name;
        }
        fail(std::to_string(number) + " is no named value of " + std::string{enumeration.name});
    }

    std::string scalar_key(const Type& type, const void* key) const {
        switch (type.kind) {
            case Kind::signed_integer: return std::to_string(load_signed(key, type.bytes));
            case Kind::unsigned_integer: return std::to_string(load_unsigned(key, type.bytes));
            default: return std::string{enumerator(type, key)};
        }
    }

    void variant(const Variant& variant, const void* value) {
        const std::size_t index = variant.index(value);
        if (index >= variant.alternatives.size()) fail("a variant that lost its value in an exception");
        const Alternative& alternative = variant.alternatives[index];
        Level level{*this};
        level.member = alternative.name;
        out_ += '{';
        quoted(alternative.name);
        out_ += ':';
        write(*alternative.type, alternative.get(value));
        out_ += '}';
    }

    void object(const Object& object, const void* value) {
        Level level{*this};
        bool first = true;
        out_ += '{';
        for (std::size_t i = 0; i < object.fields.size(); ++i) {
            const Field& field = object.fields[i];
            // Only the address is computed; nothing is changed.
            const void* at = object.address(const_cast<void*>(value), i);
            if (field.type->kind == Kind::optional && field.type->optional->get(at) == nullptr) continue;
            if (!first) out_ += ',';
            first = false;
            out_ += '"';
            out_ += field.name;
            out_ += "\":";
            level.member = field.name;
            write(*field.type, at);
        }
        out_ += '}';
    }

    const EncodeOptions& options_;
    std::string out_;
    const Level* level_ = nullptr;
    std::size_t depth_ = 0;
};

}  // namespace

std::string encode(const Type& type, const void* value, const EncodeOptions& options) {
    return Encoder{options}.encode(type, value);
}

}  // namespace varve::json::detail
