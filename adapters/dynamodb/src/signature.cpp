#include "signature.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace varve::dynamodb {
namespace {

constexpr std::string_view algorithm = "AWS4-HMAC-SHA256";

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text) {
    std::string result;
    std::ranges::transform(text, std::back_inserter(result), [](char c) { return lower(c); });
    return result;
}

std::string hex(std::string_view bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        text += digits[static_cast<unsigned char>(c) >> 4];
        text += digits[static_cast<unsigned char>(c) & 15];
    }
    return text;
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(message.data()),
         message.size(), digest.data(), &size);
    return {reinterpret_cast<const char*>(digest.data()), size};
}

enum class Slash { kept, encoded };

/// As RFC 3986 wants it: all but letters, digits and -._~ in upper case hexadecimal.
std::string percent_encoded(std::string_view text, Slash slash = Slash::encoded) {
    static constexpr char digits[] = "0123456789ABCDEF";
    std::string result;
    for (const char c : text) {
        const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && slash == Slash::kept);
        if (unreserved) {
            result += c;
            continue;
        }
        result += '%';
        result += digits[static_cast<unsigned char>(c) >> 4];
        result += digits[static_cast<unsigned char>(c) & 15];
    }
    return result;
}

std::string percent_decoded(std::string_view text) {
    const auto digit = [](char c) {
        c = lower(c);
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
            result += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
            i += 2;
        } else {
            result += text[i];
        }
    }
    return result;
}

/// Without empty segments, "." and "..", as RFC 3986 removes them.
std::string normalized(std::string_view path) {
    std::vector<std::string_view> segments;
    bool directory = true;
    while (!path.empty()) {
        const std::string_view segment = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(segment.size() + 1, path.size()));
        directory = segment.empty() || segment == "." || segment == "..";
        if (segment == "..") {
            if (!segments.empty()) segments.pop_back();
        } else if (!directory) {
            segments.push_back(segment);
            directory = path.data() != segment.data() + segment.size();
        }
    }
    std::string result = "/";
    for (const std::string_view segment : segments) {
        if (result.size() > 1) result += '/';
        result += segment;
    }
    if (directory && !segments.empty()) result += '/';
    return result;
}

std::string canonical_query(std::string_view query) {
    std::vector<std::pair<std::string, std::string>> parameters;
    while (!query.empty()) {
        const std::string_view parameter = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(parameter.size() + 1, query.size()));
        if (parameter.empty()) continue;
        const std::size_t equals = std::min(parameter.find('='), parameter.size());
        const std::string_view value = parameter.substr(std::min(equals + 1, parameter.size()));
        parameters.emplace_back(percent_encoded(percent_decoded(parameter.substr(0, equals))),
                                percent_encoded(percent_decoded(value)));
    }
    std::ranges::sort(parameters);
    std::string result;
    for (const auto& [name, value] : parameters) {
        if (!result.empty()) result += '&';
        result.append(name).append("=").append(value);
    }
    return result;
}

/// Without blanks at both ends, and with one where there are several.
std::string single_spaced(std::string_view value) {
    std::string result;
    for (const char c : value) {
        if (c != ' ' && c != '\t') {
            result += c;
        } else if (!result.empty() && result.back() != ' ') {
            result += ' ';
        }
    }
    if (result.ends_with(' ')) result.pop_back();
    return result;
}

/// Lower case names with their values, several of one name joined in their order.
std::map<std::string, std::string> canonical_headers(const Request& request) {
    std::map<std::string, std::string> headers;
    for (const Header& header : request.headers) {
        const auto [place, is_new] = headers.try_emplace(lower(header.name), single_spaced(header.value));
        if (!is_new) place->second += "," + single_spaced(header.value);
    }
    return headers;
}

std::string date(Time time) {
    return signature::timestamp(time).substr(0, 8);
}

std::string scope_text(const Scope& scope, Time time) {
    return date(time) + "/" + scope.region + "/" + scope.service + "/aws4_request";
}

