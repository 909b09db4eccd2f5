#include "core/json_numbers.h"
#include "core/json_text.h"
#include "core/utf8.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/core/suggest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

// RapidJSON's iterative parser reports the text token by token; the decoder keeps its own stack of open objects and
// arrays, so neither uses a call stack that grows with the depth of the input.

namespace varve::json::detail {
namespace {

std::string syntax_error(const rapidjson::ParseResult& result, std::string_view text) {
    const std::size_t at = result.Offset();
    const char* what = "not a JSON value";
    switch (result.Code()) {
        case rapidjson::kParseErrorDocumentEmpty: what = "no value"; break;
        case rapidjson::kParseErrorDocumentRootNotSingular: what = "more text after the value"; break;
        case rapidjson::kParseErrorObjectMissName: what = "expected a member's name or '}'"; break;
        case rapidjson::kParseErrorObjectMissColon: what = "expected ':' after a member's name"; break;
        case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket: what = "expected ',' or '}' after a member"; break;
        case rapidjson::kParseErrorArrayMissCommaOrSquareBracket: what = "expected ',' or ']' after an element"; break;
        case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex: what = "expected four hexadecimal digits"; break;
        case rapidjson::kParseErrorStringUnicodeSurrogateInvalid: what = "a lone surrogate in a string"; break;
        case rapidjson::kParseErrorStringEscapeInvalid:
            what = text[std::min(at, text.size() - 1)] == '\\' ? "an unknown escape in a string"
                                                               : "a control character in a string";
            break;
        case rapidjson::kParseErrorStringMissQuotationMark: what = "a string without its end"; break;
        case rapidjson::kParseErrorNumberTooBig: what = "a number beyond the range of a double"; break;
        case rapidjson::kParseErrorNumberMissFraction: what = "expected a digit after '.'"; break;
        case rapidjson::kParseErrorNumberMissExponent: what = "expected a digit in an exponent"; break;
        default: break;
    }
    return std::string{what} + (at >= text.size() ? " at the end of the text (byte " : " at byte ") +
           std::to_string(at) + (at >= text.size() ? ")" : "");
}

/// What is smaller than any double is none of these.
bool exceeds_double(std::string_view digits) {
    constexpr std::size_t short_enough = 300;
    const std::size_t e = std::min(digits.find_first_of("eE"), digits.size());
    if (e == digits.size() && digits.size() < short_enough) return false;
    double value = 0;
    const char* const end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, value).ec != std::errc::result_out_of_range) return false;
    // Too large or too small: the place of the first digit that is not zero tells.
    const std::size_t first = digits.find_first_of("123456789");
    const std::size_t point = std::min(digits.find('.'), e);
    const std::int64_t place =
        first < point ? static_cast<std::int64_t>(point - first) : -static_cast<std::int64_t>(first - point);
    if (e == digits.size()) return place > 0;
    std::string_view power = digits.substr(e + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    std::int64_t exponent = 0;
    const auto read = std::from_chars(power.data(), power.data() + power.size(), exponent);
    return read.ec == std::errc{} ? exponent > -place : !power.starts_with('-');
}

class Decoder {
  public:
    struct Options {
        std::size_t depth_max;
        bool require_all;
    };

    Decoder(std::string_view text, Options options)
        : text_(text), options_(options), stream_(text.data(), text.size()) {}

    /// Fills `value`, or nothing if `type` is null. Returns what is wrong, else an empty string.
    std::string run(const Type* type, void* value) {
        pending_ = {type, value};
        if (const std::size_t invalid = find_invalid_utf8(text_); invalid != std::string_view::npos) {
            return "$: invalid UTF-8 at byte " + std::to_string(invalid);
        }
        // Numbers as texts: they are read by the digits, and the parser's own arithmetic on exponents overflows.
        constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag;
        rapidjson::Reader reader;
        const rapidjson::ParseResult result = reader.Parse<flags>(stream_, *this);
        if (!error_.empty()) return error_;
        if (result.IsError()) return path() + ": " + syntax_error(result, text_);
        // The parser takes a zero byte for the end.
        if (stream_.Tell() != text_.size()) {
            return "$: more text after the value at byte " + std::to_string(stream_.Tell());
        }
        return {};
    }

