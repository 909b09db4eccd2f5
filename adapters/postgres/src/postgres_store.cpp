#include "postgres_store.h"

#include "json_path.h"

#include <varve/store/adapter.h>
#include <varve/store/item_text.h>
#include <varve/store/page_token.h>

#include <algorithm>

namespace varve::postgres {
namespace {

constexpr std::size_t atomic_writes_max = 1000;
constexpr std::size_t schema_name_max = 40;

void check_schema_name(std::string_view name) {
    const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    if (name.empty() || name.size() > schema_name_max || !std::ranges::all_of(name, fits) ||
        (name.front() >= '0' && name.front() <= '9')) {
        throw ConfigError("schema of a postgres URL is 1 to 40 of a-z 0-9 _, and begins with no digit");
    }
}

Options checked(Options options) {
    check_schema_name(options.schema);
    constexpr std::chrono::hours day{24};
    if (options.lock_timeout.count() < 1 || options.lock_timeout > day)
        throw ConfigError("lock_timeout_ms of a postgres URL is a number from 1 to 86400000");
    if (options.timeout.count() < 1 || options.timeout > day)
        throw ConfigError("timeout_ms of a postgres URL is a number from 1 to 86400000");
    if (options.connections < 1 || options.connections > 1000)
        throw ConfigError("connections of a postgres URL is a number from 1 to 1000");
    return options;
}

std::string limit_of(std::size_t limit) {
    return std::to_string(std::min<std::size_t>(limit, INT64_MAX));
}

Parameters& add(Parameters& parameters, const store::SortKey& sort) {
    if (const auto* const number = std::get_if<std::int64_t>(&sort)) return parameters.add(*number);
    if (const auto* const text = std::get_if<std::string>(&sort)) return parameters.add(*text);
    return parameters;
}

/// A query as a statement.
struct AskedPage {
    std::string sql;
    Parameters parameters;
};

AskedPage asked(const Table& table, const store::Query& query) {
    store::SortKey from = query.first;
    store::SortKey to = query.last;
    const bool continues = query.next.has_value();
    if (continues) (query.descending ? to : from) = store::sort_of_query_token(table.schema(), *query.next);
    AskedPage page{.sql = table.range({.from = from.index() != 0,
                                       .from_exclusive = continues && !query.descending,
                                       .to = to.index() != 0,
                                       .to_exclusive = continues && query.descending,
                                       .descending = query.descending}),
                   .parameters = {}};
    page.parameters.add(query.partition).add(limit_of(query.limit));
    add(page.parameters, from);
    add(page.parameters, to);
    return page;
}

std::vector<store::Record> records(const Table& table, const Result& rows) {
    std::vector<store::Record> records;
    records.reserve(static_cast<std::size_t>(rows.rows()));
    for (int row = 0; row < rows.rows(); ++row) {
        store::Key key = table.key(rows, row);
        store::Item item = parse_stored(key, rows.text(row, 0));
        records.push_back({std::move(key), std::move(item)});
    }
    return records;
}

/// Whether a page ended before the limit because it was full, as the server counts.
bool is_full(const Result& rows) {
    std::size_t bytes = 0;
    for (int row = 0; row < rows.rows(); ++row) bytes += rows.text(row, 0).size();
    return bytes >= store::page_bytes;
}

store::Page page_of(const Table& table, const store::Query& query, const Result& rows) {
    store::Page page{.records = records(table, rows), .next = {}};
    if (page.records.size() == query.limit || is_full(rows))
        page.next = store::query_token(page.records.back().key.sort);
    return page;
}

/// What `read` asks of one table.
struct AskedTable {
    const Table* table;
    std::vector<std::size_t> places;  // among the keys
};

std::vector<AskedTable> by_table(std::span<const store::Key> keys, std::span<const Table* const> tables) {
    std::vector<AskedTable> all;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto found = std::ranges::find(all, tables[i], &AskedTable::table);
        (found != all.end() ? *found : all.emplace_back(AskedTable{tables[i], {}})).places.push_back(i);
    }
    return all;
}

Statement statement_of(const AskedTable& asked, std::span<const store::Key> keys) {
    const Table& table = *asked.table;
    if (asked.places.size() == 1) {
        const store::Key& key = keys[asked.places.front()];
        Statement one{table.select};
        add(one.parameters.add(key.partition), key.sort);
        return one;
    }
    Array partitions{Array::Type::text};
    Array numbers{Array::Type::bigint};
    Array words{Array::Type::text};
    for (const std::size_t place : asked.places) {
        partitions.add(keys[place].partition);
        if (const auto* const number = std::get_if<std::int64_t>(&keys[place].sort)) numbers.add(*number);
        if (const auto* const word = std::get_if<std::string>(&keys[place].sort)) words.add(*word);
    }
    Statement many{table.select_many};
    many.parameters.add(std::move(partitions));
    if (table.schema().sort == store::SortType::integer) many.parameters.add(std::move(numbers));
    if (table.schema().sort == store::SortType::text) many.parameters.add(std::move(words));
    return many;
}

void take(const AskedTable& asked, const Result& rows, std::span<const store::Key> keys,
          std::vector<std::optional<store::Item>>& items) {
    const bool is_single = asked.places.size() == 1;
    for (int row = 0; row < rows.rows(); ++row) {
        const std::size_t place = asked.places[is_single ? 0 : static_cast<std::size_t>(rows.integer(row, 0)) - 1];
        items[place] = parse_stored(keys[place], rows.text(row, is_single ? 0 : 1));
    }
}

}  // namespace

