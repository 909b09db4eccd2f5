#include "sqlite_store.h"

#include "file_format.h"
#include "new_file.h"

#include <varve/core/fnv1a.h>
#include <varve/store/adapter.h>
#include <varve/store/item_text.h>
#include <varve/store/page_token.h>

#include <algorithm>
#include <filesystem>
#include <limits>

namespace varve::sqlite {
namespace {

constexpr std::size_t idle_readers_max = 16;
constexpr std::size_t atomic_writes_max = 2000;

/// Checks the file before anything opens it for good.
Options checked(Options options) {
    if (options.path.empty()) throw ConfigError("a sqlite URL names a file, as in sqlite:bank.db");
    if (options.path == ":memory:") {
        throw ConfigError("sqlite keeps its data in a file; for a store in memory use memory: instead");
    }
    // The process may change its directory before the next connection is opened.
    std::error_code error;
    const auto path = std::filesystem::weakly_canonical(std::filesystem::absolute(options.path), error);
    if (error) throw ConfigError("the path " + options.path + " of a SQLite file leads nowhere: " + error.message());
    options.path = path.string();
    prepare_file(options);
    return options;
}

/// SQLite reads a negative LIMIT as none.
std::int64_t sql_limit(std::size_t limit) {
    return static_cast<std::int64_t>(std::min<std::size_t>(limit, INT64_MAX));
}

std::string shape(const store::TableSchema& schema) {
    static constexpr const char* types[] = {"", "integer", "text"};
    std::string text = "(" + schema.partition_attribute;
    if (schema.sort != store::SortType::none) {
        text += ", " + schema.sort_attribute + " " + types[static_cast<std::size_t>(schema.sort)];
    }
    text += ")";
    if (!schema.expiry_attribute.empty()) text += " expiring by " + schema.expiry_attribute;
    return text;
}

}  // namespace

SqliteStore::Reader::Reader(SqliteStore& store) : store_(store) {
    {
        const MutexLock lock{store.readers_mutex_};
        if (!store.readers_.empty()) {
            connection_ = std::move(store.readers_.back());
            store.readers_.pop_back();
        }
    }
    if (connection_) return;
    store.writer_.check_files();  // it would open, or even make, others
    connection_ = std::make_unique<Connection>(store.options_, Connection::Mode::read);
}

SqliteStore::Reader::~Reader() {
    if (std::uncaught_exceptions() > exceptions_) return;
    const MutexLock lock{store_.readers_mutex_};
    if (store_.readers_.size() < idle_readers_max) store_.readers_.push_back(std::move(connection_));
}

SqliteStore::SqliteStore(Options options) : options_(checked(std::move(options))), writer_(options_) {
    readers_.reserve(idle_readers_max);
    flush_directory_of(options_.path);
}

SqliteStore::~SqliteStore() = default;

const Table& SqliteStore::remember(Table table) {
    const ExclusiveLock lock{tables_mutex_};
    const std::string name = table.schema().name;
    return *tables_.try_emplace(name, std::make_unique<const Table>(std::move(table))).first->second;
}

const Table* SqliteStore::find(const std::string& name) {
    {
        const SharedLock lock{tables_mutex_};
        const auto found = tables_.find(name);
        if (found != tables_.end()) return found->second.get();
    }
    std::optional<Table> stored;
    {
        Reader reader{*this};
        stored = find_table(*reader, name);
    }
    return stored ? &remember(std::move(*stored)) : nullptr;
}

const Table& SqliteStore::table(const std::string& name) {
    if (const Table* const found = find(name)) return *found;
    throw InvalidError("there is no table '" + name + "' in the SQLite file " + options_.path +
                       "; call ensure_table first");
}

void SqliteStore::compare(const store::TableSchema& stored, const store::TableSchema& schema) const {
    if (stored == schema) return;
    throw ConfigError("table '" + schema.name + "' in the SQLite file " + options_.path + " has the key " +
                      shape(stored) + ", not " + shape(schema));
}

bool SqliteStore::has_table(const store::TableSchema& schema) {
    check(schema);
    const Table* const stored = find(schema.name);
    if (stored == nullptr) return false;
    compare(stored->schema(), schema);
    return true;
}

std::vector<std::string> SqliteStore::concerns() {
    if (options_.synchronous == Synchronous::full) return {};
    return {
        "synchronous=normal: a power cut may take the last acknowledged writes of this program; others open the "
        "file with settings of their own"};
}

void SqliteStore::ensure_table(const store::TableSchema& schema) {
    if (has_table(schema)) return;
    if (options_.tables == Tables::expect) {
        throw ConfigError("there is no table '" + schema.name + "' in the SQLite file " + options_.path +
                          ", and tables=expect does not let varve create it");
    }
    writer_.check_files();
    Connection connection{options_, Connection::Mode::write};
    connection.begin();
    try {
        std::optional<Table> stored = find_table(connection, schema.name);
        if (!stored) stored = create_table(connection, schema);
        connection.commit();
        compare(remember(std::move(*stored)).schema(), schema);
    } catch (...) {
        connection.rollback();
        throw;
    }
}

std::vector<std::optional<store::Item>> SqliteStore::read(std::span<const store::Key> keys) {
    std::vector<const Table*> tables;
    tables.reserve(keys.size());
    for (const store::Key& key : keys) {
        tables.push_back(&table(key.table));
        check(tables.back()->schema(), key);
    }
    std::vector<std::optional<store::Item>> items(keys.size());
    if (keys.empty()) return items;
    Reader reader{*this};
    // One transaction takes and leaves the lock once, instead of once per key.
    static const std::string begin = "BEGIN";
    struct Transaction {
        Connection& connection;
        ~Transaction() { connection.rollback(); }
    } const transaction{*reader};
    if (keys.size() > 1) reader->execute(begin);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        Statement row = reader->prepare(tables[i]->select);
        row.bind(1, std::string_view{keys[i].partition}).bind(2, keys[i].sort);
        if (row.step()) items[i] = parse_stored(options_, keys[i], row.text(0));
    }
    return items;
}