    // What RapidJSON calls; false stops it.

    bool Null() {
        return scalar("null", [this](Slot slot) { return mismatch(slot, "null"); });
    }
    bool Bool(bool value) {
        return scalar("a boolean", [&](Slot slot) {
            if (slot.type->kind != Kind::boolean) return mismatch(slot, "a boolean");
            *static_cast<bool*>(slot.address) = value;
            return true;
        });
    }
    bool Int(int) { return false; }
    bool Uint(unsigned) { return false; }
    bool Int64(std::int64_t) { return false; }
    bool Uint64(std::uint64_t) { return false; }
    bool Double(double) { return false; }
    bool RawNumber(const char*, rapidjson::SizeType, bool) { return number(); }
    bool String(const char* data, rapidjson::SizeType size, bool) {
        const std::string_view value{data, size};
        if (!no_lone_surrogate(value)) return false;
        return scalar("a string", [&](Slot slot) { return string(slot, value); });
    }
    bool Key(const char* data, rapidjson::SizeType size, bool) {
        token_end_ = stream_.Tell();
        const std::string_view name{data, size};
        if (!no_lone_surrogate(name)) return false;
        return verbatim_depth_ > 0 || member(name);
    }
    bool StartObject() { return start(Bracket::object); }
    bool EndObject(rapidjson::SizeType) { return end(); }
    bool StartArray() { return start(Bracket::array); }
    bool EndArray(rapidjson::SizeType) { return end(); }

  private:
    /// Where the next value goes; no type: nowhere, it is skipped.
    struct Slot {
        const Type* type = nullptr;
        void* address = nullptr;
    };

    /// An open object or array that is being filled.
    struct Frame {
        const Type* type;
        void* address;
        std::string_view member{};  ///< of an object or a variant, from its table
        std::string key{};          ///< of a map
        std::size_t count = 0;   ///< elements of a sequence, members of a variant; the next likely field of an object
        std::uint64_t seen = 0;  ///< an object's fields
    };
    static_assert(varve::detail::fields_max <= 64);

    enum class Bracket { object, array };

    std::string path() const {
        std::string path = "$";
        for (const Frame& frame : frames_) {
            if (frame.type->kind == Kind::sequence) {
                if (frame.count > 0) append_index(path, frame.count - 1);
            } else if (frame.type->kind == Kind::map) {
                if (!frame.key.empty()) append_member(path, frame.key);
            } else if (!frame.member.empty()) {
                append_member(path, frame.member);
            }
        }
        return path;
    }

    bool fail(const std::string& what) {
        error_ = path() + ": " + what;
        return false;
    }

    static std::string expected(const Type& type) {
        switch (type.kind) {
            case Kind::boolean: return "a boolean";
            case Kind::signed_integer:
            case Kind::unsigned_integer: return "an integer";
            case Kind::floating: return "a number";
            case Kind::text: return "a string";
            case Kind::time: return "a time as a string";
            case Kind::enumeration: return "the name of a " + std::string{type.enumeration->name};
            case Kind::sequence: return "an array";
            case Kind::optional: return expected(*type.optional->value);
            case Kind::map:
            case Kind::variant:
            case Kind::object: return "an object";
            case Kind::raw: break;
        }
        return "a value";
    }

    bool mismatch(Slot slot, std::string_view found) {
        return fail("expected " + expected(*slot.type) + ", found " + std::string{found});
    }

    /// A low surrogate alone passes the parser, which writes it as three bytes that no valid UTF-8 contains.
    bool no_lone_surrogate(std::string_view value) {
        if (value.find('\xed') == std::string_view::npos || find_invalid_utf8(value) == std::string_view::npos) {
            return true;
        }
        return fail("a lone surrogate in a string that ends at byte " + std::to_string(stream_.Tell()));
    }

