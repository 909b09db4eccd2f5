#include "transactions/handle.h"

#include "transactions/slot.h"

#include <varve/core/error.h>

#include <charconv>
#include <optional>

namespace varve::transactions {
namespace {

/// What stands before the first `end`, which is taken off `text` with it; nullopt if there is no `end`.
std::optional<std::string_view> take_until(char end, std::string_view& text) {
    const std::size_t length = text.find(end);
    if (length == std::string_view::npos) return std::nullopt;
    const std::string_view taken = text.substr(0, length);
    text.remove_prefix(length + 1);
    return taken;
}

std::optional<std::int64_t> number(std::optional<std::string_view> text) {
    std::int64_t value = 0;
    if (!text || text->empty()) return std::nullopt;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    const bool whole = error == std::errc{} && end == text->data() + text->size();
    return whole ? std::optional{value} : std::nullopt;
}

}  // namespace

TransactionHandle handle_of(const Claim& claim) {
    return TransactionHandle{claim.tx + "@" + std::to_string(claim.primary_epoch) + "/" +
                             std::to_string(version_of(claim.primary)) + "/" + claim.primary.partition};
}

Claim claim_of(const TransactionHandle& handle) {
    std::string_view stream = handle.text();
    const std::optional<std::string_view> tx = take_until('@', stream);
    const std::optional<Epoch> epoch = number(take_until('/', stream));
    const std::optional<Version> version = number(take_until('/', stream));
    if (!tx || tx->empty() || !epoch || *epoch < 0 || !version || *version < 1 || stream.empty()) {
        throw InvalidError("'" + handle.text() + "' is no transaction's handle; take it from InDoubtError::handle()");
    }
    return {.tx = std::string{*tx},
            .primary = slot_key(std::string{stream}, *version),
            .primary_epoch = *epoch,
            .lease = {},
            .priority = {}};
}

}  // namespace varve::transactions