std::vector<PreparedWrite> SqliteStore::prepared(std::span<const store::Write> writes) {
    std::vector<PreparedWrite> prepared;
    prepared.reserve(writes.size());
    for (const store::Write& write : writes) {
        const Table& table = this->table(write.key.table);
        check(table.schema(), write.key);
        PreparedWrite one{.write = &write, .table = &table, .text = {}, .applies_to_absent = false};
        const store::Item* item = nullptr;
        if (const auto* put = std::get_if<store::Put>(&write.action)) {
            item = &put->item;
        } else if (const auto* update = std::get_if<store::Update>(&write.action)) {
            item = &update->set;
            for (const std::string& name : update->remove) check(table.schema(), store::Item{{name, {}}});
        }
        if (item != nullptr) {
            check(table.schema(), *item);
            const std::size_t size = store::bytes(write.key, *item);
            if (size > item_bytes_max) throw InvalidError(store::too_large(write.key, size, item_bytes_max));
        }
        if (std::holds_alternative<store::Put>(write.action)) {
            one.text = store::item_text(*item);
            one.applies_to_absent = holds(write.condition, nullptr);
        }
        prepared.push_back(std::move(one));
    }
    return prepared;
}

std::vector<store::WriteAnswer> SqliteStore::write(std::span<const store::Write> writes) {
    check(writes, store::Batch::independent);
    return writer_.write(prepared(writes));
}

store::AtomicAnswer SqliteStore::write_atomically(std::span<const store::Write> writes) {
    check(writes, store::Batch::atomic);
    if (writes.size() > atomic_writes_max) {
        throw InvalidError("an atomic batch of " + std::to_string(writes.size()) + " writes; at most " +
                           std::to_string(atomic_writes_max) + " are allowed");
    }
    return writer_.write_atomically(prepared(writes));
}

