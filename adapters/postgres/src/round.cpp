#include "round.h"

#include <algorithm>
#include <string_view>

namespace varve::postgres {
namespace {

enum Action : std::int64_t { put = 1, update = 2, erase = 3, check = 4 };

std::int64_t action_of(const store::Write& write) {
    if (std::holds_alternative<store::Put>(write.action)) return put;
    if (std::holds_alternative<store::Update>(write.action)) return update;
    return std::holds_alternative<store::Erase>(write.action) ? erase : check;
}

/// `text` with every "{NAME}" replaced.
std::string filled(std::string_view text, std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
    std::string result;
    while (!text.empty()) {
        const auto value = std::ranges::find_if(values, [&](const auto& one) { return text.starts_with(one.first); });
        if (value != values.end()) {
            result += value->second;
            text.remove_prefix(value->first.size());
        } else {
            result += text.front();
            text.remove_prefix(1);
        }
    }
    return result;
}

// What is asked, a row for each write.
constexpr std::string_view asked_ctes = R"(WITH asked AS MATERIALIZED (
  SELECT n, request, place, partition, number, word, action, item::jsonb AS item, removed, condition, fits_absent
  FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bigint[], $5::text[], $6::smallint[], $7::text[],
              $8::text[], $9::text[], $10::boolean[]) WITH ORDINALITY AS
       a (request, place, partition, number, word, action, item, removed, condition, fits_absent, n)))";

// What is there. The lock keeps clients that do not lock the table from changing it meanwhile.
constexpr std::string_view found = R"(
found{i} AS MATERIALIZED (
  SELECT a.*, t.item AS was FROM asked a LEFT JOIN LATERAL (
    SELECT {item} AS item FROM {table} WHERE {key} FOR NO KEY UPDATE) t ON true WHERE a.place = {i}))";

// What becomes of it. The size counts as store::bytes does; a text so much shorter than the limit is not counted.
constexpr std::string_view judged = R"(
judged AS MATERIALIZED (
  SELECT *,
    CASE WHEN was IS NULL THEN fits_absent WHEN condition IS NULL THEN true
         ELSE coalesce(was @@ condition::jsonpath, false) END AS fits,
    CASE action WHEN 1 THEN item
                WHEN 2 THEN (coalesce(was, '{}'::jsonb) || item) -
                            ARRAY(SELECT jsonb_array_elements_text(removed::jsonb)) END AS becomes
  FROM found),
sized AS MATERIALIZED (
  SELECT *, action = 2 AND octet_length(becomes::text) > {counted} AND (
    SELECT coalesce(sum(octet_length(a.key) + CASE jsonb_typeof(a.value)
             WHEN 'number' THEN 21
             WHEN 'string' THEN octet_length(a.value #>> '{}')
             ELSE octet_length(a.value ->> '$hex') / 2 END), 0) + octet_length(partition) +
           CASE WHEN number IS NOT NULL THEN 21 ELSE coalesce(octet_length(word), 0) END
    FROM jsonb_each(becomes) a) > {limit} AS too_large
  FROM judged),
decided AS MATERIALIZED (
  SELECT *, bool_and(fits AND NOT too_large) OVER (PARTITION BY request) AS goes FROM sized))";

// Positions go on from the last that was given.
constexpr std::string_view written = R"(
last{i} AS MATERIALIZED (
  SELECT greatest(last_erased, (SELECT max({position}) FROM {table})) AS position FROM {space}.varve_tables
  WHERE {entry}),
written{i} AS MATERIALIZED (
  SELECT partition, number, word, was, becomes,
    (SELECT position FROM last{i}) + row_number() OVER (ORDER BY n) AS position
  FROM decided WHERE goes AND place = {i} AND action IN (1, 2)),
inserted{i} AS (
  INSERT INTO {table} ({columns}, {item}, {position})
  SELECT partition{sort}, becomes, position FROM written{i} WHERE was IS NULL),
updated{i} AS (
  UPDATE {table} t SET {item} = w.becomes, {position} = w.position FROM written{i} w
  WHERE w.was IS NOT NULL AND {key_of_w}),
erased{i} AS (
  DELETE FROM {table} t USING decided w
  WHERE w.goes AND w.place = {i} AND w.action = 3 AND w.was IS NOT NULL AND {key_of_w} RETURNING t.{position} AS position),
noted{i} AS (
  UPDATE {space}.varve_tables v SET last_erased = l.position FROM last{i} l
  WHERE v.{entry} AND EXISTS (SELECT FROM erased{i} e WHERE e.position = l.position)))";

constexpr std::string_view refused = R"(
SELECT n - 1, CASE WHEN NOT fits THEN 1 ELSE 2 END, was FROM decided WHERE NOT fits OR too_large ORDER BY n)";

}  // namespace

