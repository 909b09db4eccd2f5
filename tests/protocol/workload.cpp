#include "protocol/workload.h"

#include "protocol/clerks.h"
#include "protocol/following.h"

#include <varve/events/event_store.h>
#include <varve/locks/locks.h>

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <set>

namespace varve::protocol {

using transactions::Isolation;

void Workload::use_tables(Application& application, const Scale& scale) {
    if (scale.own_rows) {
        application.project<Account>(ProjectOwnBalance{});
    } else {
        application.project<Account>(ProjectBalance{});
    }
    static_cast<void>(application.rows<Balance>());
    static_cast<void>(application.rows<ListRow>());
    static_cast<void>(application.rows<Note>());
}

void Workload::set_up(Application& application, const Scale& scale) {
    for (std::uint64_t i = 0; i < scale.keys; ++i) {
        application.execute<Account>(std::to_string(i), Deposit{scale.money, 0}).value();
    }
}

void Workload::one_command() {
    if (shared_.scale.own_rows && random_.chance(0.1)) return audit();
    switch (theme()) {
        case Record::Theme::crossing: return lists(Shape::crossing);
        case Record::Theme::hot_lists: return shared_.scale.bursts && random_.chance(0.3) ? burst() : lists(Shape::hot);
        case Record::Theme::hot_rows: return lists(random_.chance(0.1) ? Shape::all_rows : Shape::one_row);
        case Record::Theme::money: return random_.chance(0.4) ? read_money() : transfer();
        case Record::Theme::section: return section();
        case Record::Theme::folds:
            return random_.chance(0.4) ? transfer() : random_.chance(0.3) ? read_folds() : list_folds();
        case Record::Theme::nothing: break;
    }
    if (shared_.scale.schedules && random_.chance(0.1)) return schedule();
    const std::uint64_t choice = random_.below(100);
    if (shared_.scale.bursts && choice % 4 == 0) return burst();
    if (choice % 10 == 1) return section();
    if (choice < 29) return transfer();
    if (choice < 35) return repeat();
    if (choice < 63) return lists();
    if (choice < 73) return read_lists();
    if (choice < 82) return read_money();
    if (choice < 87) return random_.chance(0.5) ? read_folds() : list_folds();
    notes();
}

Record::Theme Workload::theme() {
    constexpr Record::Theme themes[] = {Record::Theme::nothing,  Record::Theme::crossing, Record::Theme::hot_lists,
                                        Record::Theme::hot_rows, Record::Theme::money,    Record::Theme::section,
                                        Record::Theme::folds};
    Record& record = shared_.record;
    if (record.commands_left == 0) {
        record.theme = themes[random_.below(std::size(themes))];
        record.commands_left = 1 + random_.below(40);
    }
    --record.commands_left;
    return random_.chance(0.7) ? record.theme : Record::Theme::nothing;
}

Told Workload::attempt(std::int64_t operation, const std::function<Outcome()>& execute) {
    Record& record = shared_.record;
    Record::Command& command = record.commands[operation];
    const bool was_committed = command.committed;
    ++command.begun;
    Told told = Told::aborted;
    try {
        const Outcome outcome = execute();
        if (outcome) {
            told = Told::committed;
            if (outcome->repeated) {
                ++record.repeated;
            } else {
                ++record.paths[transactions::to_string(outcome->path)];
            }
            enter_commit(operation, outcome->transaction);
            check_effects(operation, *outcome);
        } else if (was_committed) {
            record.violations.push_back("command id: operation " + std::to_string(operation) +
                                        " had been executed, and was rejected when it was repeated");
        }
    } catch (const InDoubtError& error) {
        told = Told::unknown;
        command.why = error.what();
        ++record.in_doubt;
        // Whoever is in doubt may ask; what it learns then holds for ever.
        if (error.handle().empty() || random_.chance(0.5)) return told;
        try {
            const auto verdict = app_.resolve(error.handle());
            if (verdict == transactions::Verdict::aborted) {
                told = Told::aborted;
                ++command.aborted;
            }
            if (verdict == transactions::Verdict::committed) {
                told = Told::committed;
                enter_commit(operation, error.handle().text().substr(0, error.handle().text().find('@')));
            }
        } catch (const UnavailableError&) {
        }
        return told;
    } catch (const LeaseLostError& error) {
        ++record.fenced_off;
        if (command.stamps == 0) record.violations.push_back(std::string{"unexpected: "} + error.what());
        command.why = error.what();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::conflict && error.kind() != ErrorKind::unavailable &&
            error.kind() != ErrorKind::invalid) {
            record.violations.push_back(std::string{"unexpected: "} + error.what());
        }
        command.why = error.what();
    }
    if (told == Told::aborted) ++command.aborted;
    ++(told == Told::committed ? record.committed : record.aborted);
    return told;
}

