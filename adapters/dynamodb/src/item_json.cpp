#include "item_json.h"

#include <varve/core/error.h>
#include <varve/store/base64.h>
#include <varve/store/item_store.h>

#include <algorithm>
#include <charconv>

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

namespace varve::dynamodb {
namespace {

std::string_view text_of(const rapidjson::Value& value) {
    return {value.GetString(), value.GetStringLength()};
}

[[noreturn]] void throw_damaged(const Table& table, std::string_view attribute) {
    throw CorruptionError("an item of table '" + table.name + "' has an attribute '" + std::string{attribute} +
                          "' that is not in DynamoDB's form");
}

/// nullopt for a type or a number that the port does not know.
std::optional<store::Value> parse_value(const rapidjson::Value& value, const Table& table, std::string_view attribute) {
    if (!value.IsObject() || value.MemberCount() != 1) throw_damaged(table, attribute);
    const auto member = value.MemberBegin();
    const std::string_view type = text_of(member->name);
    if (type != "S" && type != "N" && type != "B") return std::nullopt;
    if (!member->value.IsString()) throw_damaged(table, attribute);
    const std::string_view text = text_of(member->value);
    if (type == "S") return std::string{text};
    if (type == "N") return exact_integer(text);
    auto bytes = store::parse_base64(text);
    if (!bytes) throw_damaged(table, attribute);
    return *std::move(bytes);
}

/// Builds a document out of what the parser finds, but for what DynamoDB never sends.
class StrictHandler {
  public:
    explicit StrictHandler(rapidjson::Document& into) : into_(into) {}

    bool Null() { return into_.Null(); }
    bool Bool(bool value) { return into_.Bool(value); }
    bool Int(int) { return number(); }
    bool Uint(unsigned) { return number(); }
    bool Int64(std::int64_t) { return number(); }
    bool Uint64(std::uint64_t) { return number(); }
    bool Double(double) { return number(); }
    bool RawNumber(const char*, rapidjson::SizeType, bool) { return number(); }
    bool String(const char* data, rapidjson::SizeType size, bool copy) {
        return no_lone_surrogate({data, size}) && into_.String(data, size, copy);
    }
    bool StartObject() { return into_.StartObject(); }
    bool Key(const char* data, rapidjson::SizeType size, bool copy) {
        return no_lone_surrogate({data, size}) && into_.Key(data, size, copy);
    }
    bool EndObject(rapidjson::SizeType count) { return into_.EndObject(count); }
    bool StartArray() { return into_.StartArray(); }
    bool EndArray(rapidjson::SizeType count) { return into_.EndArray(count); }

  private:
    bool number() { return into_.Bool(false); }
    /// The parser lets the escape of a low surrogate pass, as three bytes that no UTF-8 has.
    static bool no_lone_surrogate(std::string_view text) {
        for (std::size_t at = text.find('\xed'); at != std::string_view::npos; at = text.find('\xed', at + 1)) {
            if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xa0) return false;
        }
        return true;
    }

    rapidjson::Document& into_;
};

std::optional<store::Value> parse_key_attribute(const rapidjson::Value& object, const Table& table,
                                                const std::string& attribute) {
    const auto member = object.FindMember(attribute.c_str());
    if (member == object.MemberEnd()) return std::nullopt;
    return parse_value(member->value, table, attribute);
}

}  // namespace

void write_string(Writer& writer, std::string_view text) {
    writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void write_value(Writer& writer, const store::Value& value) {
    writer.StartObject();
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
        writer.Key("N");
        write_string(writer, std::to_string(*number));
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        writer.Key("S");
        write_string(writer, *text);
    } else {
        writer.Key("B");
        write_string(writer, store::base64(std::get<store::Bytes>(value)));
    }
    writer.EndObject();
}

void write_key_members(Writer& writer, const Table& table, const store::Key& key) {
    write_string(writer, table.schema.partition_attribute);
    write_value(writer, key.partition);
    if (table.schema.sort == store::SortType::none) return;
    write_string(writer, table.schema.sort_attribute);
    if (const auto* number = std::get_if<std::int64_t>(&key.sort)) {
        write_value(writer, *number);
    } else {
        write_value(writer, std::get<std::string>(key.sort));
    }
}

void write_key(Writer& writer, const Table& table, const store::Key& key) {
    writer.StartObject();
    write_key_members(writer, table, key);
    writer.EndObject();
}

