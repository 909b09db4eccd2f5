#include "transactions/system_table.h"

#include <varve/core/error.h>

namespace varve::transactions {

const store::TableSchema& system_table() {
    static const store::TableSchema schema{.name = "varve", .partition_attribute = "name"};
    return schema;
}

store::Key rows_key(std::string_view table) {
    return {system_table().name, std::string{rows_prefix} + std::string{table}};
}

store::Key checkpoint_key(const char* of, const std::string& table) {
    return {system_table().name, of + ("/" + table)};
}

void check_format(store::ItemStore& store) {
    store.ensure_table(system_table());
    const store::Key key{system_table().name, "format"};
    std::optional<store::Item> item = store.read({&key, 1}).front();
    if (!item) {
        const store::Write write{key, store::Put{{{"varve_format", format_version}}}, !store::item_exists()};
        const store::WriteAnswer answer = store.write({&write, 1}).front();
        if (const auto* failure = std::get_if<Failure>(&answer))
            raise_certain(*failure);  // to begin again does no harm
        if (std::holds_alternative<store::Applied>(answer)) return;
        item = std::get<store::Refused>(answer).current;
    }
    if (item && item->contains(unfinished_attribute)) {
        throw ConfigError(
            "this store is being filled by an import or a copy that is not complete; go on with it, by the same "
            "command, "
            "or begin anew with an empty store");
    }
    const std::int64_t* version = item ? store::integer(*item, "varve_format") : nullptr;
    if (version != nullptr && *version == format_version) return;
    throw ConfigError("the store holds data in varve's format " +
                      (version ? std::to_string(*version) : "of unknown version") +
                      ", this program reads and writes format " + std::to_string(format_version) +
                      "; open it with the version of varve that wrote it");
}

}  // namespace varve::transactions