/// What is acknowledged is there, also if it is not in place yet.
void Workload::check_effects(std::int64_t operation, const Receipt& receipt) {
    if (receipt.repeated || !shared_.record.commands[operation].announces) return;
    try {
        if (!receipt.effects_slot ||
            app_.events().effects(receipt.effects_slot->stream, receipt.effects_slot->version).empty())
            shared_.record.violations.push_back("effects: operation " + std::to_string(operation) +
                                                " was acknowledged, and what it announces is not there");
    } catch (const UnavailableError&) {
    }
}

/// Whoever is told that it committed is told of one and the same transaction.
void Workload::enter_commit(std::int64_t operation, const std::string& transaction) {
    Record::Command& command = shared_.record.commands[operation];
    if (command.committed && command.transaction != transaction) {
        shared_.record.violations.push_back("command id: operation " + std::to_string(operation) + " committed as " +
                                            command.transaction + " and as " + transaction);
    }
    command.committed = true;
    command.transaction = transaction;
}

void Workload::transfer() {
    const std::string from = account();
    const std::string to = account();
    if (from == to) return;
    const std::int64_t operation = shared_.next_operation();
    const auto cents = static_cast<std::int64_t>(random_.chance(0.1) ? shared_.scale.money : random_.below(100) + 1);
    Record::Command& command = shared_.record.commands[operation];
    command.moves_money = true;
    command.announces = random_.chance(0.3);
    const bool under_an_id = random_.chance(0.4);
    const Record::Transfer transfer{operation, from, to, cents};
    if (under_an_id) shared_.record.repeatable.push_back(transfer);
    this->transfer(transfer, under_an_id);
}

void Workload::transfer(const Record::Transfer& transfer, bool under_an_id) {
    const auto [operation, from, to, cents] = transfer;
    const bool announces = shared_.record.commands[operation].announces;
    attempt(operation, [&, operation = operation, &from = from, &to = to, cents = cents] {
        return app_.transact(
            [&](Transaction& tx) {
                tx.execute<Account>(from, Withdraw{cents, operation});
                tx.execute<Account>(to, Deposit{cents, operation});
                if (announces) tx.effect(Announce{operation});
            },
            {.command_id = under_an_id ? "transfer-" + std::to_string(operation) : std::string{}});
    });
}

void Workload::audit() {
    std::vector<std::string> accounts;
    for (std::uint64_t i = 0; i < shared_.scale.keys; ++i) accounts.push_back(std::to_string(i));
    const std::string from = account();
    const std::string to = account();
    const bool moves = from != to && random_.chance(0.5);
    const std::int64_t operation = shared_.next_operation();
    shared_.record.commands[operation].moves_money = moves;
    std::int64_t sum = 0;
    std::string wrong;
    const Told told = attempt(operation, [&] {
        return app_.transact([&](Transaction& tx) {
            sum = 0;
            wrong.clear();
            tx.load_all<Account>(accounts);
            for (const std::string& id : accounts) {
                const std::int64_t cents = tx.load<Account>(id).cents;
                const std::int64_t row = tx.rows<Balance>().get(id).value_or(Balance{}).cents;
                if (row != cents) wrong = id + " has " + std::to_string(cents) + ", its row " + std::to_string(row);
                sum += cents;
            }
            if (!moves) return;
            const std::int64_t cents = tx.load<Account>(from).cents / 2;
            tx.execute<Account>(from, Withdraw{cents, operation});
            tx.execute<Account>(to, Deposit{cents, operation});
        });
    });
    if (told != Told::committed) return;
    const std::int64_t expected = static_cast<std::int64_t>(shared_.scale.keys) * shared_.scale.money;
    if (sum != expected) wrong = "the sum was " + std::to_string(sum) + ", it is always " + std::to_string(expected);
    if (!wrong.empty()) shared_.record.violations.push_back("audit: " + wrong);
}