    /// The text from the token that was read last up to the one being read, delimiters aside, begins here.
    std::size_t token_begin() const { return std::min(text_.find_first_not_of(" \t\r\n,:", token_end_), text_.size()); }

    /// Takes the slot for the value that begins now. Its optionals are filled, or emptied by a null: then `done`.
    bool take_slot(Slot& slot, bool null, bool& done) {
        slot = pending_;
        if (!frames_.empty() && frames_.back().type->kind == Kind::sequence) {
            Frame& frame = frames_.back();
            const Sequence& sequence = *frame.type->sequence;
            if (frame.count == sequence.fixed_size) {
                frame.count = 0;
                return fail("expected an array of " + std::to_string(sequence.fixed_size) + ", found more elements");
            }
            slot = {sequence.element, sequence.append(frame.address, frame.count)};
            ++frame.count;
        }
        while (slot.type != nullptr && slot.type->kind == Kind::optional) {
            const Optional& optional = *slot.type->optional;
            if (null) {
                optional.reset(slot.address);
                done = true;
                return true;
            }
            slot = {optional.value, optional.emplace(slot.address)};
        }
        return true;
    }

    template <class Store>
    bool scalar(std::string_view token, Store store) {
        const std::size_t begin = token_begin();
        token_end_ = stream_.Tell();
        if (verbatim_depth_ > 0) return true;
        Slot slot;
        bool done = false;
        if (!take_slot(slot, token == "null", done)) return false;
        if (done || slot.type == nullptr) return true;
        if (slot.type->kind == Kind::raw) {
            static_cast<Raw*>(slot.address)->text = text_.substr(begin, token_end_ - begin);
            return true;
        }
        return store(slot);
    }

    bool number() {
        const std::size_t begin = token_begin();
        const std::string_view digits = text_.substr(begin, stream_.Tell() - begin);
        if (exceeds_double(digits)) {
            return fail("a number beyond the range of a double at byte " + std::to_string(begin));
        }
        return scalar("a number", [&](Slot slot) {
            switch (slot.type->kind) {
                case Kind::signed_integer:
                case Kind::unsigned_integer: return integer(slot, digits);
                case Kind::floating:
                    return slot.type->bytes == sizeof(float) ? floating(static_cast<float*>(slot.address), digits)
                                                             : floating(static_cast<double*>(slot.address), digits);
                default: return mismatch(slot, "a number");
            }
        });
    }

    bool integer(Slot slot, std::string_view digits) {
        const unsigned bits = slot.type->bytes * 8u;
        const bool is_signed = slot.type->kind == Kind::signed_integer;
        const char* const end = digits.data() + digits.size();
        const std::uint64_t unsigned_max = std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
        const auto signed_max = static_cast<std::int64_t>(unsigned_max >> 1);
        const auto signed_min = -signed_max - 1;

        bool fits = false;
        std::uint64_t value = 0;
        std::from_chars_result read{};
        if (is_signed) {
            std::int64_t number = 0;
            read = std::from_chars(digits.data(), end, number);
            fits = read.ec == std::errc{} && number >= signed_min && number <= signed_max;
            value = static_cast<std::uint64_t>(number);
        } else {
            // Minus zero is a zero; other negative numbers stop at their sign.
            read = std::from_chars(digits.data() + (digits == "-0" ? 1 : 0), end, value);
            fits = read.ec == std::errc{} && value <= unsigned_max;
        }
        const bool whole = digits.find_first_of(".eE") == std::string_view::npos;
        if (!whole) return mismatch(slot, excerpt(digits));
        if (!fits || read.ptr != end) {
            const std::string least = is_signed ? std::to_string(signed_min) : "0";
            const std::string most = is_signed ? std::to_string(signed_max) : std::to_string(unsigned_max);
            return fail(excerpt(digits) + " is not between " + least + " and " + most);
        }
        store(slot.address, value, slot.type->bytes);
        return true;
    }

    template <class Number>
    bool floating(Number* to, std::string_view digits) {
        const char* const end = digits.data() + digits.size();
        const auto read = std::from_chars(digits.data(), end, *to);
        if (read.ec != std::errc{} || read.ptr != end) {
            return fail(excerpt(digits) + " does not fit a floating-point number of " +
                        std::to_string(8 * sizeof(Number)) + " bits");
        }
        return true;
    }

