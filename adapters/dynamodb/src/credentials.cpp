#include "credentials.h"

#include "item_json.h"
#include "messages.h"
#include "trimmed.h"

#include <varve/core/error.h>

#include <algorithm>
#include <map>

namespace varve::dynamodb {
namespace {

/// Renewed so early that a request signed with the old ones still arrives in time, even where renewing fails at first.
constexpr std::chrono::minutes renewed_before{5};
/// Between two times that the source is asked: while the credentials are good, and when there is nothing to lose. Twice
/// that at most, lest all processes ask together.
constexpr std::chrono::seconds pause_while_good{30};
constexpr std::chrono::seconds pause_while_over{1};

constexpr std::chrono::milliseconds metadata_timeout{1'000};
constexpr std::chrono::milliseconds token_service_timeout{5'000};
constexpr const char* machine_address = "http://169.254.169.254";
constexpr const char* container_address = "http://169.254.170.2";

/// A pair where both halves are there, nothing where neither is; `where` names them in the message.
std::optional<DatedCredentials> pair(const std::optional<std::string>& id, const std::optional<std::string>& secret,
                                     const std::optional<std::string>& token, const std::string& where) {
    const bool has_id = id && !id->empty();
    const bool has_secret = secret && !secret->empty();
    if (!has_id && !has_secret) return std::nullopt;
    if (!has_id || !has_secret) {
        throw ConfigError(where + " has " +
                          (has_id ? "an access key id without its secret" : "a secret without its access key id") +
                          "; set both or neither");
    }
    // They become headers and parts of a signature.
    for (const std::string& part : {*id, *secret, token.value_or("")}) {
        if (std::ranges::any_of(part, [](char c) { return c <= ' ' || c >= '\x7f'; })) {
            throw ConfigError(where +
                              " has a key or token with a blank, a line break or another character that belongs "
                              "to none; copy it again");
        }
    }
    return DatedCredentials{.credentials = {*id, *secret, token.value_or("")}};
}

using Section = std::map<std::string, std::string>;

/// The section of an INI file that `is_it` knows by what stands between its brackets; nullopt if it has none.
std::optional<Section> section_of(std::string_view text, const std::function<bool(std::string_view)>& is_it) {
    std::optional<Section> section;
    bool inside = false;
    while (!text.empty()) {
        const std::string_view whole = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(whole.size() + 1, text.size()));
        const std::string_view line = trimmed(whole);
        if (line.empty() || line.front() == '#' || line.front() == ';') continue;
        if (line.front() == '[') {
            inside = is_it(trimmed(line.substr(1, line.find(']') - 1)));
            if (inside && !section) section.emplace();
            continue;
        }
        const std::size_t equals = line.find('=');
        // What is indented belongs to the setting above it, and is none of those asked for.
        if (!inside || equals == std::string_view::npos || whole.front() == ' ' || whole.front() == '\t') continue;
        section->insert_or_assign(std::string{trimmed(line.substr(0, equals))},
                                  std::string{trimmed(line.substr(equals + 1))});
    }
    return section;
}

/// A profile's section in the file of settings: "profile NAME", with any blanks between, or in quotes.
bool is_profile(std::string_view header, std::string_view name) {
    constexpr std::string_view word = "profile";
    if (!header.starts_with(word)) return false;
    std::string_view rest = header.substr(word.size());
    if (rest.empty() || (rest.front() != ' ' && rest.front() != '\t')) return false;
    rest = trimmed(rest);
    if (rest.size() >= 2 && (rest.front() == '"' || rest.front() == '\'') && rest.back() == rest.front())
        rest = rest.substr(1, rest.size() - 2);
    return rest == name;
}

std::optional<std::string> setting(const Section& section, const std::string& name) {
    const auto found = section.find(name);
    return found == section.end() ? std::nullopt : std::optional{found->second};
}

/// nullopt: never.
std::optional<Time> expiration_of(const std::optional<std::string>& text, const std::string& where) {
    if (!text) return std::nullopt;
    try {
        return parse_time(*text);
    } catch (const InvalidError&) {
        throw UnavailableError(where + " answers with a time that cannot be read");
    }
}

/// The text of the first such element of XML whose texts need no escapes; nullopt if there is none.
std::optional<std::string> element_of(std::string_view xml, const std::string& name) {
    const std::string begin = "<" + name + ">";
    const std::size_t at = xml.find(begin);
    if (at == std::string_view::npos) return std::nullopt;
    const std::size_t from = at + begin.size();
    const std::size_t end = xml.find("</" + name + ">", from);
    if (end == std::string_view::npos || xml.substr(from, end - from).find_first_of("<&") != std::string_view::npos)
        return std::nullopt;
    return std::string{xml.substr(from, end - from)};
}

/// The host of AWS's Security Token Service; a region that is none would get into it.
std::string token_service(const std::string& region) {
    if (region.empty()) return "sts.amazonaws.com";
    const bool good = std::ranges::all_of(
        region, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
    if (!good) throw ConfigError("AWS_REGION is named as in eu-west-1");
    return "sts." + region + (region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
}

/// The JSON that container and machine endpoints answer with.
DatedCredentials parse_endpoint_credentials(const std::string& body, const std::string& where) {
    const rapidjson::Document answer = [&] {
        try {
            return parse_object(body, "the answer");
        } catch (const CorruptionError&) {
            throw UnavailableError(where + " does not answer with a JSON object");
        }
    }();
    const auto text = [&answer](const char* name) -> std::optional<std::string> {
        const auto member = answer.FindMember(name);
        if (member == answer.MemberEnd() || !member->value.IsString()) return std::nullopt;
        return std::string{member->value.GetString(), member->value.GetStringLength()};
    };
    auto found = pair(text("AccessKeyId"), text("SecretAccessKey"), text("Token"), where);
    if (!found) throw UnavailableError(where + " answers without credentials");
    found->expires = expiration_of(text("Expiration"), where);
    return *std::move(found);
}

HttpRequest metadata_request(std::string method, std::string url, std::vector<Header> headers) {
    return {.url = std::move(url),
            .request = {.method = std::move(method), .headers = std::move(headers)},
            .connect_timeout = metadata_timeout,
            .timeout = metadata_timeout};
}

/// The machine's metadata service, where there is one, may fail or refuse.
void check_machine(const HttpAnswer& answer, const std::string& what) {
    const std::string message =
        "the machine's metadata service does not give " + what + ": status " + std::to_string(answer.status);
    if (answer.status == 401 || answer.status == 403) {
        throw ConfigError(message +
                          "; switch it on for this machine, or set AWS_EC2_METADATA_DISABLED=true and give credentials "
                          "in another way");
    }
    if (answer.status == 429 || answer.status >= 500) throw UnavailableError(message);
}

/// Plain http carries secrets only where nobody else listens.
bool may_tell_secrets(const std::string& url) {
    if (url.starts_with("https://")) return true;
    if (!url.starts_with("http://")) return false;
    const std::string_view rest = std::string_view{url}.substr(7);
    std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
    if (host.find('@') != std::string_view::npos) return false;
    host = host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
    return host == "localhost" || host == "127.0.0.1" || host == "[::1]" || host == "169.254.170.2" ||
           host == "169.254.170.23" || host == "[fd00:ec2::23]";
}

}  // namespace

std::optional<DatedCredentials> credentials_from_environment(const Surroundings& surroundings) {
    return pair(surroundings.variable("AWS_ACCESS_KEY_ID"), surroundings.variable("AWS_SECRET_ACCESS_KEY"),
                surroundings.variable("AWS_SESSION_TOKEN"),
                "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)");
}

std::optional<DatedCredentials> credentials_from_web_identity(const Surroundings& surroundings) {
    const std::string path = surroundings.variable("AWS_WEB_IDENTITY_TOKEN_FILE").value_or("");
    const std::string role = surroundings.variable("AWS_ROLE_ARN").value_or("");
    if (path.empty()) return std::nullopt;
    if (role.empty())
        throw ConfigError("AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not; set both or neither");
    const auto token = surroundings.file(path);
    if (!token) throw ConfigError("the file that AWS_WEB_IDENTITY_TOKEN_FILE names is not there: " + quotable(path));
    const std::string session = surroundings.variable("AWS_ROLE_SESSION_NAME").value_or("varve");
    const auto region = surroundings.variable("AWS_REGION");
    const std::string host = token_service(region ? *region : surroundings.variable("AWS_DEFAULT_REGION").value_or(""));
    HttpRequest request{.url = "https://" + host + "/",
                        .request = {.method = "POST",
                                    .headers = {{"host", host}, {"content-type", "application/x-www-form-urlencoded"}},
                                    .body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15"},
                        .timeout = token_service_timeout};
    const auto add = [&request](const char* name, std::string_view value) {
        request.request.body.append("&").append(name).append("=").append(signature::percent_encoded(value));
    };
    add("RoleArn", role);
    add("RoleSessionName", session);
    add("WebIdentityToken", trimmed(*token));
    const HttpAnswer answer = surroundings.fetch(request);
    const std::string where = "the token service at " + host;
    if (!answer.arrived()) throw UnavailableError(where + " does not answer: " + quotable(answer.error));
    if (answer.status != 200) {
        const std::string code = element_of(answer.body, "Code").value_or("status " + std::to_string(answer.status));
        const std::vector<std::string> secret{std::string{trimmed(*token)}};
        const std::string message =
            where + " gives no credentials for the role '" + quotable(role) + "': " + quotable(code, secret);
        if (answer.status < 500)
            throw ConfigError(message + "; check AWS_ROLE_ARN, its trust policy and the token's file");
        throw UnavailableError(message);
    }
    auto found = pair(element_of(answer.body, "AccessKeyId"), element_of(answer.body, "SecretAccessKey"),
                      element_of(answer.body, "SessionToken"), where);
    if (!found) throw UnavailableError(where + " answers without credentials");
    found->expires = expiration_of(element_of(answer.body, "Expiration"), where);
    return found;
}

std::optional<Profile> profile_from_files(const Surroundings& surroundings, const std::string& name) {
    const std::string home = surroundings.variable("HOME").value_or("");
    const auto path_of = [&](const char* variable, const char* in_home) {
        const auto given = surroundings.variable(variable);
        return given && !given->empty() ? *given : home + in_home;
    };
    std::optional<Profile> profile;
    const auto add = [&](const std::string& path, const auto& find) {
        const auto text = surroundings.file(path);
        const std::optional<Section> section = text ? find(*text) : std::nullopt;
        if (!section) return;
        if (!profile) profile.emplace();
        if (!profile->credentials) {
            profile->credentials =
                pair(setting(*section, "aws_access_key_id"), setting(*section, "aws_secret_access_key"),
                     setting(*section, "aws_session_token"), "profile '" + quotable(name) + "' in " + quotable(path));
        }
        for (const char* source : {"role_arn", "credential_process", "sso_session", "sso_start_url", "login_session"}) {
            if (profile->unsupported.empty() && section->contains(source)) profile->unsupported = source;
        }
        if (!profile->region) profile->region = setting(*section, "region");
    };
    const auto bare = [&name](std::string_view header) { return header == name; };
    add(path_of("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials"),
        [&](const std::string& text) { return section_of(text, bare); });
    add(path_of("AWS_CONFIG_FILE", "/.aws/config"), [&](const std::string& text) {
        auto section = section_of(text, [&name](std::string_view header) { return is_profile(header, name); });
        return section || name != "default" ? section : section_of(text, bare);
    });
    return profile;
}

std::string profile_of(const Surroundings& surroundings) {
    std::string name = surroundings.variable("AWS_PROFILE").value_or("");
    return name.empty() ? "default" : name;
}

std::optional<DatedCredentials> credentials_from_container(const Surroundings& surroundings) {
    const auto relative = surroundings.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const auto full = surroundings.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    std::string url;
    if (relative && !relative->empty()) {
        if (!relative->starts_with('/'))
            throw ConfigError("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI begins with a slash");
        url = container_address + *relative;
    } else if (full && !full->empty()) {
        url = *full;
    } else {
        return std::nullopt;
    }
    if (!may_tell_secrets(url)) {
        throw ConfigError("AWS_CONTAINER_CREDENTIALS_FULL_URI names neither https nor a local host");
    }
    std::vector<Header> headers{{"Accept", "application/json"}};
    auto token = surroundings.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (const auto path = surroundings.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); path && !path->empty()) {
        token = surroundings.file(*path);
        if (!token) throw ConfigError("the file that AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE names is not there");
        *token = trimmed(*token);
    }
    if (token && !token->empty()) {
        if (token->find_first_of("\r\n") != std::string::npos) {
            throw ConfigError("the container's authorization token has more than one line");
        }
        headers.push_back({"Authorization", *token});
    }
    const HttpAnswer answer = surroundings.fetch(metadata_request("GET", url, std::move(headers)));
    if (!answer.arrived())
        throw UnavailableError("the container's credentials cannot be fetched: " + quotable(answer.error));
    if (answer.status != 200) {
        throw UnavailableError("the container's credentials cannot be fetched: status " +
                               std::to_string(answer.status));
    }
    return parse_endpoint_credentials(answer.body, "the container's endpoint");
}

std::optional<DatedCredentials> credentials_from_machine(const Surroundings& surroundings) {
    std::string disabled = surroundings.variable("AWS_EC2_METADATA_DISABLED").value_or("");
    std::ranges::transform(disabled, disabled.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
    if (disabled == "true") return std::nullopt;
    const std::string base = std::string{machine_address} + "/latest/";
    const HttpAnswer token = surroundings.fetch(
        metadata_request("PUT", base + "api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", "300"}}));
    check_machine(token, "a token");
    // Without a service there is nobody who answers, or something else does.
    if (token.status != 200 || token.body.find_first_of("\r\n") != std::string::npos) return std::nullopt;
    const std::vector<Header> headers{{"X-aws-ec2-metadata-token", token.body}};
    const std::string roles = base + "meta-data/iam/security-credentials/";
    const HttpAnswer role = surroundings.fetch(metadata_request("GET", roles, headers));
    if (role.status == 404) return std::nullopt;
    check_machine(role, "its role");
    const std::string name{trimmed(std::string_view{role.body}.substr(0, role.body.find('\n')))};
    const bool plain_name = std::ranges::all_of(name, [](char c) {
        return c > ' ' && c < '\x7f' && std::string_view{"/?#%\\"}.find(c) == std::string_view::npos;
    });
    if (role.status != 200 || name.empty() || !plain_name) {
        throw UnavailableError("the machine's metadata service does not tell its role");
    }
    const HttpAnswer answer = surroundings.fetch(metadata_request("GET", roles + name, headers));
    check_machine(answer, "its role's credentials");
    if (answer.status != 200)
        throw UnavailableError("the machine's metadata service does not give its role's credentials");
    return parse_endpoint_credentials(answer.body, "the machine's metadata service");
}

CredentialsSource credentials_of(Surroundings surroundings, std::string profile) {
    return [surroundings = std::move(surroundings), asked_for = std::move(profile)]() -> DatedCredentials {
        const auto keys_of = [&surroundings](const std::string& name) -> std::optional<DatedCredentials> {
            const auto found = profile_from_files(surroundings, name);
            if (!found || found->credentials || found->unsupported.empty())
                return found ? found->credentials : std::nullopt;
            throw ConfigError("profile '" + quotable(name) + "' takes its credentials by " + found->unsupported +
                              ", which varve does not; name one with keys, or set AWS_ACCESS_KEY_ID, "
                              "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN as 'aws configure export-credentials "
                              "--format env' prints them");
        };
        if (!asked_for.empty()) {
            if (const auto found = keys_of(asked_for)) return *found;
            throw ConfigError("profile '" + quotable(asked_for) + "' has no access key in the shared files");
        }
        if (auto found = credentials_from_environment(surroundings)) return *std::move(found);
        if (auto found = credentials_from_web_identity(surroundings)) return *std::move(found);
        const std::string name = profile_of(surroundings);
        if (const auto found = keys_of(name)) return *found;
        if (auto found = credentials_from_container(surroundings)) return *std::move(found);
        if (auto found = credentials_from_machine(surroundings)) return *std::move(found);
        throw ConfigError(
            "no credentials: looked in the environment (AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE), in the shared "
            "files (profile '" +
            quotable(name) + "'), at the container's endpoint and at the machine's metadata service");
    };
}

CredentialsCache::CredentialsCache(CredentialsSource source, Runtime runtime)
    : source_(std::move(source)), runtime_(runtime) {}

bool CredentialsCache::good(Time now) const {
    return current_ && current_->credentials != refused_ && (!current_->expires || now < *current_->expires);
}

bool CredentialsCache::may_ask() const {
    return !ask_again_ || runtime_.clock.get().steady_now() >= *ask_again_;
}

Credentials CredentialsCache::get() {
    MutexLock lock{mutex_};
    for (;;) {
        const Time now = runtime_.clock.get().now();
        const bool over_soon = current_ && current_->expires && now >= *current_->expires - renewed_before;
        if (good(now) && (!over_soon || renewing_ || !may_ask())) return current_->credentials;
        if (!renewing_) {
            if (may_ask()) break;
            if (failure_) std::rethrow_exception(failure_);
            return current_->credentials;
        }
        lock.wait(renewed_);
    }
    renewing_ = true;
    lock.unlock();
    std::optional<DatedCredentials> found;
    std::exception_ptr failure;
    try {
        found = source_();
    } catch (...) {
        failure = std::current_exception();
    }
    lock.lock();
    renewing_ = false;
    renewed_.notify_all();
    failure_ = failure;
    if (found) current_ = *std::move(found);
    const Time now = runtime_.clock.get().now();
    Duration pause = good(now) ? pause_while_good : pause_while_over;
    pause += Duration{
        static_cast<Duration::rep>(runtime_.random.get().below(static_cast<std::uint64_t>(pause.count()) + 1))};
    if (good(now) && current_->expires) pause = std::min(pause, *current_->expires - now);
    asked_ = runtime_.clock.get().steady_now();
    ask_again_ = asked_ + pause;
    if (failure_ && !good(now)) std::rethrow_exception(failure_);
    return current_->credentials;
}

bool CredentialsCache::forget(const Credentials& refused) {
    const MutexLock lock{mutex_};
    if (!current_ || current_->credentials != refused) return true;
    refused_ = refused;
    ask_again_ = std::min<SteadyTime>(*ask_again_, asked_ + pause_while_over);
    return renewing_ || may_ask();
}

std::vector<std::string> CredentialsCache::secrets() const {
    const MutexLock lock{mutex_};
    if (!current_) return {};
    return {current_->credentials.secret_access_key, current_->credentials.session_token};
}

}  // namespace varve::dynamodb