void Workload::repeat() {
    const std::vector<Record::Transfer>& repeatable = shared_.record.repeatable;
    if (repeatable.empty()) return transfer();
    const std::uint64_t latest = std::min<std::uint64_t>(repeatable.size(), 5);
    transfer(Record::Transfer{repeatable[repeatable.size() - 1 - random_.below(latest)]}, true);
}

namespace {

/// So many lists are appended to more than the others, alone and several at a time.
constexpr std::uint64_t hot_lists = 4;

std::vector<std::int64_t> values_of(Transaction& tx, const std::string& key) {
    if (key.front() == 's') return tx.load<List>(key).values;
    return tx.rows<ListRow>().get(key).value_or(ListRow{}).values;
}

void append(Transaction& tx, const std::string& key, std::int64_t value) {
    if (key.front() == 's') {
        tx.execute<List>(key, AppendValue{value});
        return;
    }
    tx.rows<ListRow>().update(key, [&](ListRow& row) { row.values.push_back(value); });
}

}  // namespace

void Workload::lists() {
    const std::uint64_t shape = random_.below(10);
    lists(shape < 3 ? Shape::crossing : shape < 5 ? Shape::hot : Shape::mixed);
}

void Workload::lists(Shape shape) {
    struct Step {
        std::string key;
        std::int64_t value;  // 0: read
    };
    std::vector<Step> steps;
    const std::uint64_t count = 1 + random_.below(shared_.scale.participants);
    const bool reads_first = random_.chance(0.5);
    if (shape == Shape::crossing) {
        const std::string kind = random_.chance(0.5) ? "s" : "r";
        const std::uint64_t first = random_.below(2);
        steps = {{kind + std::to_string(first), 0}, {kind + std::to_string(1 - first), shared_.next_operation()}};
    } else if (shape == Shape::hot) {
        for (std::uint64_t i = 0; i < std::min(shared_.scale.keys, hot_lists); ++i) {
            if (random_.chance(0.7)) steps.push_back({"s" + std::to_string(i), shared_.next_operation()});
        }
    } else if (shape == Shape::one_row) {
        steps.push_back({"r" + std::to_string(random_.below(2)), shared_.next_operation()});
    } else if (shape == Shape::all_rows) {
        for (std::uint64_t i = 0; i < shared_.scale.keys; ++i)
            steps.push_back({"r" + std::to_string(i), random_.chance(0.7) ? shared_.next_operation() : 0});
    }
    const bool drawn = steps.empty();
    for (std::uint64_t i = 0; drawn && i < count; ++i) {
        const bool appends = random_.chance(0.6);
        steps.push_back({list(), appends ? shared_.next_operation() : 0});
        if (appends && reads_first) steps.insert(steps.end() - 1, {steps.back().key, 0});
    }
    const std::int64_t operation = shared_.next_operation();
    auto& transactions = shared_.record.lists.transactions;
    const std::size_t index = transactions.size();
    {
        // In the history from the beginning: a process that ends meanwhile leaves it in doubt.
        checkers::Transaction& entry = transactions.emplace_back();
        entry.id = "t" + std::to_string(operation);
        entry.process = process_;
        entry.status = checkers::Status::info;
        entry.invoke = shared_.moment();
        for (const Step& step : steps) {
            if (step.value != 0) {
                entry.operations.emplace_back(checkers::Append{step.key, step.value});
            } else {
                entry.operations.emplace_back(checkers::Read{step.key, std::nullopt});
            }
        }
    }
    std::vector<checkers::Operation> done;
    const Told told = attempt(operation, [&] {
        return app_.transact([&](Transaction& tx) {
            done.clear();
            for (const Step& step : steps) {
                if (step.value != 0) {
                    append(tx, step.key, step.value);
                    done.emplace_back(checkers::Append{step.key, step.value});
                } else {
                    done.emplace_back(checkers::Read{step.key, values_of(tx, step.key)});
                }
            }
        });
    });
    checkers::Transaction& entry = transactions[index];
    if (told == Told::unknown) return;
    entry.complete = shared_.moment();
    entry.status = told == Told::committed ? checkers::Status::ok : checkers::Status::fail;
    if (told == Told::committed && done.size() == steps.size()) entry.operations = std::move(done);
}