    bool string(Slot slot, std::string_view value) {
        switch (slot.type->kind) {
            case Kind::text: static_cast<std::string*>(slot.address)->assign(value); return true;
            case Kind::enumeration: return enumerator(*slot.type, value, slot.address);
            case Kind::time:
                try {
                    *static_cast<Time*>(slot.address) = parse_time(value);
                    return true;
                } catch (const InvalidError&) {
                    return fail("'" + excerpt(value) + "' is no time; write 2026-01-31T12:00:00Z");
                }
            default: return mismatch(slot, "a string");
        }
    }

    bool enumerator(const Type& type, std::string_view name, void* to) {
        const Enumeration& enumeration = *type.enumeration;
        for (const auto& candidate : enumeration.enumerators) {
            if (candidate.name != name) continue;
            store(to, static_cast<std::uint64_t>(candidate.value), type.bytes);
            return true;
        }
        return unknown(enumeration.name, name, enumeration.enumerators);
    }

    template <class Named>
    bool unknown(std::string_view what, std::string_view name, std::span<const Named> known) {
        std::vector<std::string> names;
        for (const Named& candidate : known) names.emplace_back(candidate.name);
        const std::string found = excerpt(name);
        return fail("unknown " + std::string{what} + " '" + found + "'" + suggest(found, names));
    }

    /// Points `pending_` to where the member's value belongs.
    bool member(std::string_view name) {
        Frame& frame = frames_.back();
        switch (frame.type->kind) {
            case Kind::object: return field(frame, name);
            case Kind::variant: return alternative(frame, name);
            default: return entry(frame, name);
        }
    }

    bool field(Frame& frame, std::string_view name) {
        const auto fields = frame.type->object->fields;
        // Written by a codec, the members come in the order of the fields.
        for (std::size_t tried = 0; tried < fields.size(); ++tried) {
            const std::size_t i = (frame.count + tried) % fields.size();
            if (fields[i].name != name) continue;
            frame.member = fields[i].name;
            frame.count = i + 1;
            const std::uint64_t bit = std::uint64_t{1} << i;
            if ((frame.seen & bit) != 0) return fail("the member appears twice");
            frame.seen |= bit;
            pending_ = {fields[i].type, frame.type->object->address(frame.address, i)};
            return true;
        }
        frame.member = {};
        pending_ = {};
        return true;
    }

    bool alternative(Frame& frame, std::string_view name) {
        frame.member = {};
        if (++frame.count > 1) return fail("expected an object with one member, found more");
        for (const Alternative& candidate : frame.type->variant->alternatives) {
            if (candidate.name != name) continue;
            frame.member = candidate.name;
            pending_ = {candidate.type, candidate.emplace(frame.address)};
            return true;
        }
        return unknown("alternative", name, frame.type->variant->alternatives);
    }

    bool entry(Frame& frame, std::string_view name) {
        const Map& map = *frame.type->map;
        frame.key = name;
        void* value = nullptr;
        if (map.key->kind == Kind::text) {
            std::string key{name};
            value = map.insert(frame.address, &key);
        } else {
            alignas(std::uint64_t) std::array<std::byte, sizeof(std::uint64_t)> key{};
            if (map.key->kind == Kind::enumeration) {
                if (!enumerator(*map.key, name, key.data())) return false;
            } else {
                // As the codec writes it: no spaces, no plus sign, no zeros in front, so that each key has one form.
                const std::size_t sign = name.starts_with('-') ? 1 : 0;
                const bool plain = name.size() > sign && (name[sign] != '0' || name == "0");
                if (!plain || name.find_first_not_of("0123456789", sign) != std::string_view::npos) {
                    return fail("the key is no integer");
                }
                if (!integer({map.key, key.data()}, name)) return false;
            }
            value = map.insert(frame.address, key.data());
        }
        if (value == nullptr) return fail("the member appears twice");
        pending_ = {map.value, value};
        return true;
    }

