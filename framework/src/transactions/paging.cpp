#include "transactions/paging.h"

#include <varve/core/error.h>
#include <varve/core/fnv1a.h>
#include <varve/store/base64.h>

#include <array>
#include <cstdio>

namespace varve::transactions {
namespace {

constexpr std::size_t hash_digits = 16;

std::string hash_of(std::string_view list) {
    std::array<char, hash_digits + 1> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(fnv1a(list)));
    return {text.data(), hash_digits};
}

}  // namespace

std::string token(std::string_view list, const std::optional<std::string>& at) {
    if (!at) return {};
    const std::string text = hash_of(list) + *at;
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return store::base64({bytes, bytes + text.size()});
}

std::optional<std::string> continued(std::string_view list, const PageOptions& page) {
    if (page.limit == 0)
        throw InvalidError("a page of " + std::string{list} + " was asked for with limit 0; ask for one or more");
    if (page.next.empty()) return std::nullopt;
    const std::optional<store::Bytes> bytes = store::parse_base64(page.next);
    const std::string text =
        bytes ? std::string{reinterpret_cast<const char*>(bytes->data()), bytes->size()} : std::string{};
    if (!text.starts_with(hash_of(list))) throw_foreign_token(list, page);
    return text.substr(hash_digits);
}

void throw_foreign_token(std::string_view list, const PageOptions& page) {
    throw InvalidError("the token '" + page.next + "' belongs to no page of " + std::string{list} +
                       "; give back `next` of the page before, with the same question");
}

}  // namespace varve::transactions