void Workload::burst() {
    struct Sent {
        std::size_t entry;
        std::int64_t operation;
        std::future<Outcome> outcome;
    };
    const std::string key = "s" + std::to_string(random_.below(std::min(shared_.scale.keys, hot_lists)));
    auto& transactions = shared_.record.lists.transactions;
    std::vector<Sent> sent;
    std::map<std::size_t, std::vector<Told>> told;
    for (std::uint64_t left = 2 + random_.below(6); left > 0; --left) {
        const std::int64_t operation = shared_.next_operation();
        const std::int64_t value = shared_.next_operation();
        const std::size_t index = transactions.size();
        checkers::Transaction& entry = transactions.emplace_back();
        entry.id = "t" + std::to_string(operation);
        entry.process = 1000 + operation;  // at the same time as the others
        entry.status = checkers::Status::info;
        entry.invoke = shared_.moment();
        entry.operations.emplace_back(checkers::Append{key, value});
        CommandOptions options;
        if (random_.chance(0.4)) options.command_id = "c" + std::to_string(operation);
        const std::uint64_t times = options.command_id.empty() ? 1 : 1 + random_.below(2);
        for (std::uint64_t i = 0; i < times; ++i) {
            if (random_.chance(0.2)) {
                told[index].push_back(
                    attempt(operation, [&] { return app_.execute<List>(key, AppendValue{value}, options); }));
            } else {
                sent.push_back({index, operation, app_.submit<List>(key, AppendValue{value}, options)});
            }
        }
    }
    Clock& clock = app_.runtime().clock;
    for (Sent& one : sent) {
        told[one.entry].push_back(attempt(one.operation, [&] {
            while (one.outcome.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
                clock.sleep_for(std::chrono::milliseconds{1});
            return one.outcome.get();
        }));
    }
    for (const auto& [index, ends] : told) {
        // One that was repeated has been done if either was told so, and has not if both were.
        checkers::Transaction& entry = transactions[index];
        const bool committed = std::ranges::find(ends, Told::committed) != ends.end();
        if (!committed && std::ranges::find(ends, Told::unknown) != ends.end()) continue;
        entry.complete = shared_.moment();
        entry.status = committed ? checkers::Status::ok : checkers::Status::fail;
    }
}

void Workload::section() {
    const Duration waits[] = {Duration{0}, std::chrono::milliseconds{100}, std::chrono::seconds{2}};
    std::optional<Lock> lock;
    try {
        lock = app_.locks().try_acquire(section_lock, {.wait = waits[random_.below(3)]});
    } catch (const UnavailableError&) {
    }
    if (!lock) return;
    ++shared_.record.sections;
    const std::int64_t section = shared_.next_operation();
    Clock& clock = app_.runtime().clock;
    for (std::uint64_t left = 1 + random_.below(3); left > 0; --left) {
        const std::int64_t operation = shared_.next_operation();
        const Stamp stamp{{.fence = lock->fence(), .section = section, .operation = operation}};
        Record::Command& command = shared_.record.commands[operation];
        command.stamps = 1 + random_.below(2);
        if (random_.chance(0.5)) {
            const auto longest_us = static_cast<std::uint64_t>(shared_.scale.lock_time_to_live.count());
            clock.sleep_for(Duration{static_cast<Duration::rep>(random_.below(longest_us))});
        }
        if (random_.chance(0.5)) app_.locks().beat();
        attempt(operation, [&] {
            if (command.stamps == 1) return app_.execute<Register>(registers[0], stamp, {.fenced_by = &*lock});
            return app_.transact([&](Transaction& tx) {
                tx.fenced_by(*lock);
                for (const char* id : registers) tx.execute<Register>(id, stamp);
            });
        });
    }
}

/// A committed read of one list, and a snapshot of several, are of one moment.
void Workload::read_lists() {
    std::vector<std::string> keys;
    const bool snapshot = random_.chance(0.5);
    do {
        std::string key = list();
        if (snapshot) key.front() = 'r';
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
    } while (snapshot && keys.size() < shared_.scale.participants && random_.chance(0.7));
    checkers::Transaction entry{.id = "r" + std::to_string(shared_.next_operation()),
                                .process = process_,
                                .status = checkers::Status::ok,
                                .invoke = shared_.moment(),
                                .complete = {},
                                .operations = {}};
    try {
        if (keys.front().front() == 's') {
            entry.operations.emplace_back(checkers::Read{keys.front(), app_.load<List>(keys.front()).state.values});
        } else {
            const auto rows = app_.rows<ListRow>().get_all({keys.begin(), keys.end()},
                                                           snapshot ? Isolation::snapshot : Isolation::committed);
            for (std::size_t i = 0; i < keys.size(); ++i) {
                entry.operations.emplace_back(checkers::Read{keys[i], rows[i].value_or(ListRow{}).values});
            }
        }
    } catch (const ConflictError&) {
        return;
    } catch (const UnavailableError&) {
        return;
    }
    entry.complete = shared_.moment();
    shared_.record.lists_read.transactions.push_back(std::move(entry));
}

void Workload::read_money() {
    std::vector<RowKey> keys;
    for (std::uint64_t i = 0; i < shared_.scale.keys; ++i) keys.emplace_back(std::to_string(i));
    const bool snapshot = random_.chance(0.5);
    const std::int64_t expected = static_cast<std::int64_t>(shared_.scale.keys) * shared_.scale.money;
    for (std::uint64_t left = snapshot ? 3 : 1; left > 0; --left) {  // a snapshot costs nobody anything
        std::int64_t sum = 0;
        try {
            for (const auto& row :
                 app_.rows<Balance>().get_all(keys, snapshot ? Isolation::snapshot : Isolation::serializable)) {
                sum += row.value_or(Balance{}).cents;
            }
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::conflict && error.kind() != ErrorKind::unavailable)
                shared_.record.violations.push_back(std::string{"unexpected: "} + error.what());
            return;
        }
        if (sum != expected) {
            shared_.record.violations.push_back("bank: the sum was " + std::to_string(sum) + " at once, it is always " +
                                                std::to_string(expected));
        }
    }
}

