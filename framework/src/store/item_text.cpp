#define RAPIDJSON_SSE2 1
#include <varve/core/error.h>
#include <varve/store/base64.h>
#include <varve/store/item_text.h>

#include <charconv>

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace varve::store {
namespace {

constexpr std::string_view base64_name = "$bytes";
constexpr std::string_view hex_name = "$hex";

std::string hex(const Bytes& bytes) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (const std::byte byte : bytes) {
        text += digits[std::to_integer<unsigned>(byte) >> 4];
        text += digits[std::to_integer<unsigned>(byte) & 15];
    }
    return text;
}

std::optional<Bytes> parse_hex(std::string_view text) {
    if (text.size() % 2 != 0) return std::nullopt;
    Bytes bytes(text.size() / 2);
    const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const int high = digit(text[2 * i]);
        const int low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        bytes[i] = static_cast<std::byte>(high * 16 + low);
    }
    return bytes;
}

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

void write_string(JsonWriter& writer, std::string_view text) {
    writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

/// Fills an item from the events of the reader; false stops the reader where the text leaves the grammar.
class Builder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Builder> {
  public:
    explicit Builder(Item& item) : item_(item) {}

    bool Default() { return false; }
    bool RawNumber(const char* digits, rapidjson::SizeType size, bool) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(digits, digits + size, value);
        return error == std::errc{} && end == digits + size && add(value);
    }
    bool String(const char* text, rapidjson::SizeType size, bool) {
        if (has_lone_surrogate({text, size})) return false;
        if (place_ == Place::value) return add(std::string(text, size));
        if (place_ != Place::bytes) return false;
        auto bytes = is_hex_ ? parse_hex({text, size}) : parse_base64({text, size});
        if (!bytes) return false;
        place_ = Place::bytes_end;
        return emplace(*std::move(bytes));
    }
    bool Key(const char* text, rapidjson::SizeType size, bool) {
        if (has_lone_surrogate({text, size})) return false;
        if (place_ == Place::name) {
            name_.assign(text, size);
            place_ = Place::value;
            return true;
        }
        const std::string_view name{text, size};
        is_hex_ = name == hex_name;
        if (place_ != Place::bytes_name || !(is_hex_ || name == base64_name)) return false;
        place_ = Place::bytes;
        return true;
    }
    bool StartObject() {
        if (place_ == Place::begin) {
            place_ = Place::name;
        } else if (place_ == Place::value) {
            place_ = Place::bytes_name;
        } else {
            return false;
        }
        return true;
    }
    bool EndObject(rapidjson::SizeType) {
        if (place_ == Place::name) {
            place_ = Place::end;
        } else if (place_ == Place::bytes_end) {
            place_ = Place::name;
        } else {
            return false;
        }
        return true;
    }

  private:
    /// The reader lets the escape of a low surrogate pass, as three bytes that no UTF-8 has.
    static bool has_lone_surrogate(std::string_view text) {
        for (std::size_t at = text.find('\xed'); at != std::string_view::npos; at = text.find('\xed', at + 1)) {
            if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xa0) return true;
        }
        return false;
    }

    enum class Place { begin, name, value, bytes_name, bytes, bytes_end, end };

    template <class T>
    bool add(T value) {
        if (place_ != Place::value) return false;
        place_ = Place::name;
        return emplace(std::move(value));
    }
    template <class T>
    bool emplace(T value) {
        const std::size_t size = item_.size();
        item_.emplace_hint(item_.end(), name_, std::move(value));
        return item_.size() != size;
    }

    Item& item_;
    Place place_ = Place::begin;
    bool is_hex_ = false;
    std::string name_;
};

}  // namespace

std::string item_text(const Item& item, BytesText bytes) {
    rapidjson::StringBuffer buffer;
    JsonWriter writer{buffer};
    writer.StartObject();
    for (const auto& [name, value] : item) {
        write_string(writer, name);
        if (const auto* text = std::get_if<std::string>(&value)) {
            write_string(writer, *text);
        } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
            writer.Int64(*number);
        } else {
            writer.StartObject();
            const Bytes& raw = std::get<Bytes>(value);
            write_string(writer, bytes == BytesText::hex ? hex_name : base64_name);
            write_string(writer, bytes == BytesText::hex ? hex(raw) : base64(raw));
            writer.EndObject();
        }
    }
    writer.EndObject();
    return {buffer.GetString(), buffer.GetSize()};
}

Item parse_item(std::string_view text) {
    // The reader unescapes in place, which spares a copy of every string; so it gets a copy of the whole. It looks at
    // 16 bytes at once, the last of them beyond the end.
    std::string copy;
    copy.reserve(text.size() + 16);
    copy = text;
    Item item;
    Builder builder{item};
    rapidjson::InsituStringStream stream{copy.data()};
    rapidjson::Reader reader;
    // Numbers as texts, because the reader's own arithmetic on exponents overflows.
    constexpr unsigned flags =
        rapidjson::kParseInsituFlag | rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag;
    const rapidjson::ParseResult result = reader.Parse<flags>(stream, builder);
    // The reader takes a NUL for the end.
    if (result && stream.Tell() != text.size()) {
        throw CorruptionError("the stored text of an item goes on after its end at byte " +
                              std::to_string(stream.Tell()));
    }
    if (!result) {
        const char* reason = result.Code() == rapidjson::kParseErrorTermination
                                 ? "It is JSON, but not of the form that an item is stored in."
                                 : rapidjson::GetParseError_En(result.Code());
        throw CorruptionError("the stored text of an item is damaged at byte " + std::to_string(result.Offset()) +
                              ": " + reason);
    }
    return item;
}

}  // namespace varve::store
