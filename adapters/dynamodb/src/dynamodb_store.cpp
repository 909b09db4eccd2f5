#include "dynamodb_store.h"

#include "alternator.h"
#include "endpoint.h"

#include <varve/store/adapter.h>
#include <varve/store/page_token.h>

#include <algorithm>
#include <set>

namespace varve::dynamodb {
namespace {

/// DynamoDB's own limit. It counts the names of the key's attributes, too, which the port does not.
constexpr std::size_t server_item_bytes_max = 400 * 1024;
constexpr std::size_t item_bytes_max = server_item_bytes_max - 4;
constexpr std::size_t batch_keys_max = 100;
constexpr std::uint32_t segments_max = 1'000'000;

std::size_t item_bytes_max_of(const Table& table) {
    const store::TableSchema& schema = table.schema;
    return std::min(item_bytes_max,
                    server_item_bytes_max - schema.partition_attribute.size() - schema.sort_attribute.size());
}

/// The answer to what must have been done; throws what it failed with.
rapidjson::Document answer_of(Reply reply) {
    if (auto* done = std::get_if<Done>(&reply)) return std::move(done->answer);
    if (auto* failed = std::get_if<Failed>(&reply)) raise(failed->failure);
    throw CorruptionError("the server refuses, by " + std::get<Declined>(reply).name + ", what has no condition");
}

/// The one thing that the server finds invalid and the port does not: what an update makes of an item that is there.
bool is_too_large(std::string_view message) {
    return message.find("Item size") != std::string_view::npos;
}
std::string grown_too_large(const store::Key& key) {
    return "the update would let the item " + to_string(key) + " grow beyond the limit of " +
           std::to_string(server_item_bytes_max) +
           " bytes, names and what other programs have added included; keep less in one item";
}

Failure failure_of(const store::Write& write, Failed failed) {
    if (failed.name == "ValidationException" && is_too_large(failed.failure.message)) {
        failed.failure.message = grown_too_large(write.key);
    }
    return std::move(failed.failure);
}

Table server_table(const Options& options, const store::TableSchema& schema) {
    return {.name = options.prefix + "." + schema.name, .schema = schema};
}

}  // namespace

std::shared_ptr<store::ItemStore> open(const Options& options) {
    return std::make_shared<DynamoDbStore>(options);
}

DynamoDbStore::DynamoDbStore(const Options& options)
    : options_(options), client_(client_parts(options)), retry_(Client::Parts{}.retry) {}

store::Capabilities DynamoDbStore::capabilities() const {
    // Of what TransactWriteItems applies one item may show before another, which the port forbids.
    return {.item_bytes_max = item_bytes_max, .atomic_writes_max = 0, .ordered_changes = false};
}

auto DynamoDbStore::understood(auto parse) const try { return parse(); } catch (const CorruptionError& error) {
    throw CorruptionError(client_.quotable(error.what()));
}

const Table& DynamoDbStore::table(const std::string& name) const {
    const SharedLock lock{tables_mutex_};
    const auto found = tables_.find(name);
    if (found == tables_.end()) throw InvalidError("no table '" + name + "'; call ensure_table first");
    return *found->second;
}

// --- tables ----------------------------------------------------------------------------------------------------------

bool DynamoDbStore::is_ensured(const store::TableSchema& schema) const {
    const SharedLock lock{tables_mutex_};
    const auto found = tables_.find(schema.name);
    return found != tables_.end() && found->second->schema == schema;
}

bool DynamoDbStore::has_table(const store::TableSchema& schema) {
    check(schema);
    if (is_ensured(schema)) return true;
    const Table table = server_table(options_, schema);
    std::optional<DescribedTable> found = describe(table);
    if (!found) return false;
    const DescribedTable active = wait_until_active(table, std::move(found));
    if (is_alternator(active.arn)) check_write_isolation(client_, table, active.arn, options_.runtime.log);
    remember(table);
    return true;
}

void DynamoDbStore::ensure_table(const store::TableSchema& schema) {
    check(schema);
    if (is_ensured(schema)) return;
    const Table table = server_table(options_, schema);
    std::optional<DescribedTable> found = describe(table);
    if (!found) {
        if (options_.tables == Tables::expect) {
            throw ConfigError("there is no table '" + table.name + "', and tables=expect does not let varve create " +
                              to_string(schema));
        }
        create(table);
    }
    const DescribedTable active = wait_until_active(table, std::move(found));
    if (is_alternator(active.arn)) check_write_isolation(client_, table, active.arn, options_.runtime.log);
    if (!schema.expiry_attribute.empty()) ensure_expiry(table, active.arn);
    remember(table);
}

void DynamoDbStore::remember(const Table& table) {
    const ExclusiveLock lock{tables_mutex_};
    tables_.try_emplace(table.schema.name, std::make_unique<const Table>(table));
}

std::optional<DescribedTable> DynamoDbStore::describe(const Table& table) {
    Reply reply = client_.send(describe_table(table));
    if (const auto* failed = std::get_if<Failed>(&reply); failed && failed->name == "ResourceNotFoundException") {
        return std::nullopt;
    }
    DescribedTable found = understood([&] { return parse_described_table(answer_of(std::move(reply))); });
    const store::TableSchema& schema = table.schema;
    const std::string sort_type = schema.sort == store::SortType::none      ? ""
                                  : schema.sort == store::SortType::integer ? "N"
                                                                            : "S";
    if (found.partition_attribute != schema.partition_attribute || found.partition_type != "S" ||
        found.sort_attribute != schema.sort_attribute || found.sort_type != sort_type) {
        std::string shape = found.partition_attribute + " " + found.partition_type;
        if (!found.sort_attribute.empty()) shape += ", " + found.sort_attribute + " " + found.sort_type;
        throw ConfigError("table '" + table.name + "' exists with the key (" + client_.quotable(shape) +
                          ") and was asked for as " + to_string(schema));
    }
    return found;
}

void DynamoDbStore::create(const Table& table) {
    Reply reply = client_.send(create_table(table));
    // Another process was quicker.
    if (const auto* failed = std::get_if<Failed>(&reply); failed && failed->name == "ResourceInUseException") return;
    (void)answer_of(std::move(reply));
}

DescribedTable DynamoDbStore::wait_until_active(const Table& table, std::optional<DescribedTable> described) {
    const RetryPolicy patience{.first_delay = std::chrono::milliseconds{20},
                               .delay_max = std::chrono::seconds{2},
                               .time_max = std::chrono::minutes{2}};
    for (Backoff backoff{patience, options_.runtime};;) {
        if (described && described->active) return *std::move(described);
        if (!backoff.next()) throw UnavailableError("table '" + table.name + "' is not active after two minutes");
        // One that was just made may not be known to whoever describes it.
        described = describe(table);
    }
}

void DynamoDbStore::ensure_expiry(const Table& table, std::string_view arn) {
    Reply described = client_.send(describe_time_to_live(table));
    const auto lacks = [](const Reply& reply) {
        const auto* failed = std::get_if<Failed>(&reply);
        return failed != nullptr && failed->name == "UnknownOperationException";
    };
    // The port lets a store keep what has expired.
    if (lacks(described)) return;
    const std::string current = understood([&] { return parse_time_to_live(answer_of(std::move(described))); });
    if (current == table.schema.expiry_attribute) return;
    if (!current.empty()) {
        throw ConfigError("items of table '" + table.name + "' expire by '" + current + "' and it was asked for as " +
                          to_string(table.schema));
    }
    if (options_.tables == Tables::expect) return;
    Reply updated = client_.send(update_time_to_live(table));
    if (lacks(updated)) return;
    // Two processes may do this at once; the second is told that it is done already, in words only.
    if (const auto* failed = std::get_if<Failed>(&updated); failed && failed->name == "ValidationException") {
        const std::string now =
            understood([&] { return parse_time_to_live(answer_of(client_.send(describe_time_to_live(table)))); });
        if (now == table.schema.expiry_attribute) return;
        // Some versions of Alternator have it only where it is switched on, or not for every kind of table.
        if (is_alternator(arn)) {
            options_.runtime.log.get().write(
                LogLevel::warning,
                "items of table '" + table.name + "' that have expired are kept: " + failed->failure.message);
            return;
        }
    }
    (void)answer_of(std::move(updated));
}

// --- reading ---------------------------------------------------------------------------------------------------------

std::vector<std::optional<store::Item>> DynamoDbStore::read(std::span<const store::Key> keys) {
    return std::move(read_together(keys, {}).items);
}

store::Page DynamoDbStore::query(const store::Query& query) {
    return std::move(read_together({}, {&query, 1}).pages.front());
}

store::FoundTogether DynamoDbStore::read_together(std::span<const store::Key> keys,
                                                  std::span<const store::Query> queries) {
    std::map<store::Key, std::size_t> places;
    std::vector<TableKey> distinct;
    std::vector<std::size_t> place_of;
    for (const store::Key& key : keys) {
        const Table& source = table(key.table);
        check(source.schema, key);
        const auto [place, is_new] = places.try_emplace(key, distinct.size());
        if (is_new) distinct.push_back({&source, &key});
        place_of.push_back(place->second);
    }
    std::vector<Call> pages;
    std::vector<std::size_t> page_of;  // of `queries`, by the index in `pages`
    for (std::size_t i = 0; i < queries.size(); ++i) {
        if (std::optional<Call> call = page_call(queries[i])) {
            pages.push_back(*std::move(call));
            page_of.push_back(i);
        }
    }
    ReadBeside read = read_distinct(distinct, std::move(pages));

    store::FoundTogether found{.items = {}, .pages = std::vector<store::Page>(queries.size())};
    found.items.reserve(keys.size());
    for (const std::size_t place : place_of) found.items.push_back(read.items[place]);
    for (std::size_t i = 0; i < page_of.size(); ++i) {
        const Table& source = table(queries[page_of[i]].table);
        PageOfItems page = understood([&] { return parse_page(answer_of(std::move(read.beside[i])), source); });
        store::Page& into = found.pages[page_of[i]];
        into.records = std::move(page.records);
        if (page.last) into.next = store::query_token(page.last->sort);
    }
    return found;
}

std::optional<Call> DynamoDbStore::page_call(const store::Query& query) const {
    const Table& source = table(query.table);
    check(source.schema, query);
    std::optional<store::Key> after;
    if (query.next) {
        after = store::Key{.table = query.table,
                           .partition = query.partition,
                           .sort = store::sort_of_query_token(source.schema, *query.next)};
    }
    const auto open = [](const store::SortKey& bound) { return std::holds_alternative<std::monostate>(bound); };
    // The server calls an empty range invalid.
    if (!open(query.first) && !open(query.last) && query.last < query.first) return std::nullopt;
    return dynamodb::query(source, query, after);
}

DynamoDbStore::ReadBeside DynamoDbStore::read_distinct(std::span<const TableKey> keys, std::vector<Call> beside) {
    ReadBeside read{.items = std::vector<std::optional<store::Item>>(keys.size()), .beside = {}};
    std::map<store::Key, std::size_t> places;
    std::map<std::string_view, const Table*> by_name;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        places.emplace(*keys[i].key, i);
        by_name.emplace(keys[i].table->name, keys[i].table);
    }
    const FindTable find = [&by_name](std::string_view name) {
        const auto found = by_name.find(name);
        return found == by_name.end() ? nullptr : found->second;
    };
    const auto place = [&places](const store::Key& key) {
        const auto found = places.find(key);
        if (found == places.end()) throw CorruptionError("the server answers with " + to_string(key) + ", unasked");
        return found->second;
    };
    std::vector<TableKey> open(keys.begin(), keys.end());
    for (Backoff backoff{retry_, options_.runtime};;) {
        std::vector<Call> calls = std::exchange(beside, {});
        const std::size_t others = calls.size();
        if (keys.size() == 1) {
            calls.push_back(get_item(keys[0]));
        } else {
            for (std::size_t from = 0; from < open.size(); from += batch_keys_max) {
                calls.push_back(
                    batch_get_item(std::span{open}.subspan(from, std::min(batch_keys_max, open.size() - from))));
            }
        }
        if (calls.empty()) return read;
        std::vector<Reply> replies = client_.send(calls);
        if (others > 0) {
            const auto own = replies.begin() + static_cast<std::ptrdiff_t>(others);
            read.beside.assign(std::move_iterator{replies.begin()}, std::move_iterator{own});
            replies.erase(replies.begin(), own);
        }
        if (keys.size() == 1) {
            read.items[0] =
                understood([&] { return parse_get_item(answer_of(std::move(replies[0])), *keys[0].table); });
            return read;
        }
        const std::size_t asked = open.size();
        std::vector<TableKey> left;
        for (Reply& reply : replies) {
            understood([&] {
                BatchOfItems batch = parse_batch_get_item(answer_of(std::move(reply)), find);
                for (store::Record& record : batch.records) read.items[place(record.key)] = std::move(record.item);
                for (const store::Key& key : batch.unprocessed) left.push_back(keys[place(key)]);
            });
        }
        open = std::move(left);
        if (open.empty()) return read;
        // What is left is often only what did not fit into one answer.
        if (!(open.size() < asked ? backoff.next_without_delay() : backoff.next())) {
            throw UnavailableError("the server leaves " + std::to_string(open.size()) + " of " +
                                   std::to_string(keys.size()) + " reads unprocessed, the first of " +
                                   to_string(*open.front().key) + "; its throughput is used up");
        }
    }
}