std::string round_sql(const std::string& space, std::span<const Table* const> tables) {
    const std::string limit = std::to_string(item_bytes_max);
    const std::string counted = std::to_string(item_bytes_max / 8);
    std::string sql{asked_ctes};
    std::string all_found;
    std::string all_written;
    for (std::size_t i = 0; i < tables.size(); ++i) {
        const Table& table = *tables[i];
        const std::string number = std::to_string(i + 1);
        const std::string sort = table.schema().sort == store::SortType::integer ? "number"
                                 : table.schema().sort == store::SortType::text  ? "word"
                                                                                 : "";
        const auto key = [&](const std::string& column, const std::string& value) {
            return column + table.partition() + " = " + value + "partition" +
                   (sort.empty() ? "" : " AND " + column + table.sort() + " = " + value + sort);
        };
        sql +=
            "," +
            filled(
                found,
                {{"{i}", number}, {"{item}", table.item()}, {"{table}", table.sql_name()}, {"{key}", key("", "a.")}});
        all_found += (i == 0 ? "" : " UNION ALL ") + ("SELECT * FROM found" + number);
        all_written +=
            "," + filled(written, {{"{i}", number},
                                   {"{space}", space},
                                   {"{table}", table.sql_name()},
                                   {"{entry}", table.entry()},
                                   {"{item}", table.item()},
                                   {"{position}", table.position()},
                                   {"{columns}", table.partition() + (sort.empty() ? "" : ", " + table.sort())},
                                   {"{sort}", sort.empty() ? "" : ", " + sort},
                                   {"{key_of_w}", key("t.", "w.")}});
    }
    sql += ",\nfound AS MATERIALIZED (" + all_found + "),";
    sql += filled(judged, {{"{counted}", counted}, {"{limit}", limit}});
    return sql + all_written + std::string{refused};
}

std::string lock_sql(const std::string& space, bool accept_asynchronous_commit) {
    // Under another isolation the statements after it would not see what was committed while it waited.
    const std::string settings =
        "current_setting('transaction_isolation') = 'read committed'" +
        std::string{accept_asynchronous_commit ? "" : " AND current_setting('synchronous_commit') <> 'off'"};
    // There is no such setting: to ask for it is an error, of SQLSTATE 42704. Names come in one order, so that of two
    // transactions none has what the other waits for.
    return "SELECT CASE WHEN " + settings +
           " THEN name ELSE current_setting('varve.settings_of_this_session') END FROM " + space +
           ".varve_tables WHERE name = ANY ($1::text[]) ORDER BY name FOR NO KEY UPDATE";
}

bool Round::has_room_for(std::span<const PreparedWrite> writes) const {
    return std::ranges::none_of(writes, [&](const PreparedWrite& one) { return keys_.contains(&one.write->key); });
}

void Round::add(std::span<const PreparedWrite> writes, bool atomic) {
    for (const PreparedWrite& one : writes) {
        keys_.insert(&one.write->key);
        writes_.push_back({&one, requests_});
        if (!atomic) ++requests_;
        const auto place = std::ranges::lower_bound(tables_, one.table->schema().name, {},
                                                    [](const Table* t) { return t->schema().name; });
        if (place == tables_.end() || *place != one.table) tables_.insert(place, one.table);
    }
    if (atomic) ++requests_;
}

Parameters Round::parameters() const {
    Array request{Array::Type::bigint};
    Array place{Array::Type::smallint};
    Array partition{Array::Type::text};
    Array number{Array::Type::bigint};
    Array word{Array::Type::text};
    Array action{Array::Type::smallint};
    Array item{Array::Type::text};
    Array removed{Array::Type::text};
    Array condition{Array::Type::text};
    Array fits_absent{Array::Type::boolean};
    const auto add_if_any = [](Array& array, const std::string& text) {
        text.empty() ? array.add_null() : array.add(text);
    };
    for (const One& one : writes_) {
        const PreparedWrite& write = *one.write;
        const store::Key& key = write.write->key;
        request.add(one.request);
        place.add(std::ranges::find(tables_, write.table) - tables_.begin() + 1);
        partition.add(key.partition);
        const auto* const integer = std::get_if<std::int64_t>(&key.sort);
        const auto* const text = std::get_if<std::string>(&key.sort);
        integer != nullptr ? number.add(*integer) : number.add_null();
        text != nullptr ? word.add(*text) : word.add_null();
        action.add(action_of(*write.write));
        add_if_any(item, write.text);
        add_if_any(removed, write.removed);
        add_if_any(condition, write.condition);
        fits_absent.add(static_cast<std::int64_t>(write.fits_absent));
    }
    Parameters parameters;
    for (Array* array :
         {&request, &place, &partition, &number, &word, &action, &item, &removed, &condition, &fits_absent})
        parameters.add(std::move(*array));
    return parameters;
}

bool Round::is_new() const {
    return tables_.size() == 1 && std::ranges::all_of(writes_, [](const One& one) { return one.write->is_new; });
}

Parameters Round::inserted() const {
    const store::SortType type = tables_.front()->schema().sort;
    Array partition{Array::Type::text};
    Array item{Array::Type::text};
    Array sort{type == store::SortType::integer ? Array::Type::bigint : Array::Type::text};
    for (const One& one : writes_) {
        const store::Key& key = one.write->write->key;
        partition.add(key.partition);
        item.add(one.write->text);
        if (const auto* const number = std::get_if<std::int64_t>(&key.sort)) sort.add(*number);
        if (const auto* const word = std::get_if<std::string>(&key.sort)) sort.add(*word);
    }
    Parameters parameters;
    parameters.add(std::move(partition)).add(std::move(item));
    if (type != store::SortType::none) parameters.add(std::move(sort));
    return parameters;
}

}  // namespace varve::postgres
