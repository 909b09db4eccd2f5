#include "operations/check_run.h"
#include "rows/index_entries.h"
#include "rows/stored_rows.h"
#include "transactions/in_turn.h"
#include "transactions/row.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <algorithm>
#include <map>
#include <utility>

namespace varve::operations {

using namespace transactions;

namespace {

constexpr int tries_max = 5;  // until a row and its entries have held still
constexpr std::string_view unique_prefix = "unique ";

template <class T>
std::optional<std::string> ordered(const std::string& json) {
    const auto value = json::decode<T>(json);
    if (!value) return std::nullopt;
    return detail::ordered_value(json::detail::TypeOf<T>::value, &*value);
}

/// What a value is in an index of this form; empty: it is not known. Several, where the form does not tell.
std::vector<std::string> ordered(std::string_view form, const std::string& json) {
    std::vector<std::string> values;
    const auto add = [&](std::optional<std::string> value) {
        if (value && std::ranges::find(values, *value) == values.end()) values.push_back(*std::move(value));
    };
    if (form == "bool") {
        add(ordered<bool>(json));
    } else if (form == "floating") {
        add(ordered<double>(json));
        add(ordered<float>(json));
    } else if (form == "text" || form == "enum") {
        add(ordered<std::string>(json));
    } else if (form == "time") {
        add(ordered<Time>(json));
    } else if (form == "integer" || form.starts_with("duration")) {
        add(ordered<std::int64_t>(json));
        add(ordered<std::uint64_t>(json));
    }
    return values;
}

/// What a row's entry in an index may be: one of these. None: the row has no value.
struct Sought {
    std::string field;
    std::vector<store::Key> entries;
};

/// As this program would write them, if it knows the table and has the same index.
std::optional<Sought> sought_by_type(CheckRun& run, const detail::EntryOf& of, const std::string& form,
                                     const store::Key& row, const std::string& data) {
    const detail::RowTable* const type = run.parts.row_tables.known(of.table);
    if (type == nullptr) return std::nullopt;
    const auto fields = type->indexes.fields;
    const auto field = std::ranges::find(fields, of.field, &detail::IndexedField::name);
    if (field == fields.end() || detail::form_of_index(*field) != form) return std::nullopt;
    Sought sought{.field = std::string{of.field}, .entries = {}};
    const detail::Entries entries = detail::entries_of(*type, row, data);
    if (const auto& entry = entries[static_cast<std::size_t>(field - fields.begin())]) sought.entries.push_back(*entry);
    return sought;
}

/// By what the index says of itself; nullopt: a row without the field has its default, which only the type knows.
std::optional<Sought> sought_by_form(const detail::EntryOf& of, std::string_view form, const store::Key& row,
                                     const std::string& data) {
    const auto members = json::decode<std::map<std::string, json::Raw>>(data);
    if (!members) return std::nullopt;  // found where it is met
    const auto member = members->find(std::string{of.field});
    if (member == members->end()) return std::nullopt;
    Sought sought{.field = std::string{of.field}, .entries = {}};
    if (member->second.text == "null") return sought;
    if (of.unique) form.remove_prefix(unique_prefix.size());
    for (const std::string& value : ordered(form, member->second.text)) {
        store::Key entry = detail::entry_of_value(of, value, row);
        if (std::get<std::string>(entry.sort).size() <= detail::entry_bytes_max)
            sought.entries.push_back(std::move(entry));
    }
    if (sought.entries.empty()) return std::nullopt;  // of a form that is not known
    return sought;
}

/// The entry of a row in one of its table's indexes, if that is whole; nullopt: it is not known.
std::optional<Sought> sought_in(CheckRun& run, const detail::EntryOf& of, const detail::IndexCatalogue::State& state,
                                const store::Key& row, const std::string& data) try {
    if (!state.whole) return std::nullopt;
    std::optional<Sought> by_type = sought_by_type(run, of, state.form, row, data);
    return by_type ? by_type : sought_by_form(of, state.form, row, data);
} catch (const CorruptionError&) {  // found where it is met
    return std::nullopt;
} catch (const InvalidError&) {  // it can have no entry
    return std::nullopt;
}

/// The entries that a row must have.
std::vector<Sought> entries_sought(CheckRun& run, const std::string& table, const store::Key& row,
                                   const std::string& data) {
    std::vector<Sought> sought;
    const auto known = run.catalogue.find(table);
    if (known == run.catalogue.end()) return sought;
    for (const auto& [field, state] : known->second.indexes) {
        const detail::EntryOf of{.table = table, .field = field, .unique = state.form.starts_with(unique_prefix)};
        std::optional<Sought> one = sought_in(run, of, state, row, data);
        if (one && !one->entries.empty()) sought.push_back(*std::move(one));
    }
    return sought;
}

bool names(const store::Key& entry, const std::optional<std::string>& data, const store::Key& row) {
    return data && detail::decode_entry(entry, *data) == detail::row_key(row);
}

struct Wrong {
    store::Key item;
    std::string what;
    bool operator==(const Wrong&) const = default;
};

/// Of the row and its entries as they stood together.
std::vector<Wrong> wrong_entries(CheckRun& run, const store::Key& row, const std::vector<Sought>& sought,
                                 const std::map<store::Key, Image>& images) {
    std::vector<Wrong> wrong;
    for (const Sought& one : sought) {
        const auto of_row = [&](const store::Key& entry) { return names(entry, images.at(entry).data, row); };
        if (std::ranges::any_of(one.entries, of_row)) continue;
        const store::Key& entry = one.entries.front();
        const std::optional<std::string>& data = images.at(entry).data;
        if (!data) {
            wrong.push_back({entry, "the row " + store::to_string(row) + " has this value, and has no entry"});
            continue;
        }
        store::Key other = row;
        const RowKey key = detail::decode_entry(entry, *data);
        other.partition = key.partition;
        if (!key.sort.empty()) other.sort = key.sort;
        wrong.push_back({entry, "the row " + store::to_string(row) + " has this value, and the entry is that of " +
                                    store::to_string(other) +
                                    (run.may_be(other) && run.item(other) ? ", which is there as well" : "")});
    }
    return wrong;
}

std::map<store::Key, Image> by_key(const std::vector<store::Key>& keys, std::vector<Image> images) {
    std::map<store::Key, Image> all;
    for (std::size_t i = 0; i < keys.size(); ++i) all.insert_or_assign(keys[i], std::move(images[i]));
    return all;
}

/// What is wrong with a row's entries, if they hold still.
std::vector<Wrong> look_again(CheckRun& run, const std::string& table, const store::Key& row) {
    Image seen = run.image(row);
    for (int i = 0; i < tries_max && seen.data; ++i) {
        const std::vector<Sought> sought = entries_sought(run, table, row, *seen.data);
        std::vector<store::Key> keys{row};
        for (const Sought& one : sought) keys.insert(keys.end(), one.entries.begin(), one.entries.end());
        std::optional<std::vector<Image>> images = run.at_one_moment(keys);
        if (!images) return {};
        const Image now = images->front();
        if (now.data == seen.data) return wrong_entries(run, row, sought, by_key(keys, *std::move(images)));
        seen = now;
    }
    return {};
}

/// The index in whose partition an entry is, as the catalogue has it now.
const detail::IndexCatalogue::State* index_of(CheckRun& run, const std::string& table, const std::string& field) {
    const auto of_table = run.catalogue.find(table);
    if (of_table == run.catalogue.end()) return nullptr;
    const auto state = of_table->second.indexes.find(field);
    return state == of_table->second.indexes.end() ? nullptr : &state->second;
}

/// What `look` finds of a table's rows or entries, if its indexes were the same before and after it: others may begin
/// or drop one. Rows that are being erased, since others have replaced them, are not looked at.
template <class Look>
auto while_indexes_stay(CheckRun& run, const std::string& table, const Look& look) -> decltype(look()) {
    for (int i = 0; i < tries_max; ++i) {
        auto found = look();
        if (found == decltype(found){} || is_being_emptied(run, table)) return {};
        const CheckRun::RowsIn before = run.catalogue[table];
        run.learn(table);
        if (run.catalogue[table] == before && i > 0) return found;
    }
    return {};
}

struct EntryMet {
    store::Key entry;
    std::string table;
    std::string field;
    store::Key row = {};  ///< that it names
};

store::Key row_named_by(const EntryMet& one, const std::string& data) {
    RowKey key = detail::decode_entry(one.entry, data);
    store::Key row{one.table, std::move(key.partition)};
    if (!key.sort.empty()) row.sort = std::move(key.sort);
    return row;
}

/// Why an entry is not that of a row with this data; nullopt: it is, or that is not known.
std::optional<std::string> why_wrong(CheckRun& run, const EntryMet& one, const std::string& data) {
    const detail::IndexCatalogue::State* const index = index_of(run, one.table, one.field);
    if (index == nullptr) return std::nullopt;
    const detail::EntryOf of{.table = one.table, .field = one.field, .unique = index->form.starts_with(unique_prefix)};
    const std::optional<Sought> sought = sought_in(run, of, *index, one.row, data);
    if (!sought || std::ranges::find(sought->entries, one.entry) != sought->entries.end()) return std::nullopt;
    return "its row " + store::to_string(one.row) + (sought->entries.empty() ? " has no value" : " has another value");
}

/// The same of both as they stand together; nullopt, too, if they do not hold still.
std::optional<std::string> wrong_entry(CheckRun& run, const EntryMet& one) {
    const detail::IndexCatalogue::State* const index = index_of(run, one.table, one.field);
    if (index == nullptr || !index->whole) return std::nullopt;
    const store::Key keys[] = {one.entry, one.row};
    const std::optional<std::vector<Image>> images = run.at_one_moment(keys);
    if (!images || !images->front().data || row_named_by(one, *images->front().data) != one.row) return std::nullopt;
    const std::optional<std::string>& data = images->back().data;
    return data ? why_wrong(run, one, *data) : "its row " + store::to_string(one.row) + " is not there";
}

}  // namespace

void check_entries_of_rows(CheckRun& run, const std::string& table, const std::vector<store::Record>& page) {
    const auto known = run.catalogue.find(table);
    if (known == run.catalogue.end() || known->second.indexes.empty()) return;
    std::vector<store::Key> entries;
    std::vector<std::pair<const store::Record*, std::size_t>> of;  // whose, and where they begin
    std::vector<std::vector<Sought>> sought;
    for (const store::Record& record : page) {
        const std::string* const data = store::text(record.item, "data");
        if (data == nullptr) continue;
        of.emplace_back(&record, entries.size());
        sought.push_back(entries_sought(run, table, record.key, *data));
        for (const Sought& one : sought.back()) entries.insert(entries.end(), one.entries.begin(), one.entries.end());
    }
    const std::vector<std::optional<store::Item>> items = run.store.read(entries);
    const auto data_at = [&](std::size_t i) {
        const std::string* const data = items[i] ? store::text(*items[i], "data") : nullptr;
        return data ? std::optional{*data} : std::nullopt;
    };
    for (std::size_t i = 0; i < of.size(); ++i) {
        auto [record, at] = of[i];
        bool looks_good = true;
        readable(run, record->key, [&, record = record, at = at]() mutable {
            for (const Sought& one : sought[i]) {
                bool is_there = false;
                for (const store::Key& entry : one.entries)
                    is_there = names(entry, data_at(at++), record->key) || is_there;
                looks_good = looks_good && is_there;
            }
            if (looks_good) return;
            const auto look = [&] { return look_again(run, table, record->key); };
            for (Wrong& wrong : while_indexes_stay(run, table, look))
                run.find("index", wrong.item, std::move(wrong.what));
        });
    }
}

void check_rows_of_entries(CheckRun& run, const std::vector<store::Record>& page) {
    std::vector<EntryMet> met;
    for (const store::Record& record : page) {
        const std::string* const data = store::text(record.item, "data");
        if (data == nullptr) continue;
        const std::size_t slash = record.key.partition.rfind('/');
        EntryMet one{.entry = record.key,
                     .table = record.key.partition.substr(0, slash),
                     .field = slash == std::string::npos ? "" : record.key.partition.substr(slash + 1)};
        readable(run, record.key, [&] {
            if (index_of(run, one.table, one.field) == nullptr) run.learn(one.table);
            const detail::IndexCatalogue::State* const index = index_of(run, one.table, one.field);
            if (index == nullptr) {
                if (run.image(one.entry).data)
                    run.find("index", one.entry, "it is an entry of an index that there is not");
                return;
            }
            if (!index->whole) return;
            one.row = row_named_by(one, *data);
            met.push_back(std::move(one));
        });
    }
    std::erase_if(met, [&](const EntryMet& one) {
        const bool is_none = !run.may_be(one.row);
        if (is_none) run.find("index", one.entry, "it names no row");
        return is_none;
    });
    std::vector<store::Key> rows;
    for (const EntryMet& one : met) rows.push_back(one.row);
    transactions::read_in_turn(run.store, rows, [&](std::size_t i, const std::optional<store::Item>& item) {
        const EntryMet& one = met[i];
        const std::string* const data = item ? store::text(*item, "data") : nullptr;
        if (data != nullptr && !why_wrong(run, one, *data)) return;
        readable(run, one.entry, [&] {
            std::optional<std::string> why = while_indexes_stay(run, one.table, [&] { return wrong_entry(run, one); });
            if (why) run.find("index", one.entry, *std::move(why));
        });
    });
}

}  // namespace varve::operations
