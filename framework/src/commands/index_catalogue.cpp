#include "commands/index_catalogue.h"

#include "rows/index_entries.h"
#include "rows/stored_rows.h"
#include "transactions/attributes.h"
#include "transactions/read_patiently.h"
#include "transactions/system_table.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/core/retry.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace varve::detail {
namespace {

using States = IndexCatalogue::States;

constexpr const char* sorted_attribute = "sorted";

store::Key key_of(const RowTable& table) {
    return transactions::rows_key(table.type.name);
}

store::Item item_of(const RowTable& table, std::string indexes) {
    return {{"indexes", std::move(indexes)}, {sorted_attribute, std::int64_t{table.sorted}}};
}

std::optional<std::string> stored_text(const store::Key& key, const std::optional<store::Item>& item) {
    if (!item) return std::nullopt;
    const std::string* const found = store::text(*item, "indexes");
    if (found == nullptr) throw CorruptionError("the item " + store::to_string(key) + " has no text 'indexes'");
    return *found;
}

States decode(const store::Key& key, const std::optional<std::string>& text) {
    if (!text) return {};
    Result<States, json::DecodeError> states = json::decode<States>(*text);
    if (!states)
        throw CorruptionError("the item " + store::to_string(key) + " cannot be read: " + states.error().message);
    return std::move(states).value();
}

States declared(const RowTable& table, bool whole) {
    States states;
    for (const IndexedField& field : table.indexes.fields)
        states.emplace(field.name, IndexCatalogue::State{.form = form_of_index(field), .whole = whole, .build = {}});
    return states;
}

/// The index of the store that a writer of this struct would not keep.
const States::value_type* unkept(const RowTable& table, const States& states) {
    if (states.empty()) return nullptr;
    const States own = declared(table, true);
    const auto found = std::ranges::find_if(states, [&](const auto& state) {
        const auto same = own.find(state.first);
        return same == own.end() || same->second.form != state.second.form;
    });
    return found == states.end() ? nullptr : &*found;
}

bool is_whole(const RowTable& table, std::size_t index, const States& states) {
    const IndexedField& field = table.indexes.fields[index];
    const auto found = states.find(std::string{field.name});
    return found != states.end() && found->second.whole && found->second.form == form_of_index(field);
}

bool has_no_rows(store::ItemStore& store, const RowTable& table) {
    store::Scan scan{.table = std::string{table.type.name}, .limit = 1};
    do {
        store::Page page = store.scan(scan);
        if (!page.records.empty()) return false;
        scan.next = std::move(page.next);
    } while (scan.next);
    return true;
}

constexpr RetryPolicy changing{.attempts_max = 20, .time_max = std::chrono::seconds{15}};

}  // namespace

std::vector<store::TableSchema> tables_of_rows(store::ItemStore& store) {
    std::vector<store::TableSchema> tables;
    store::Scan scan{.table = transactions::system_table().name};
    do {
        store::Page page = store.scan(scan);
        for (const store::Record& record : page.records) {
            const std::string& name = record.key.partition;
            if (!name.starts_with(transactions::rows_prefix)) continue;
            const std::int64_t* const sorted =
                transactions::integer_of(record.key, record.item, sorted_attribute, {0, 1});
            if (sorted == nullptr) transactions::throw_damaged(record.key, "does not say whether its rows are sorted");
            tables.push_back(schema_of_rows(name.substr(transactions::rows_prefix.size()), *sorted == 1));
        }
        scan.next = std::move(page.next);
    } while (scan.next);
    return tables;
}

IndexCatalogue::Moment IndexCatalogue::moment() const {
    Clock& clock = coordinator_.runtime().clock;
    return {clock.steady_now(), clock.now()};
}

std::optional<store::Item> IndexCatalogue::item(const store::Key& key, SteadyTime until) const {
    return transactions::read_patiently(coordinator_, until,
                                        [&] {
                                            return coordinator_.store().read({&key, 1});
                                        })
        .front();
}

bool IndexCatalogue::know(const RowTable& table, const std::function<bool(const States&)>& is_fine) const {
    const Moment now = moment();
    const SharedLock lock{mutex_};
    const auto known = known_.find(table.type.name);
    if (known == known_.end()) return false;
    const Moment& since = known->second.since;
    return now.steady - since.steady < known_for_ && now.wall >= since.wall && now.wall - since.wall < known_for_ &&
           is_fine(known->second.states);
}