PostgresStore::PostgresStore(Options options)
    : options_(checked(std::move(options))),
      space_(quoted_name(options_.schema)),
      columns_("SELECT name, partition_attribute, sort_attribute, sort_type, expiry_attribute FROM " + space_ +
               ".varve_tables"),
      readers_(options_, options_.connections),
      announcer_(options_),
      writer_(options_, space_, announcer_) {
    const Pool::Lease first{readers_};  // whether it can be reached at all
}

const Table& PostgresStore::remember(Table table) {
    const ExclusiveLock lock{tables_mutex_};
    const std::string name = table.schema().name;
    return *tables_.try_emplace(name, std::make_unique<const Table>(std::move(table))).first->second;
}

const Table& PostgresStore::table(const std::string& name) {
    {
        const SharedLock lock{tables_mutex_};
        const auto found = tables_.find(name);
        if (found != tables_.end()) return *found->second;
    }
    std::optional<Table> stored;
    {
        Pool::Lease connection{readers_};
        stored = find_table(*connection, name);
        if (!stored) {
            throw InvalidError("there is no table '" + name + "' in schema " + options_.schema + " of " +
                               connection->where() + "; call ensure_table first");
        }
    }
    return remember(*std::move(stored));
}

bool PostgresStore::has_catalogue(Connection& connection) const {
    static const std::string is_there = "SELECT to_regclass($1) IS NOT NULL";
    return connection.read(is_there, Parameters{}.add(space_ + ".varve_tables")).text(0, 0) == "t";
}

std::optional<Table> PostgresStore::find_table(Connection& connection, const std::string& name) {
    if (!has_catalogue(connection)) return std::nullopt;
    const Result row = connection.read(columns_ + " WHERE name = $1", Parameters{}.add(name));
    if (row.rows() == 0) return std::nullopt;
    return described_table(row, 0);
}

Table PostgresStore::described_table(const Result& rows, int row) const {
    store::TableSchema schema{.name = std::string{rows.text(row, 0)},
                              .partition_attribute = std::string{rows.text(row, 1)},
                              .sort_attribute = std::string{rows.text(row, 2)},
                              .expiry_attribute = std::string{rows.text(row, 4)}};
    const auto* const type = std::ranges::find(sort_type_words, rows.text(row, 3));
    if (type == sort_type_words.end()) {
        throw CorruptionError("varve_tables of schema " + options_.schema + " has an unknown sort type for table '" +
                              schema.name + "': " + std::string{rows.text(row, 3)});
    }
    schema.sort = static_cast<store::SortType>(type - sort_type_words.begin());
    return Table{space_, std::move(schema)};
}

void PostgresStore::create(Connection& connection, const Table& table) {
    static const std::string has_schema = "SELECT to_regnamespace($1) IS NOT NULL";
    // Of processes that begin together one creates, and the others find it.
    static const std::string lock = "SELECT pg_advisory_xact_lock(hashtextextended('varve ' || $1, 0))";
    const std::string create_schema = "CREATE SCHEMA IF NOT EXISTS " + space_;
    const std::string catalogue = catalogue_creation(space_);
    const std::vector<std::string> creation = table.creation();
    const bool is_there = connection.read(has_schema, Parameters{}.add(space_)).text(0, 0) == "t";
    std::vector<Statement> statements;
    statements.push_back({lock, Parameters{}.add(options_.schema), true});
    if (!is_there) statements.push_back({create_schema, {}, true});
    statements.push_back({catalogue, {}, true});
    for (const std::string& one : creation) statements.push_back({one, {}, true});
    Outcome outcome = connection.run(statements);
    if (outcome.failure) raise(*outcome.failure);
}

void PostgresStore::compare(const store::TableSchema& stored, const store::TableSchema& schema) const {
    if (stored == schema) return;
    throw ConfigError("table '" + schema.name + "' in schema " + options_.schema + " of the PostgreSQL database is " +
                      to_string(stored) + ", not " + to_string(schema));
}