void write_item(Writer& writer, const Table& table, const store::Key& key, const store::Item& item) {
    writer.StartObject();
    write_key_members(writer, table, key);
    for (const auto& [name, value] : item) {
        write_string(writer, name);
        write_value(writer, value);
    }
    writer.EndObject();
}

rapidjson::Document parse_object(std::string_view text, std::string_view what) {
    // Iterative, because a hostile answer could nest deeper than the stack; numbers as texts, because nobody reads them
    // and the parser's arithmetic on exponents overflows.
    constexpr unsigned flags =
        rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag;
    rapidjson::MemoryStream bytes{text.data(), text.size()};
    rapidjson::Document document;
    rapidjson::ParseResult result;
    const auto parse = [&](rapidjson::Document& into) {
        StrictHandler handler{into};
        rapidjson::Reader reader;
        result = reader.Parse<flags>(bytes, handler);
        return !result.IsError();
    };
    document.Populate(parse);
    const auto fail = [what](const std::string& why) { throw CorruptionError(std::string{what} + " is " + why); };
    if (result.Code() == rapidjson::kParseErrorTermination) fail("JSON with a surrogate that is alone");
    if (result.IsError()) {
        fail(std::string{"no JSON: "} + rapidjson::GetParseError_En(result.Code()) + " At byte " +
             std::to_string(result.Offset()));
    }
    // The parser takes a NUL for the end.
    if (bytes.Tell() != text.size()) fail("no JSON: there is more after it, at byte " + std::to_string(bytes.Tell()));
    if (!document.IsObject()) fail("no JSON object");
    return document;
}

store::Item parse_item(const rapidjson::Value& object, const Table& table) {
    if (!object.IsObject()) throw CorruptionError("an item of table '" + table.name + "' is not a JSON object");
    store::Item item;
    for (const auto& member : object.GetObject()) {
        const std::string_view name = text_of(member.name);
        if (name == table.schema.partition_attribute || name == table.schema.sort_attribute) continue;
        if (auto value = parse_value(member.value, table, name)) item.emplace(name, *std::move(value));
    }
    return item;
}

store::Key parse_key(const rapidjson::Value& object, const Table& table) {
    const store::TableSchema& schema = table.schema;
    if (!object.IsObject()) throw CorruptionError("a key of table '" + table.name + "' is not a JSON object");
    store::Key key{.table = schema.name, .partition = {}};
    auto partition = parse_key_attribute(object, table, schema.partition_attribute);
    if (!partition || !std::holds_alternative<std::string>(*partition))
        throw_damaged(table, schema.partition_attribute);
    key.partition = std::get<std::string>(*std::move(partition));
    if (schema.sort == store::SortType::none) return key;
    auto sort = parse_key_attribute(object, table, schema.sort_attribute);
    if (sort && schema.sort == store::SortType::integer && std::holds_alternative<std::int64_t>(*sort)) {
        key.sort = std::get<std::int64_t>(*sort);
    } else if (sort && schema.sort == store::SortType::text && std::holds_alternative<std::string>(*sort)) {
        key.sort = std::get<std::string>(*std::move(sort));
    } else {
        throw CorruptionError("table '" + table.name + "' has an item under '" + key.partition + "' whose '" +
                              schema.sort_attribute + "' is no key of varve's: another program wrote it; remove it");
    }
    return key;
}

std::optional<std::int64_t> exact_integer(std::string_view number) {
    const bool negative = number.starts_with('-');
    if (negative || number.starts_with('+')) number.remove_prefix(1);
    const std::size_t e = std::min(number.find_first_of("eE"), number.size());
    std::string_view mantissa = number.substr(0, e);
    int exponent = 0;
    if (e < number.size()) {
        std::string_view digits = number.substr(e + 1);
        if (digits.starts_with('+')) digits.remove_prefix(1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
        if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
        // Beyond what DynamoDB has, and what the sums below can hold.
        constexpr int exponent_max = 1'000;
        if (exponent > exponent_max || exponent < -exponent_max) return std::nullopt;
    }
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    std::string digits{mantissa.substr(0, point)};
    if (point < mantissa.size()) {
        const std::string_view fraction = mantissa.substr(point + 1);
        digits += fraction;
        exponent -= static_cast<int>(fraction.size());
    }
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.empty()) return 0;
    while (exponent < 0 && digits.ends_with('0')) {
        digits.pop_back();
        ++exponent;
    }
    constexpr int digits_max = 19;
    if (exponent < 0 || exponent > digits_max) return std::nullopt;
    digits.append(static_cast<std::size_t>(exponent), '0');
    if (negative) digits.insert(0, "-");
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

}  // namespace varve::dynamodb