    bool start(Bracket bracket) {
        const std::size_t begin = stream_.Tell();
        token_end_ = begin + 1;
        if (frames_.size() + verbatim_depth_ >= options_.depth_max) {
            return fail("nested deeper than " + std::to_string(options_.depth_max) + " levels at byte " +
                        std::to_string(begin));
        }
        if (verbatim_depth_ > 0) {
            ++verbatim_depth_;
            return true;
        }
        Slot slot;
        bool done = false;
        if (!take_slot(slot, false, done)) return false;
        if (slot.type == nullptr || slot.type->kind == Kind::raw) {
            verbatim_depth_ = 1;
            verbatim_begin_ = begin;
            verbatim_ = static_cast<Raw*>(slot.address);
            return true;
        }
        switch (slot.type->kind) {
            case Kind::sequence:
                if (bracket == Bracket::object) return mismatch(slot, "an object");
                slot.type->sequence->clear(slot.address);
                break;
            case Kind::map:
                if (bracket == Bracket::array) return mismatch(slot, "an array");
                slot.type->map->clear(slot.address);
                break;
            case Kind::variant:
            case Kind::object:
                if (bracket == Bracket::array) return mismatch(slot, "an array");
                break;
            default: return mismatch(slot, bracket == Bracket::array ? "an array" : "an object");
        }
        frames_.push_back({.type = slot.type, .address = slot.address});
        return true;
    }

    bool end() {
        token_end_ = stream_.Tell() + 1;
        if (verbatim_depth_ > 0) {
            if (--verbatim_depth_ == 0 && verbatim_ != nullptr) {
                verbatim_->text = text_.substr(verbatim_begin_, token_end_ - verbatim_begin_);
            }
            return true;
        }
        Frame& frame = frames_.back();
        frame.member = {};
        if (frame.type->kind == Kind::object && options_.require_all) {
            const auto fields = frame.type->object->fields;
            for (std::size_t i = 0; i < fields.size(); ++i) {
                if ((frame.seen >> i & 1) == 0 && fields[i].type->kind != Kind::optional) {
                    return fail("the member '" + std::string{fields[i].name} + "' is missing");
                }
            }
        }
        if (frame.type->kind == Kind::variant && frame.count == 0) {
            return fail("expected an object with one member, found none");
        }
        if (frame.type->kind == Kind::sequence) {
            const std::size_t fixed = frame.type->sequence->fixed_size;
            if (fixed != Sequence::growing && frame.count != fixed) {
                const std::string found = std::to_string(std::exchange(frame.count, 0));
                return fail("expected an array of " + std::to_string(fixed) + ", found " + found + " elements");
            }
        }
        frames_.pop_back();
        return true;
    }

    const std::string_view text_;
    const Options options_;
    rapidjson::MemoryStream stream_;
    std::size_t token_end_ = 0;  ///< where the last token ended
    std::vector<Frame> frames_;
    Slot pending_;                    ///< for the next value, unless a sequence is open
    std::size_t verbatim_depth_ = 0;  ///< objects and arrays open in a value that is skipped or kept as text
    std::size_t verbatim_begin_ = 0;
    Raw* verbatim_ = nullptr;  ///< receives that text, if anybody wants it
    std::string error_;
};

}  // namespace

std::string check(std::string_view text, std::size_t depth_max) {
    return Decoder{text, {.depth_max = depth_max, .require_all = false}}.run(nullptr, nullptr);
}

std::string decode(const Type& type, void* value, std::string_view text, const DecodeOptions& options) {
    // The parser counts in 32 bits.
    const std::size_t bytes_max = std::min<std::size_t>(options.bytes_max, std::numeric_limits<std::uint32_t>::max());
    if (text.size() > bytes_max) {
        return "$: the text has " + std::to_string(text.size()) + " bytes, more than the " + std::to_string(bytes_max) +
               " allowed";
    }
    return Decoder{text, {.depth_max = options.depth_max, .require_all = options.require_all}}.run(&type, value);
}

}  // namespace varve::json::detail