/// A partition never holds more than notes_max: only the range that was read says so, so phantoms would break it. And
/// no two notes have one mark.
void Workload::notes() {
    const std::string partition = std::to_string(random_.below(std::min<std::uint64_t>(shared_.scale.keys, 3)));
    const std::string name = std::to_string(random_.below(8));
    const auto mark = static_cast<std::int64_t>(random_.below(marks));
    const bool frees = random_.chance(0.3);
    const bool looks = random_.chance(0.5);
    const std::int64_t operation = shared_.next_operation();
    std::size_t seen = 0;
    const bool announces = shared_.record.commands[operation].announces = random_.chance(0.2);
    const Told told = attempt(operation, [&] {
        Outcome outcome = app_.transact([&](Transaction& tx) {
            if (announces) tx.effect(Announce{operation});
            auto rows = tx.rows<Note>();
            const auto found = rows.range({.partition = partition}).to_vector();
            seen = found.size();
            if (frees && !found.empty()) rows.erase(found[random_.below(found.size())].key);
            if (frees || (looks && rows.find<&Note::mark>(mark))) return;
            const bool there = std::ranges::any_of(found, [&](const auto& row) { return row.key.sort == name; });
            if (there || found.size() < notes_max) rows.put({partition, name}, Note{operation, mark});
        });
        if (looks && !outcome)
            shared_.record.violations.push_back("index: nobody had the mark, and then: " + outcome.error().message);
        return outcome;
    });
    if (told == Told::committed && seen > notes_max) {
        shared_.record.violations.push_back("phantom: " + std::to_string(seen) + " notes in partition " + partition);
    }
}

