#include "connection.h"

#include "errors.h"
#include "table.h"

#include <varve/core/clock.h>
#include <varve/core/fnv1a.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>

#include <libpq-fe.h>
#include <poll.h>

namespace varve::postgres {
namespace {

constexpr int least_version = 130000;

std::int64_t number_of(std::string_view digits) {
    std::int64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

/// Waits for a socket until a moment. False: the moment came first.
bool poll_until(int socket, short events, SteadyTime until) {
    for (;;) {
        const Duration left = until - Clock::system().steady_now();
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(left, Duration::zero())).count();
        pollfd one{.fd = socket, .events = events, .revents = 0};
        const int ready = poll(&one, 1, static_cast<int>(std::min<std::int64_t>(ms, 3'600'000)));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return true;  // libpq will say what is wrong
        if (Clock::system().steady_now() >= until) return false;
    }
}

Failure left_in_doubt(Failure failure) {
    failure.kind = ErrorKind::in_doubt;
    failure.in_doubt = true;
    failure.message += "; the commit may or may not take effect, read to learn which";
    return failure;
}

/// A prepared statement's name says what it is: by no pooler, which may give this connection a session in which others
/// have prepared theirs, can it come to mean another one.
std::string name_of(const std::string& sql) {
    std::array<char, 24> name{};
    std::snprintf(name.data(), name.size(), "varve_%016llx", static_cast<unsigned long long>(fnv1a(sql)));
    return name.data();
}

std::vector<std::string_view> parts_of(std::string_view list) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t comma = list.find(',');
        parts.push_back(list.substr(0, comma));
        if (comma == std::string_view::npos) return parts;
        list.remove_prefix(comma + 1);
    }
}

/// Whether what follows the ':' of each host is a number. "[::1]:5432,db.example" has such ports.
bool has_ports(std::string_view hosts) {
    for (std::string_view host : parts_of(hosts)) {
        if (const std::size_t bracket = host.rfind(']'); bracket != std::string_view::npos) host.remove_prefix(bracket);
        const std::size_t colon = host.find(':');
        if (colon != std::string_view::npos &&
            host.find_first_not_of("0123456789", colon + 1) != std::string_view::npos)
            return false;
    }
    return true;
}

/// A part of a password that is not written as a URI wants it would stand in libpq's messages. Throws ConfigError.
void check_uri(std::string_view connection) {
    const std::size_t begin = connection.find("://");
    if (begin == std::string_view::npos) return;
    const std::string_view rest = connection.substr(begin + 3, connection.find('?') - begin - 3);
    const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    // One '@', and before the first '/', ends the user and the password.
    const std::size_t at = rest.find('@');
    bool fits = at == std::string_view::npos || (rest.rfind('@') == at && rest.find('/') > at);
    // A '?' in the password leaves a part of it where the port stands.
    fits = fits && has_ports(rest.substr(at + 1, rest.find('/') - (at + 1)));
    for (std::size_t i = rest.find('%'); i != std::string_view::npos; i = rest.find('%', i + 1))
        fits = fits && i + 2 < rest.size() && is_hex(rest[i + 1]) && is_hex(rest[i + 2]);
    if (fits) return;
    throw ConfigError(
        "a postgres URL cannot be read; in its user, its password and its database write %25 for %, %40 for @, %2F "
        "for / and %3F for ?; its port is a number");
}

/// An error that the server itself tells of a statement, which has kept it from committing. What a pooler says of a
/// server that it has lost may come after the commit.
bool is_of_the_server(const Result& result) {
    const char* const state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    const char* const severity = PQresultErrorField(result.get(), PG_DIAG_SEVERITY_NONLOCALIZED);
    return state != nullptr && severity != nullptr && !std::string_view{state}.starts_with("08");
}

std::string in_seconds(std::chrono::milliseconds time) {
    return to_string(Duration{time});
}

}  // namespace

void Result::Clear::operator()(pg_result* result) const {
    PQclear(result);
}

int Result::rows() const {
    return PQntuples(result_.get());
}

bool Result::is_null(int row, int column) const {
    return PQgetisnull(result_.get(), row, column) != 0;
}