store::Page DynamoDbStore::scan(const store::Scan& scan) {
    const Table& source = table(scan.table);
    check(source.schema, scan);
    if (scan.segments > segments_max) {
        throw InvalidError("a scan of table '" + scan.table + "' in " + std::to_string(scan.segments) +
                           " segments, at most " + std::to_string(segments_max) + " are allowed");
    }
    std::optional<store::Key> after;
    if (scan.next) after = store::key_of_scan_token(source.schema, *scan.next);
    PageOfItems found =
        understood([&] { return parse_page(answer_of(client_.send(dynamodb::scan(source, scan, after))), source); });
    store::Page page{.records = std::move(found.records), .next = {}};
    if (found.last) page.next = store::scan_token(*found.last);
    return page;
}

// --- writing ---------------------------------------------------------------------------------------------------------

std::vector<TableWrite> DynamoDbStore::checked(std::span<const store::Write> writes) const {
    std::vector<TableWrite> result;
    result.reserve(writes.size());
    for (const store::Write& write : writes) {
        const Table& target = table(write.key.table);
        check(target.schema, write, item_bytes_max_of(target));
        result.push_back({&target, &write});
    }
    return result;
}

std::vector<store::WriteAnswer> DynamoDbStore::write(std::span<const store::Write> writes) {
    store::check(writes, store::Batch::independent);
    const std::vector<TableWrite> targets = checked(writes);
    std::vector<std::optional<store::WriteAnswer>> answers(writes.size());
    std::vector<std::size_t> open(writes.size());
    for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
    for (Backoff backoff{retry_, options_.runtime}; !open.empty();) {
        std::vector<Call> calls;
        for (const std::size_t i : open) calls.push_back(write_item(targets[i]));
        std::vector<Reply> replies = client_.send(calls);
        std::vector<std::size_t> untold;
        for (std::size_t at = 0; at < open.size(); ++at) {
            const std::size_t i = open[at];
            if (std::holds_alternative<Done>(replies[at])) {
                answers[i] = store::Applied{};
            } else if (auto* failure = std::get_if<Failed>(&replies[at])) {
                answers[i] = failure_of(writes[i], std::move(*failure));
            } else {
                answers[i] = refused(std::get<Declined>(replies[at]), targets[i]);
                if (!answers[i]) untold.push_back(i);
            }
        }
        open.clear();
        if (untold.empty()) break;
        // A server that does not tell the item is asked for it. It may have changed meanwhile, so that the condition
        // holds now: then the write is sent again. Without an answer the write is in doubt, for what refused it may be
        // the effect of an earlier try that was not answered.
        std::vector<TableKey> keys;
        for (const std::size_t i : untold) keys.push_back({targets[i].table, &writes[i].key});
        std::vector<ReadAnswer> items = read_each(keys);
        for (std::size_t at = 0; at < untold.size(); ++at) {
            const std::size_t i = untold[at];
            if (auto* failure = std::get_if<Failure>(&items[at])) {
                failure->in_doubt = failure->kind != ErrorKind::corruption;
                failure->message = "the write was refused by the item " + to_string(writes[i].key) +
                                   ", and why cannot be read: " + failure->message;
                answers[i] = std::move(*failure);
                continue;
            }
            auto& item = std::get<std::optional<store::Item>>(items[at]);
            if (holds(writes[i].condition, item ? &*item : nullptr)) {
                open.push_back(i);
            } else {
                answers[i] = store::Refused{std::move(item)};
            }
        }
        if (!open.empty() && !backoff.next_without_delay()) {
            for (const std::size_t i : open) {
                answers[i] =
                    Failure{.kind = ErrorKind::unavailable,
                            .in_doubt = true,
                            .message = "the item " + to_string(writes[i].key) +
                                       " refuses the write and meets its condition when it is read, again and "
                                       "again; others keep changing it, or another program stores an attribute "
                                       "of a type that varve does not know"};
            }
            break;
        }
    }
    std::vector<store::WriteAnswer> result;
    result.reserve(answers.size());
    for (auto& answer : answers) result.push_back(*std::move(answer));
    return result;
}