void Workload::schedule() {
    Record& record = shared_.record;
    if (!record.scheduled.empty() && random_.chance(0.4)) {
        const Record::Scheduled one = record.scheduled[random_.below(record.scheduled.size())];
        bool was_in_time = false;
        ++record.commands[one.operation].cancels_begun;
        const Told told = attempt(shared_.next_operation(), [&] {
            return app_.transact([&](Transaction& tx) { was_in_time = cancel_scheduled<Tally>(tx, one.timer); });
        });
        Record::Command& scheduled = record.commands[one.operation];
        if (told != Told::unknown) --scheduled.cancels_begun;
        if (told == Told::committed && was_in_time) scheduled.is_cancelled = true;
        return;
    }
    const std::int64_t operation = shared_.next_operation();
    record.commands[operation].schedules = true;
    // Half of them in a minute that is over, whose bucket is closed as soon as nothing is in it.
    const Duration ago = random_.chance(0.5) ? std::chrono::minutes{1} : Duration::zero();
    const Duration in = std::chrono::milliseconds{random_.below(3'000)} - ago;
    std::string timer;
    const Told told = attempt(operation, [&] {
        return app_.transact([&](Transaction& tx) {
            timer = varve::schedule<Tally>(tx, scheduled_tally, Count{operation}, tx.now() + in);
        });
    });
    if (told == Told::committed) record.scheduled.push_back({operation, timer});
}

/// What is read together is of one moment, and nobody goes back in time, whoever makes the rows anew.
void Workload::read_folds() {
    std::vector<std::string> ids{std::string{all_events}};
    for (std::uint64_t i = 0; i < shared_.scale.keys; ++i) {
        ids.push_back(std::to_string(i));
        ids.push_back("s" + std::to_string(i));
    }
    const std::vector<RowKey> keys(ids.begin(), ids.end());
    const auto seen_before = shared_.record.folds_seen;
    const Isolation levels[] = {Isolation::committed, Isolation::snapshot, Isolation::serializable};
    const Isolation isolation = levels[random_.below(3)];
    std::vector<std::int64_t> events;
    try {
        for (const auto& row : app_.rows<Fold>().get_all(keys, isolation))
            events.push_back(row.value_or(Fold{}).events);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::conflict && error.kind() != ErrorKind::unavailable)
            shared_.record.violations.push_back(std::string{"unexpected: "} + error.what());
        return;
    }
    if (isolation != Isolation::committed && std::accumulate(events.begin() + 1, events.end(), -events[0]) != 0)
        shared_.record.violations.push_back("folds: the rows that were read together are of several moments");
    for (std::size_t i = 0; i < ids.size(); ++i) saw_fold(ids[i], events[i], seen_before);
}

/// A list shows what was there when it began, and none older.
void Workload::list_folds() {
    const auto seen_before = shared_.record.folds_seen;
    std::map<std::string, std::int64_t> found;
    PageOptions page{.limit = 1};
    try {
        do {
            const RowPage<Fold> rows = app_.rows<Fold>().all(page);
            for (const auto& row : rows.rows) found.emplace(row.key.partition, row.value.events);
            page.next = rows.next;
            shared_.sleep(std::chrono::microseconds{random_.below(20'000)});
        } while (!page.next.empty());
    } catch (const InvalidError&) {
        return;  // it was emptied meanwhile, and says so
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::conflict && error.kind() != ErrorKind::unavailable)
            shared_.record.violations.push_back(std::string{"unexpected: "} + error.what());
        return;
    }
    for (const auto& [id, events] : seen_before) saw_fold(id, found[id], seen_before);
}

void Workload::saw_fold(const std::string& id, std::int64_t events,
                        const std::map<std::string, std::int64_t>& seen_before) {
    const auto before = seen_before.find(id);
    if (before != seen_before.end() && events < before->second) {
        shared_.record.violations.push_back("folds: of the " + std::to_string(before->second) + " events of '" + id +
                                            "' that had been read, " + std::to_string(events) + " were left");
    }
    std::int64_t& seen = shared_.record.folds_seen[id];
    seen = std::max(seen, events);
}

}  // namespace varve::protocol