std::string_view Result::text(int row, int column) const {
    return {PQgetvalue(result_.get(), row, column), static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::int64_t Result::integer(int row, int column) const {
    return number_of(text(row, column));
}

std::int64_t Result::affected() const {
    return number_of(PQcmdTuples(result_.get()));
}

void Connection::Close::operator()(pg_conn* connection) const {
    PQfinish(connection);
}

Connection::Connection(const Options& options) : options_(options) {
    connect();
}

Connection::~Connection() {
    // PQfinish would say goodbye to the server in its parent's name.
    if (process_.is_another()) abandon(std::move(connection_));
}

std::vector<Connection::Host> Connection::hosts_of(const std::string& connection) {
    const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> all{PQconninfoParse(connection.c_str(), nullptr),
                                                                           PQconninfoFree};
    const auto list = [&](std::string_view keyword) {
        for (const PQconninfoOption* one = all.get(); one != nullptr && one->keyword != nullptr; ++one) {
            if (one->keyword != keyword || one->val == nullptr) continue;
            const std::vector<std::string_view> parts = parts_of(one->val);
            return std::vector<std::string>{parts.begin(), parts.end()};
        }
        return std::vector<std::string>{};
    };
    const std::vector<std::string> names = list("host");
    const std::vector<std::string> addresses = list("hostaddr");
    const std::vector<std::string> ports = list("port");
    const std::size_t count = std::max({names.size(), addresses.size(), std::size_t{1}});
    const auto fits = [&](const auto& values) { return values.size() <= 1 || values.size() == count; };
    if (count == 1 || !fits(names) || !fits(addresses) || !fits(ports)) return {Host{}};  // libpq says what is wrong
    const auto nth = [](const std::vector<std::string>& values, std::size_t i) {
        return values.empty() ? std::string{} : values[values.size() == 1 ? 0 : i];
    };
    std::vector<Host> hosts;
    for (std::size_t i = 0; i < count; ++i) hosts.push_back({nth(names, i), nth(addresses, i), nth(ports, i)});
    return hosts;
}

void Connection::connect() {
    check_uri(options_.connection);
    // libpq would wait for the first of several for as long as it is silent.
    const std::vector<Host> hosts = hosts_of(options_.connection);
    for (std::size_t i = 0;; ++i) {
        try {
            connect(hosts[i], options_.timeout / static_cast<int>(hosts.size()));
            return check_server();
        } catch (const Error& error) {
            const bool is_about_this_one =
                error.kind() == ErrorKind::unavailable || error.kind() == ErrorKind::read_only;
            if (!is_about_this_one || i + 1 == hosts.size()) throw;
        }
    }
}

void Connection::connect(const Host& host, std::chrono::milliseconds timeout) {
    where_ = "the PostgreSQL database";
    prepared_.clear();
    // "dbname" may hold a whole URI, which the later ones then go beyond, unless they are empty.
    const char* const names[] = {"dbname", "host", "hostaddr", "port", "client_encoding", "fallback_application_name",
                                 nullptr};
    const char* const values[] = {options_.connection.c_str(),
                                  host.name.c_str(),
                                  host.address.c_str(),
                                  host.port.c_str(),
                                  "UTF8",
                                  "varve",
                                  nullptr};
    connection_.reset(PQconnectStartParams(names, values, 1));
    if (!connection_) throw std::bad_alloc{};
    const auto fail = [&](std::string_view message) {
        const ErrorRule rule = rule_for_connecting(message);
        std::string text = "no connection to " + where_ + ": " + std::string{one_line(message)};
        if (!rule.advice.empty()) text += "; " + std::string{rule.advice};
        raise({.kind = rule.kind, .in_doubt = false, .message = std::move(text)});
    };
    if (PQstatus(connection_.get()) == CONNECTION_BAD) fail(PQerrorMessage(connection_.get()));
    where_ += " " + std::string{PQdb(connection_.get())};
    const SteadyTime until = Clock::system().until(timeout);
    for (PostgresPollingStatusType state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK;) {
        if (state == PGRES_POLLING_FAILED) fail(PQerrorMessage(connection_.get()));
        const short events = state == PGRES_POLLING_WRITING ? POLLOUT : POLLIN;
        if (!poll_until(PQsocket(connection_.get()), events, until)) {
            throw UnavailableError("no connection to " + where_ + " on " + PQhost(connection_.get()) + " within " +
                                   in_seconds(timeout));
        }
        state = PQconnectPoll(connection_.get());
    }
    where_ += " on " + std::string{PQhost(connection_.get())} + ":" + PQport(connection_.get());
    PQsetnonblocking(connection_.get(), 1);
    PQenterPipelineMode(connection_.get());
    PQsetNoticeProcessor(
        connection_.get(), [](void*, const char*) {}, nullptr);
}

void Connection::check_server() {
    // Scans and joins of whole tables are what a plan falls for that was made for any parameters.
    static const std::string settings =
        "SELECT set_config('lock_timeout', $1, false), set_config('default_transaction_isolation', 'read committed', "
        "false), set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false), "
        "set_config('enable_mergejoin', 'off', false), set_config('plan_cache_mode', 'force_generic_plan', false), "
        "set_config('jit', 'off', false), set_config('synchronous_commit', CASE WHEN $2 = '' THEN "
        "current_setting('synchronous_commit') ELSE $2 END, false), set_config('DateStyle', 'ISO', false), "
        "set_config('standard_conforming_strings', 'on', false)";
    static const std::string state =
        "SELECT current_setting('server_version_num'), current_setting('server_encoding'), current_setting('fsync'), "
        "current_setting('synchronous_commit'), pg_is_in_recovery()";
    read(settings, Parameters{}
                       .add(std::to_string(options_.lock_timeout.count()))
                       .add(options_.accept_asynchronous_commit ? "off" : ""));
    const Result row = read(state);
    // First: another host may be the one to ask.
    if (row.text(0, 4) == "t") {
        raise({.kind = ErrorKind::read_only,
               .in_doubt = false,
               .message = where_ + " is a standby: " + std::string{rule_for("25006").advice}});
    }
    if (row.integer(0, 0) < least_version) {
        throw ConfigError(where_ + " is of version " + PQparameterStatus(connection_.get(), "server_version") +
                          "; the store needs 13 or later");
    }
    if (row.text(0, 1) != "UTF8") {
        throw ConfigError(where_ + " is in " + std::string{row.text(0, 1)} +
                          "; the store needs one in UTF-8: createdb --encoding=UTF8 --template=template0");
    }
    if (row.text(0, 2) == "off" && !options_.accept_fsync_off) {
        throw ConfigError("the server of " + where_ +
                          " runs with fsync=off, and loses what it has acknowledged when its machine dies; set it to "
                          "on, or say fsync=off in the URL, too");
    }
    if (row.text(0, 3) == "off" && !options_.accept_asynchronous_commit) {
        throw ConfigError("the server of " + where_ +
                          " runs with synchronous_commit=off, and loses what it has acknowledged when it dies; set it "
                          "to on for this role, or say synchronous_commit=off in the URL, too");
    }
}

bool Connection::is_usable() {
    if (is_broken_ || process_.is_another()) return false;
    // What comes unasked is the server's farewell.
    pollfd one{.fd = PQsocket(connection_.get()), .events = POLLIN, .revents = 0};
    return poll(&one, 1, 0) == 0;
}

std::optional<Result> Connection::next(SteadyTime until) {
    pg_conn* const connection = connection_.get();
    while (PQisBusy(connection) != 0) {
        // Where one of these fails, libpq gives a result that says so.
        const int unsent = PQflush(connection);
        if (unsent >= 0) {
            const auto events = static_cast<short>(POLLIN | (unsent > 0 ? POLLOUT : 0));
            if (!poll_until(PQsocket(connection), events, until)) return std::nullopt;
        }
        static_cast<void>(PQconsumeInput(connection));
    }
    return Result{PQgetResult(connection)};
}

Failure Connection::no_answer(std::string_view why) const {
    return {.kind = ErrorKind::unavailable,
            .in_doubt = false,
            .message = "no answer from " + where_ + ": " + std::string{why}};
}

Failure Connection::failure_of(const Result& result) const {
    const char* const state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    if (state == nullptr) return no_answer(one_line(PQerrorMessage(connection_.get())));
    const ErrorRule& rule = rule_for(state);
    const char* const said = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
    std::string text = where_ + " says: " + (said == nullptr ? "" : said) + " (SQLSTATE " + state + ")";
    if (!rule.advice.empty()) text += "; " + std::string{rule.advice};
    return {.kind = rule.kind, .in_doubt = false, .message = std::move(text)};
}

bool Connection::send(const Statement& statement, std::vector<Step>& steps) {
    const Parameters& parameters = statement.parameters;
    const auto count = static_cast<int>(parameters.size());
    std::vector<const char*> values;
    std::vector<int> lengths;
    for (const std::string& value : parameters.values()) {
        values.push_back(value.c_str());
        lengths.push_back(static_cast<int>(value.size()));
    }
    if (statement.is_run_once) {
        steps.push_back({});
        return PQsendQueryParams(connection_.get(), statement.sql.c_str(), count, nullptr, values.data(),
                                 lengths.data(), parameters.formats().data(), 0) == 1;
    }
    const auto [entry, is_new] = prepared_.try_emplace(statement.sql);
    if (is_new) {
        entry->second = name_of(statement.sql);
        steps.push_back({.is_preparation = true, .sql = &statement.sql});
        if (PQsendPrepare(connection_.get(), entry->second.c_str(), statement.sql.c_str(), 0, nullptr) != 1)
            return false;
    }
    steps.push_back({});
    return PQsendQueryPrepared(connection_.get(), entry->second.c_str(), count, values.data(), lengths.data(),
                               parameters.formats().data(), 0) == 1;
}

Outcome Connection::run(std::span<const Statement> statements) {
    Outcome outcome;
    outcome.results.reserve(statements.size());
    is_broken_ = true;  // until the server has answered all of it
    std::vector<Step> steps;
    for (const Statement& statement : statements) {
        if (send(statement, steps)) continue;
        // Without its end the server takes it for no transaction, and forgets it with the connection.
        outcome.failure = no_answer(one_line(PQerrorMessage(connection_.get())));
        outcome.is_lost = true;
        return outcome;
    }
    if (PQpipelineSync(connection_.get()) == 1) {
        receive(outcome, steps);
    } else {
        outcome.failure = left_in_doubt(no_answer(one_line(PQerrorMessage(connection_.get()))));
        outcome.is_lost = true;
    }
    return outcome;
}

void Connection::receive(Outcome& outcome, std::span<const Step> steps) {
    const auto nobody_knows = [&](Failure failure) { outcome.failure = left_in_doubt(std::move(failure)); };
    const SteadyTime until = Clock::system().until(options_.timeout);
    const auto is_lost = [&] { return PQstatus(connection_.get()) == CONNECTION_BAD; };
    for (const Step& step : steps) {
        std::optional<Result> result = next(until);
        if (!result) return nobody_knows(no_answer("none within " + in_seconds(options_.timeout)));
        const ExecStatusType status = PQresultStatus(result->get());
        if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
            if (!step.is_preparation) outcome.results.push_back(*std::move(result));
        } else {
            if (step.is_preparation) prepared_.erase(*step.sql);
            if (!outcome.failure) {
                if (!is_of_the_server(*result)) {
                    outcome.is_lost = true;
                    return nobody_knows(failure_of(*result));
                }
                outcome.failure = failure_of(*result);
                outcome.worth_repeating = rule_for(PQresultErrorField(result->get(), PG_DIAG_SQLSTATE)).repeated;
            }
            if (is_lost()) return;
        }
        do {  // to the end of this statement's
            result = next(until);
        } while (result && *result);
    }
    for (;;) {
        const std::optional<Result> result = next(until);
        if (!result) {
            if (!outcome.failure) nobody_knows(no_answer("none within " + in_seconds(options_.timeout)));
            return;
        }
        if (PQresultStatus(result->get()) == PGRES_PIPELINE_SYNC) break;
        if (outcome.failure && is_lost()) return;
        if (!*result || outcome.failure) continue;
        // A plain error while it commits undoes all of it; whatever ends the session may come after the commit.
        if (!is_of_the_server(*result) ||
            std::string_view{PQresultErrorField(result->get(), PG_DIAG_SEVERITY_NONLOCALIZED)} != "ERROR") {
            outcome.is_lost = true;
            return nobody_knows(failure_of(*result));
        }
        outcome.failure = failure_of(*result);
        outcome.worth_repeating = rule_for(PQresultErrorField(result->get(), PG_DIAG_SQLSTATE)).repeated;
    }
    is_broken_ = false;
}

Result Connection::read(const std::string& sql, Parameters parameters) {
    const Statement statement{sql, std::move(parameters)};
    Outcome outcome = run({&statement, 1});
    if (outcome.failure) raise_certain(*std::move(outcome.failure));
    return std::move(outcome.results.front());
}

void Connection::listen(const std::string& channel) {
    const std::string sql = "LISTEN " + quoted_name(channel);
    const Statement statement{sql, {}, true};
    Outcome outcome = run({&statement, 1});
    if (outcome.failure) raise_certain(*std::move(outcome.failure));
}

std::vector<std::string> Connection::heard() {
    std::vector<std::string> all;
    if (PQconsumeInput(connection_.get()) != 1)
        throw UnavailableError(no_answer(one_line(PQerrorMessage(connection_.get()))).message);
    while (const std::unique_ptr<PGnotify, decltype(&PQfreemem)> one{PQnotifies(connection_.get()), PQfreemem}) {
        if (one->be_pid != PQbackendPID(connection_.get())) all.emplace_back(one->extra);
    }
    return all;
}

int Connection::socket() const {
    return PQsocket(connection_.get());
}

}  // namespace varve::postgres