std::optional<store::WriteAnswer> DynamoDbStore::refused(const Declined& declined, const TableWrite& write) try {
    auto item = understood([&] { return parse_refusing_item(declined.answer, *write.table); });
    if (item) tells_items_ = true;
    if (!item && !tells_items_) return std::nullopt;
    return store::Refused{std::move(item)};
} catch (const CorruptionError& error) {
    return Failure{.kind = error.kind(),
                   .message = "the write is refused by the item " + to_string(write.write->key) +
                              ", which cannot be read: " + error.what()};
}

std::vector<DynamoDbStore::ReadAnswer> DynamoDbStore::read_each(std::span<const TableKey> keys) {
    std::vector<ReadAnswer> answers;
    try {
        for (auto& item : read_distinct(keys, {}).items) answers.emplace_back(std::move(item));
    } catch (const Error& error) {
        // One that cannot be read spoils the whole answer.
        if (error.kind() == ErrorKind::corruption && keys.size() > 1) {
            for (std::size_t i = 0; i < keys.size(); ++i)
                answers.push_back(std::move(read_each(keys.subspan(i, 1)).front()));
        } else {
            answers.assign(keys.size(), Failure{.kind = error.kind(), .message = error.what()});
        }
    }
    return answers;
}

}  // namespace varve::dynamodb