States IndexCatalogue::read(const RowTable& table, SteadyTime until) {
    const Moment since = moment();  // before it is read
    const store::Key key = key_of(table);
    States states = decode(key, stored_text(key, item(key, until)));
    learn(table, {states, since});
    return states;
}

void IndexCatalogue::learn(const RowTable& table, Known known) {
    const ExclusiveLock lock{mutex_};
    known_.insert_or_assign(std::string{table.type.name}, std::move(known));
}

bool IndexCatalogue::meet(const RowTable& table) {
    const Moment since = moment();
    const store::Key key = key_of(table);
    std::optional<store::Item> item = this->item(key, SteadyTime::max());
    if (!item) {
        store::ItemStore& store = coordinator_.store();
        // Who uses the table at all has made this item first: if it is not there, nobody writes rows without entries.
        const bool whole = !table.indexes.fields.empty() && has_no_rows(store, table);
        item = item_of(table, json::encode(whole ? declared(table, true) : States{}));
        const store::Write write{key, store::Put{*item}, !store::item_exists()};
        store::WriteAnswer answer = store.write({&write, 1}).front();
        if (const auto* failure = std::get_if<Failure>(&answer)) {
            if (failure->kind == ErrorKind::read_only) return false;
            raise_certain(*failure);  // the next one finds it
        }
        if (auto* refused = std::get_if<store::Refused>(&answer)) item = std::move(refused->current);
    }
    learn(table, {decode(key, stored_text(key, item)), since});
    return true;
}

void IndexCatalogue::check_writer(const RowTable& table, SteadyTime until) {
    if (know(table, [&](const States& states) { return unkept(table, states) == nullptr; })) return;
    const States states = read(table, until);
    const States::value_type* const found = unkept(table, states);
    if (found == nullptr) return;
    const auto& [field, state] = *found;
    const std::string name = std::string{table.type.name} + "." + field;
    const States own = declared(table, true);
    const auto same = own.find(field);
    const std::string is = state.form == IndexCatalogue::dropped ? "being dropped" : state.form;
    throw ConfigError(
        "the index " + name + " is " + is + " in the store, and " +
        (same == own.end()
             ? std::string{table.type.cpp_name} + " declares none on this field"
             : "this program's " + std::string{table.type.cpp_name} + " declares it " + same->second.form) +
        ": it would disagree with the rows that this program writes. Run the version of the program that fits, or call "
        "Application::build_indexes in this one, which makes the store's indexes those of this struct");
}

void IndexCatalogue::check_query(const RowTable& table, std::size_t index, SteadyTime until) {
    if (know(table, [&](const States& states) { return is_whole(table, index, states); })) return;
    const States states = read(table, until);
    if (is_whole(table, index, states)) return;
    throw ConfigError("the index " + name_of_index(table, index) + " (" + form_of_index(table.indexes.fields[index]) +
                      ") is not whole: rows that were written before it was declared may be missing in it. Call "
                      "Application::build_indexes once, when all programs that write these rows declare it");
}

States IndexCatalogue::change(const RowTable& table, const std::function<void(States&)>& change) {
    const store::Key key = key_of(table);
    store::ItemStore& store = coordinator_.store();
    for (Backoff backoff{changing, coordinator_.runtime()};;) {
        const std::optional<std::string> before = stored_text(key, item(key, SteadyTime::max()));
        States states = decode(key, before);
        change(states);
        const std::string after = json::encode(states);
        if (before == after) break;
        const store::Write write{key, store::Put{item_of(table, after)},
                                 before ? store::equals("indexes", *before) : !store::item_exists()};
        const store::WriteAnswer answer = store.write({&write, 1}).front();
        if (std::holds_alternative<store::Applied>(answer)) break;
        const auto* failure = std::get_if<Failure>(&answer);
        if (failure != nullptr && !worth_repeating(*failure)) raise(*failure);
        if (!backoff.next()) {
            throw UnavailableError("what indexes the rows of '" + std::string{table.type.name} +
                                   "' have could not be saved; try again");
        }
    }
    return read(table);
}

}  // namespace varve::detail