std::vector<std::string> PostgresStore::concerns() {
    static const std::string settings =
        "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')";
    Pool::Lease connection{readers_};
    const Result row = connection->read(settings, Parameters{});
    std::vector<std::string> found;
    if (row.text(0, 0) == "off")
        found.push_back("fsync=off: what is acknowledged is lost, and the data are damaged, when the machine dies");
    if (row.text(0, 1) == "off")
        found.push_back("synchronous_commit=off: what was acknowledged last is lost when the server dies");
    if (row.text(0, 2) == "off")
        found.push_back("full_page_writes=off: a page that was written in part when the machine died stays damaged");
    return found;
}

bool PostgresStore::has_table(const store::TableSchema& schema) {
    check(schema);
    {
        const SharedLock lock{tables_mutex_};
        const auto found = tables_.find(schema.name);
        if (found != tables_.end()) {
            compare(found->second->schema(), schema);
            return true;
        }
    }
    Pool::Lease connection{readers_};
    std::optional<Table> stored = find_table(*connection, schema.name);
    if (!stored) return false;
    compare(remember(*std::move(stored)).schema(), schema);
    return true;
}

void PostgresStore::ensure_table(const store::TableSchema& schema) {
    if (has_table(schema)) return;
    {
        Pool::Lease connection{readers_};
        if (options_.tables == Tables::expect) {
            throw ConfigError("there is no table '" + schema.name + "' in schema " + options_.schema + " of " +
                              connection->where() +
                              "; apply what postgres::ddl says, or leave tables=expect out of the URL");
        }
        create(*connection, Table{space_, schema});
    }
    if (!has_table(schema)) {
        throw ConfigError("table '" + schema.name + "' was created in schema " + options_.schema +
                          " of the PostgreSQL database, and is gone");
    }
}

std::vector<Result> PostgresStore::run(std::span<const Statement> statements) {
    // A server that was restarted has ended all sessions; more than one of them may not have shown it yet.
    for (int left = 3;; --left) {
        Pool::Lease connection{readers_};
        Outcome outcome = connection->run(statements);
        if (!outcome.failure) return std::move(outcome.results);
        if (left == 0 || !(outcome.is_lost || outcome.worth_repeating)) raise_certain(*std::move(outcome.failure));
    }
}

Result PostgresStore::run(const std::string& sql, Parameters parameters) {
    const Statement statement{sql, std::move(parameters)};
    return std::move(run({&statement, 1}).front());
}

std::vector<std::optional<store::Item>> PostgresStore::read(std::span<const store::Key> keys) {
    return read_together(keys, {}).items;
}

store::Page PostgresStore::query(const store::Query& query) {
    return std::move(read_together({}, {&query, 1}).pages.front());
}

store::FoundTogether PostgresStore::read_together(std::span<const store::Key> keys,
                                                  std::span<const store::Query> queries) {
    std::vector<const Table*> tables;
    for (const store::Key& key : keys) {
        tables.push_back(&table(key.table));
        check(tables.back()->schema(), key);
    }
    std::vector<const Table*> queried;
    std::vector<AskedPage> pages;
    for (const store::Query& query : queries) {
        queried.push_back(&table(query.table));
        check(queried.back()->schema(), query);
        pages.push_back(asked(*queried.back(), query));
    }
    store::FoundTogether found{.items = std::vector<std::optional<store::Item>>(keys.size()), .pages = {}};
    if (keys.empty() && queries.empty()) return found;
    const std::vector<AskedTable> reads = by_table(keys, tables);
    std::vector<Statement> statements;
    for (const AskedTable& one : reads) statements.push_back(statement_of(one, keys));
    for (AskedPage& one : pages) statements.push_back({one.sql, std::move(one.parameters)});
    const std::vector<Result> results = run(statements);
    for (std::size_t i = 0; i < reads.size(); ++i) take(reads[i], results[i], keys, found.items);
    for (std::size_t i = 0; i < queries.size(); ++i)
        found.pages.push_back(page_of(*queried[i], queries[i], results[reads.size() + i]));
    return found;
}

std::vector<PreparedWrite> PostgresStore::prepared(std::span<const store::Write> writes) {
    std::vector<PreparedWrite> prepared;
    prepared.reserve(writes.size());
    for (const store::Write& write : writes) {
        const Table& table = this->table(write.key.table);
        check(table.schema(), write, item_bytes_max);
        PreparedWrite one{.write = &write,
                          .table = &table,
                          .text = {},
                          .removed = {},
                          .condition = {},
                          .fits_absent = holds(write.condition, nullptr),
                          .is_new = false};
        if (const auto* const put = std::get_if<store::Put>(&write.action)) {
            one.text = item_text(put->item, store::BytesText::hex);
        } else if (const auto* const update = std::get_if<store::Update>(&write.action)) {
            one.text = item_text(update->set, store::BytesText::hex);
            for (const std::string& name : update->remove)
                one.removed += (one.removed.empty() ? "[" : ",") + json_string(name);
            if (!one.removed.empty()) one.removed += "]";
        }
        const bool always =
            write.condition.op == store::Condition::Operator::all_of && write.condition.operands.empty();
        if (!always) one.condition = json_path(write.condition);
        one.is_new = !always && one.fits_absent && std::holds_alternative<store::Put>(write.action);
        prepared.push_back(std::move(one));
    }
    return prepared;
}