void remove(Request& request, std::string_view name) {
    std::erase_if(request.headers, [name](const Header& header) { return lower(header.name) == name; });
}

std::string names_of(const std::map<std::string, std::string>& headers) {
    std::string names;
    for (const auto& [name, value] : headers) names += (names.empty() ? "" : ";") + name;
    return names;
}

struct Canonical {
    std::string text;
    std::string signed_headers;
};

Canonical canonical(const Request& request, std::string_view payload_hash) {
    std::string result = request.method + "\n";
    result += percent_encoded(normalized(request.path), Slash::kept);
    result += "\n" + canonical_query(request.query) + "\n";
    const auto headers = canonical_headers(request);
    for (const auto& [name, value] : headers) result.append(name).append(":").append(value).append("\n");
    std::string names = names_of(headers);
    result.append("\n").append(names).append("\n");
    result.append(payload_hash);
    return {std::move(result), std::move(names)};
}

void add_signature(Request& request, const Credentials& credentials, const Scope& scope, Time time,
                   std::string_view signing_key) {
    for (const std::string_view name : {"x-amz-date", "x-amz-security-token", "authorization"}) remove(request, name);
    request.headers.push_back({"x-amz-date", signature::timestamp(time)});
    if (!credentials.session_token.empty()) {
        request.headers.push_back({"x-amz-security-token", credentials.session_token});
    }
    const auto [text, signed_headers] = canonical(request, signature::sha256_hex(request.body));
    std::string value{algorithm};
    value += " Credential=" + credentials.access_key_id + "/" + scope_text(scope, time);
    value += ", SignedHeaders=" + signed_headers;
    value += ", Signature=" + signature::signature_of(signature::string_to_sign(text, scope, time), signing_key);
    request.headers.push_back({"authorization", std::move(value)});
}

}  // namespace

namespace signature {

std::string percent_encoded(std::string_view text) {
    return dynamodb::percent_encoded(text);
}

std::string sha256_hex(std::string_view bytes) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
    return hex({reinterpret_cast<const char*>(digest.data()), size});
}

std::string timestamp(Time time) {
    // varve::to_string gives 2015-08-30T12:36:00.000000Z.
    std::string text = to_string(time).substr(0, 19) + "Z";
    std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
    return text;
}

std::string canonical_request(const Request& request) {
    return canonical(request, sha256_hex(request.body)).text;
}

std::string string_to_sign(std::string_view canonical_request, const Scope& scope, Time time) {
    return std::string{algorithm} + "\n" + timestamp(time) + "\n" + scope_text(scope, time) + "\n" +
           sha256_hex(canonical_request);
}

std::string signing_key(std::string_view secret_access_key, const Scope& scope, Time time) {
    std::string key = hmac_sha256("AWS4" + std::string{secret_access_key}, date(time));
    key = hmac_sha256(key, scope.region);
    key = hmac_sha256(key, scope.service);
    return hmac_sha256(key, "aws4_request");
}

std::string signature_of(std::string_view string_to_sign, std::string_view signing_key) {
    return hex(hmac_sha256(signing_key, string_to_sign));
}

}  // namespace signature

void sign(Request& request, const Credentials& credentials, const Scope& scope, Time time) {
    add_signature(request, credentials, scope, time,
                  signature::signing_key(credentials.secret_access_key, scope, time));
}

Signer::Signer(Scope scope) : scope_(std::move(scope)) {}

void Signer::sign(Request& request, const Credentials& credentials, Time time) {
    add_signature(request, credentials, scope_, time, key_of(credentials, time));
}

std::string Signer::key_of(const Credentials& credentials, Time time) {
    std::string date = dynamodb::date(time);
    const MutexLock lock{mutex_};
    if (date != date_ || credentials.secret_access_key != secret_) {
        key_ = signature::signing_key(credentials.secret_access_key, scope_, time);
        secret_ = credentials.secret_access_key;
        date_ = std::move(date);
    }
    return key_;
}

}  // namespace varve::dynamodb
