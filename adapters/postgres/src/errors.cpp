#include "errors.h"

#include <algorithm>
#include <array>

namespace varve::postgres {
namespace {

using enum ErrorKind;

constexpr std::string_view wrong_login =
    "look at the user, the password (PGPASSFILE, or PGPASSWORD) and the server's pg_hba.conf";
constexpr std::string_view no_database = "create it, or name another one in the URL";
constexpr std::string_view pooled = "a pooler must not change the server within a session: use session pooling";
constexpr std::string_view standby =
    "connect to the primary, or name all hosts and target_session_attrs=read-write in the URL";
constexpr std::string_view too_many = "raise max_connections, or lower the connections of the stores' URLs";
constexpr std::string_view full = "free some space where the server keeps its data";

constexpr std::array rules{
    ErrorRule{"08", unavailable, false, ""},
    ErrorRule{"0A000", config, false, "the server, or a pooler before it, does not do what the store needs of it"},
    ErrorRule{"22", invalid, false, ""},
    ErrorRule{"23", invalid, false, "a constraint that the store does not know of is on the table"},
    ErrorRule{"23505", busy, true, "a client that is not varve's writes to the same items"},
    ErrorRule{"25006", read_only, false, standby},
    ErrorRule{"26000", config, false, pooled},
    ErrorRule{"28", config, false, wrong_login},
    ErrorRule{"3D000", config, false, no_database},
    ErrorRule{"3F000", config, false, "the schema is gone, or may not be used by this role"},
    ErrorRule{"40001", busy, true, ""},
    ErrorRule{"40P01", busy, true, ""},
    ErrorRule{"42501", config, false, "grant the role what the SQL of postgres::ddl grants"},
    ErrorRule{"42704", config, false, pooled},
    ErrorRule{"42P01", config, false, "the table is gone"},
    ErrorRule{"42P05", config, false, pooled},
    ErrorRule{"53100", storage_full, false, full},
    ErrorRule{"53200", unavailable, false, "the server has no memory left"},
    ErrorRule{"53300", unavailable, false, too_many},
    ErrorRule{"54000", invalid, false, ""},
    ErrorRule{"55P03", busy, false, "another process has kept its transaction open for longer than lock_timeout_ms"},
    ErrorRule{"57014", busy, false, "the server's statement_timeout is over, or an operator has cancelled it"},
    ErrorRule{"57P01", unavailable, true, ""},
    ErrorRule{"57P02", unavailable, false, ""},
    ErrorRule{"57P03", unavailable, false, ""},
    ErrorRule{"58030", unavailable, false, "look at the server's disk"},
    ErrorRule{"XX001", corruption, false, "look at the server's log; restore a backup"},
    ErrorRule{"XX002", corruption, false, "look at the server's log; REINDEX may help"},
    ErrorRule{"", unavailable, false, ""},
};

struct Sign {
    std::string_view words;
    ErrorRule rule;
};

// As the server and libpq say it; in another language the message alone has to tell.
constexpr std::array signs{
    Sign{"authentication failed", {"28P01", config, false, wrong_login}},
    Sign{"no password supplied", {"28P01", config, false, wrong_login}},
    Sign{"no pg_hba.conf entry", {"28000", config, false, wrong_login}},
    Sign{"is not permitted to log in", {"28000", config, false, wrong_login}},
    Sign{"certificate", {"28000", config, false, "look at sslmode, sslrootcert, sslcert and sslkey"}},
    Sign{"does not support SSL",
         {"08", config, false, "look at sslmode and sslrootcert, and whether the server has TLS"}},
    Sign{"permission denied for database", {"42501", config, false, "grant the role CONNECT on it"}},
    Sign{"session is read-only", {"25006", read_only, false, standby}},
    Sign{"in hot standby", {"25006", read_only, false, standby}},
    Sign{"too many clients", {"53300", unavailable, false, too_many}},
    Sign{"too many connections", {"53300", unavailable, false, too_many}},
    Sign{"remaining connection slots", {"53300", unavailable, false, too_many}},
};

}  // namespace

std::span<const ErrorRule> error_rules() {
    return rules;
}

const ErrorRule& rule_for(std::string_view code) {
    for (const std::string_view part : {code, code.substr(0, 2)}) {
        const auto found = std::ranges::find(rules, part, &ErrorRule::code);
        if (found != rules.end()) return *found;
    }
    return rules.back();
}

ErrorRule rule_for_connecting(std::string_view message) {
    const auto has = [&](std::string_view words) { return message.find(words) != std::string_view::npos; };
    if (has("database \"") && has("does not exist")) return {"3D000", config, false, no_database};
    if (has("role \"") && has("does not exist")) return {"28000", config, false, wrong_login};
    for (const Sign& sign : signs) {
        if (has(sign.words)) return sign.rule;
    }
    return {"08", unavailable, false, ""};
}

std::string_view one_line(std::string_view message) {
    for (const std::string_view severity : {"ERROR:  ", "FATAL:  ", "PANIC:  "}) {
        if (message.starts_with(severity)) message.remove_prefix(severity.size());
    }
    return message.substr(0, message.find('\n'));
}

}  // namespace varve::postgres