std::vector<store::WriteAnswer> PostgresStore::write(std::span<const store::Write> writes) {
    check(writes, store::Batch::independent);
    return writer_.write(prepared(writes));
}

store::AtomicAnswer PostgresStore::write_atomically(std::span<const store::Write> writes) {
    check(writes, store::Batch::atomic);
    if (writes.size() > atomic_writes_max) {
        throw InvalidError("an atomic batch of " + std::to_string(writes.size()) + " writes; at most " +
                           std::to_string(atomic_writes_max) + " are allowed");
    }
    return writer_.write_atomically(prepared(writes));
}

std::shared_ptr<void> PostgresStore::watch(const std::string& table, std::function<void()> changed) {
    return announcer_.watch(table, std::move(changed));
}

store::Page PostgresStore::scan(const store::Scan& scan) {
    const Table& table = this->table(scan.table);
    check(table.schema(), scan);
    Parameters parameters;
    parameters.add(std::int64_t{scan.segments}).add(std::int64_t{scan.segment}).add(limit_of(scan.limit));
    if (scan.next) {
        const store::Key after = store::key_of_scan_token(table.schema(), *scan.next);
        add(parameters.add(after.partition), after.sort);
    }
    const Result rows = run(table.scan(scan.next.has_value()), std::move(parameters));
    store::Page page{.records = records(table, rows), .next = {}};
    if (page.records.size() == scan.limit || is_full(rows)) page.next = store::scan_token(page.records.back().key);
    return page;
}

std::vector<store::Change> PostgresStore::changes(const std::string& name, store::Position after, std::size_t limit) {
    const Table& table = this->table(name);
    std::vector<store::Change> changes;
    if (after >= static_cast<store::Position>(INT64_MAX)) return changes;
    const Result rows = run(table.changes, Parameters{}.add(static_cast<std::int64_t>(after)).add(limit_of(limit)));
    std::vector<store::Record> found = records(table, rows);
    for (std::size_t i = 0; i < found.size(); ++i) {
        changes.push_back({static_cast<store::Position>(rows.integer(static_cast<int>(i), 3)), std::move(found[i])});
    }
    return changes;
}

store::Position PostgresStore::last_change(const std::string& name) {
    const Table& table = this->table(name);
    const Result row = run(table.last_position);
    return row.rows() == 0 || row.is_null(0, 0) ? 0 : static_cast<store::Position>(row.integer(0, 0));
}

store::Capabilities PostgresStore::capabilities() const {
    return {.item_bytes_max = item_bytes_max, .atomic_writes_max = atomic_writes_max, .ordered_changes = true};
}

std::shared_ptr<store::ItemStore> open(const Options& options) {
    return std::make_shared<PostgresStore>(options);
}

std::string PostgresStore::ddl(std::string_view role) {
    Pool::Lease connection{readers_};
    if (!has_catalogue(*connection)) {
        throw InvalidError("schema " + options_.schema + " of " + connection->where() +
                           " has no tables yet; run the application on it once, then ask again");
    }
    std::string sql = "SET standard_conforming_strings = on;\nCREATE SCHEMA IF NOT EXISTS " + space_ + ";\n" +
                      catalogue_creation(space_) + ";\n";
    std::string names = space_ + ".varve_tables";
    const Result rows = connection->read(columns_ + " ORDER BY name");
    for (int row = 0; row < rows.rows(); ++row) {
        const Table table = described_table(rows, row);
        for (const std::string& statement : table.creation()) sql += statement + ";\n";
        names += ", " + table.sql_name();
    }
    if (role.empty()) return sql;
    return sql + "GRANT USAGE ON SCHEMA " + space_ + " TO " + quoted_name(role) +
           ";\nGRANT SELECT, INSERT, UPDATE, DELETE ON " + names + " TO " + quoted_name(role) + ";\n";
}

std::string ddl(store::ItemStore& store, std::string_view role) {
    auto* const postgres = dynamic_cast<PostgresStore*>(&store);
    if (postgres == nullptr) throw InvalidError("postgres::ddl is for a store in PostgreSQL; this is another one");
    return postgres->ddl(role);
}

}  // namespace varve::postgres