store::Page SqliteStore::query(const store::Query& query) {
    const Table& table = this->table(query.table);
    check(table.schema(), query);
    store::SortKey from = query.first;
    store::SortKey to = query.last;
    const bool continues = query.next.has_value();
    if (continues) (query.descending ? to : from) = store::sort_of_query_token(table.schema(), *query.next);

    store::Page page;
    Reader reader{*this};
    Statement rows = reader->prepare(table.range({.from = from.index() != 0,
                                                  .from_exclusive = continues && !query.descending,
                                                  .to = to.index() != 0,
                                                  .to_exclusive = continues && query.descending,
                                                  .descending = query.descending}));
    rows.bind(1, std::string_view{query.partition}).bind(4, sql_limit(query.limit));
    if (from.index() != 0) rows.bind(2, from);
    if (to.index() != 0) rows.bind(3, to);
    std::size_t bytes = 0;
    while (bytes < store::page_bytes && rows.step()) {
        store::Key key = table.key(rows, 1);
        store::Item item = parse_stored(options_, key, rows.text(0));
        bytes += store::bytes(key, item);
        page.records.push_back({std::move(key), std::move(item)});
    }
    if (page.records.size() == query.limit || bytes >= store::page_bytes)
        page.next = store::query_token(page.records.back().key.sort);
    return page;
}

store::Page SqliteStore::scan(const store::Scan& scan) {
    const Table& table = this->table(scan.table);
    check(table.schema(), scan);
    std::optional<store::Key> after;
    if (scan.next) after = store::key_of_scan_token(table.schema(), *scan.next);

    store::Page page;
    Reader reader{*this};
    Statement rows = reader->prepare(table.scan(after.has_value()));
    if (after) rows.bind(1, std::string_view{after->partition}).bind(2, after->sort);
    std::size_t bytes = 0;
    while (rows.step()) {
        if (scan.segments > 1 && fnv1a(rows.text(1)) % scan.segments != scan.segment) continue;
        if (page.records.size() == scan.limit || bytes >= store::page_bytes) {
            page.next = store::scan_token(page.records.back().key);
            break;
        }
        store::Key key = table.key(rows, 1);
        store::Item item = parse_stored(options_, key, rows.text(0));
        bytes += store::bytes(key, item);
        page.records.push_back({std::move(key), std::move(item)});
    }
    return page;
}

std::vector<store::Change> SqliteStore::changes(const std::string& name, store::Position after, std::size_t limit) {
    const Table& table = this->table(name);
    std::vector<store::Change> changes;
    if (after >= static_cast<store::Position>(INT64_MAX)) return changes;
    Reader reader{*this};
    Statement rows = reader->prepare(table.changes);
    rows.bind(1, static_cast<std::int64_t>(after)).bind(2, sql_limit(limit));
    std::size_t bytes = 0;
    while (bytes < store::page_bytes && rows.step()) {
        store::Key key = table.key(rows, 2);
        store::Item item = parse_stored(options_, key, rows.text(1));
        bytes += store::bytes(key, item);
        changes.push_back({static_cast<store::Position>(rows.integer(0)), {std::move(key), std::move(item)}});
    }
    return changes;
}

store::Position SqliteStore::last_change(const std::string& name) {
    const Table& table = this->table(name);
    Reader reader{*this};
    Statement row = reader->prepare(table.last_position);
    return row.step() ? static_cast<store::Position>(row.integer(0)) : 0;
}

store::Capabilities SqliteStore::capabilities() const {
    return {.item_bytes_max = item_bytes_max, .atomic_writes_max = atomic_writes_max, .ordered_changes = true};
}

Metrics metrics(const store::ItemStore& store) {
    const auto* const known = dynamic_cast<const SqliteStore*>(&store);
    if (known == nullptr) throw InvalidError("the metrics of SQLite were asked of another kind of store");
    return known->metrics();
}

std::shared_ptr<store::ItemStore> open(const Options& options) {
    return std::make_shared<SqliteStore>(options);
}

}  // namespace varve::sqlite
