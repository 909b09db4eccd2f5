#include "credentials.h"

#include "adapters/dynamodb/secrets.h"

#include <varve/core/error.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/seeded_random.h>

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

/// A process, its files and the endpoints it can reach.
struct Machine {
    std::map<std::string, std::string> variables{{"HOME", "/users/me"}};
    std::map<std::string, std::string> files;
    std::map<std::string, HttpAnswer> endpoints;  ///< by method and URL
    std::vector<HttpRequest> fetched;

    Surroundings surroundings() {
        const auto lookup = [](const std::map<std::string, std::string>& in, const std::string& name) {
            const auto found = in.find(name);
            return found == in.end() ? std::nullopt : std::optional{found->second};
        };
        return {.variable = [this, lookup](const std::string& name) { return lookup(variables, name); },
                .file = [this, lookup](const std::string& path) { return lookup(files, path); },
                .fetch =
                    [this](const HttpRequest& request) {
                        fetched.push_back(request);
                        const auto found = endpoints.find(request.request.method + " " + request.url);
                        return found == endpoints.end() ? HttpAnswer{.error = "nobody is there"} : found->second;
                    }};
    }
    DatedCredentials find(const std::string& profile = "") { return credentials_of(surroundings(), profile)(); }

    /// Requires that looking fails, without a word of what is secret.
    template <class E>
    std::string failure(const std::string& profile = "") {
        try {
            (void)find(profile);
        } catch (const E& error) {
            const std::string message = error.what();
            EXPECT_EQ(message.find(secret), std::string::npos) << message;
            EXPECT_EQ(message.find(token), std::string::npos) << message;
            return message;
        }
        ADD_FAILURE() << "no error";
        return {};
    }
};

HttpAnswer served(std::string body) {
    return {.status = 200, .body = std::move(body)};
}

const std::string endpoint_answer = R"({"AccessKeyId":"AKID","SecretAccessKey":")" + secret + R"(","Token":")" + token +
                                    R"(","Expiration":"2026-01-01T06:00:00Z"})";

TEST(CredentialsSources, the_environment_comes_first) {
    Machine machine;
    machine.variables["AWS_ACCESS_KEY_ID"] = "AKID";
    machine.variables["AWS_SECRET_ACCESS_KEY"] = secret;
    machine.files["/users/me/.aws/credentials"] = "[default]\naws_access_key_id = other\naws_secret_access_key = x\n";
    EXPECT_EQ(machine.find().credentials, (Credentials{"AKID", secret}));
    machine.variables["AWS_SESSION_TOKEN"] = token;
    EXPECT_EQ(machine.find().credentials, (Credentials{"AKID", secret, token}));
}

TEST(CredentialsSources, half_a_pair_is_an_error_that_tells_no_secret) {
    Machine machine;
    machine.variables["AWS_SECRET_ACCESS_KEY"] = secret;
    EXPECT_NE(machine.failure<ConfigError>().find("AWS_ACCESS_KEY_ID"), std::string::npos);
    machine.variables = {{"HOME", "/users/me"}, {"AWS_ACCESS_KEY_ID", "AKID"}};
    machine.failure<ConfigError>();
    machine.variables = {{"HOME", "/users/me"}};
    machine.files["/users/me/.aws/credentials"] = "[default]\naws_secret_access_key=" + secret + "\n";
    EXPECT_NE(machine.failure<ConfigError>().find("/users/me/.aws/credentials"), std::string::npos);
}

TEST(CredentialsSources, what_is_no_key_is_an_error_that_does_not_show_it) {
    for (const auto& [name, value] : std::initializer_list<std::pair<std::string, std::string>>{
             {"AWS_ACCESS_KEY_ID", "AKID\n"},
             {"AWS_SECRET_ACCESS_KEY", secret + "\r\nx-injected: 1"},
             {"AWS_SESSION_TOKEN", token + " "},
             {"AWS_SESSION_TOKEN", token + "\xc2\xa0"}}) {
        Machine machine;
        machine.variables.insert({{"AWS_ACCESS_KEY_ID", "AKID"}, {"AWS_SECRET_ACCESS_KEY", secret}});
        machine.variables[name] = value;
        EXPECT_NE(machine.failure<ConfigError>().find("line break"), std::string::npos) << name;
    }
}

TEST(CredentialsSources, profiles_are_found_in_both_files) {
    Machine machine;
    machine.files["/users/me/.aws/credentials"] =
        "# comment\n[default]\naws_access_key_id=D\naws_secret_access_key=d\n"
        "[ work ]\r\naws_access_key_id = W\r\naws_secret_access_key = w/+=\r\n"
        "aws_session_token = t==\r\n";
    machine.files["/users/me/.aws/config"] =
        "[profile work]\nregion = eu-west-1\ns3 =\n  region = nested\n"
        "[profile other]\naws_access_key_id=O\naws_secret_access_key=o\n";
    EXPECT_EQ(machine.find().credentials, (Credentials{"D", "d"}));
    EXPECT_EQ(machine.find("work").credentials, (Credentials{"W", "w/+=", "t=="}));
    EXPECT_EQ(machine.find("other").credentials, (Credentials{"O", "o"}));
    EXPECT_EQ(profile_from_files(machine.surroundings(), "work")->region, "eu-west-1");
    machine.variables["AWS_PROFILE"] = "other";
    EXPECT_EQ(machine.find().credentials, (Credentials{"O", "o"}));
    machine.variables["AWS_SHARED_CREDENTIALS_FILE"] = "/etc/keys";
    machine.files["/etc/keys"] = "[other]\naws_access_key_id=E\naws_secret_access_key=e";
    EXPECT_EQ(machine.find().credentials, (Credentials{"E", "e"}));
    EXPECT_NE(machine.failure<ConfigError>("absent").find("absent"), std::string::npos);
}

TEST(CredentialsSources, a_profile_that_is_asked_for_beats_the_environment) {
    Machine machine;
    machine.variables["AWS_ACCESS_KEY_ID"] = "AKID";
    machine.variables["AWS_SECRET_ACCESS_KEY"] = secret;
    machine.files["/users/me/.aws/credentials"] = "[work]\naws_access_key_id=W\naws_secret_access_key=w\n";
    EXPECT_EQ(machine.find("work").credentials, (Credentials{"W", "w"}));
}

TEST(CredentialsSources, a_profile_without_keys_that_names_another_source_is_refused_by_that_name) {
    for (const char* source : {"role_arn", "credential_process", "sso_session"}) {
        Machine machine;
        machine.files["/users/me/.aws/config"] =
            std::string{"[default]\nregion = eu-west-1\n"} + source + " = x\n[profile work]\n" + source + " = x\n";
        for (const char* profile : {"", "work"})
            EXPECT_NE(machine.failure<ConfigError>(profile).find(source), std::string::npos);
        EXPECT_TRUE(machine.fetched.empty());
        machine.files["/users/me/.aws/credentials"] = "[work]\naws_access_key_id=W\naws_secret_access_key=w\n";
        EXPECT_EQ(machine.find("work").credentials.access_key_id, "W");
    }
}

TEST(CredentialsSources, a_web_identity_is_exchanged_for_its_roles_credentials) {
    Machine machine;
    machine.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/run/token";
    machine.variables["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/bank";
    machine.variables["AWS_REGION"] = "eu-west-1";
    machine.files["/run/token"] = "to+ken=\n";
    machine.files["/users/me/.aws/credentials"] = "[default]\naws_access_key_id = other\naws_secret_access_key = x\n";
    const std::string url = "POST https://sts.eu-west-1.amazonaws.com/";
    machine.endpoints[url] = served(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
        "<AccessKeyId>AKID</AccessKeyId><SecretAccessKey>" +
        secret + "</SecretAccessKey><SessionToken>" + token +
        "</SessionToken><Expiration>2026-01-01T06:00:00Z</Expiration></Credentials>"
        "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>");
    const DatedCredentials found = machine.find();
    EXPECT_EQ(found.credentials, (Credentials{"AKID", secret, token}));
    EXPECT_EQ(found.expires, parse_time("2026-01-01T06:00:00Z"));
    EXPECT_EQ(machine.fetched.at(0).request.body,
              "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fbank"
              "&RoleSessionName=varve&WebIdentityToken=to%2Bken%3D");

    machine.files["/run/token"] = token;
    machine.endpoints[url] = {.status = 400, .body = "<Error><Code>InvalidIdentityToken</Code><Message>" + token};
    EXPECT_NE(machine.failure<ConfigError>().find("InvalidIdentityToken"), std::string::npos);
    machine.endpoints[url] = {.status = 503, .body = secret};
    machine.failure<UnavailableError>();
    machine.endpoints[url] = served("<AccessKeyId>AKID</AccessKeyId><SecretAccessKey>" + secret);
    machine.failure<Error>();
    machine.files.erase("/run/token");
    EXPECT_NE(machine.failure<ConfigError>().find("/run/token"), std::string::npos);
    machine.variables["AWS_REGION"] = "evil.example.com/";
    machine.files["/run/token"] = token;
    machine.failure<ConfigError>();
    machine.variables.erase("AWS_ROLE_ARN");
    EXPECT_NE(machine.failure<ConfigError>().find("AWS_ROLE_ARN"), std::string::npos);
}

TEST(CredentialsSources, a_containers_endpoint_is_asked_with_its_token) {
    Machine machine;
    machine.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/creds";
    machine.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "/run/token";
    machine.files["/run/token"] = "Basic " + token + "\n";
    machine.endpoints["GET http://169.254.170.2/v2/creds"] = served(endpoint_answer);
    const DatedCredentials found = machine.find();
    EXPECT_EQ(found.credentials, (Credentials{"AKID", secret, token}));
    EXPECT_EQ(found.expires, parse_time("2026-01-01T06:00:00Z"));
    EXPECT_EQ(machine.fetched.at(0).request.headers.back(), (Header{"Authorization", "Basic " + token}));
}

TEST(CredentialsSources, a_containers_endpoint_is_local_or_encrypted) {
    Machine machine;
    for (const char* url : {"http://example.com/x", "http://127.0.0.1.example.com/", "http://localhost@example.com/",
                            "ftp://127.0.0.1/"}) {
        machine.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url;
        machine.failure<ConfigError>();
    }
    EXPECT_TRUE(machine.fetched.empty());
    machine.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:80/x";
    machine.endpoints["GET http://127.0.0.1:80/x"] = served(endpoint_answer);
    EXPECT_EQ(machine.find().credentials.access_key_id, "AKID");
}

TEST(CredentialsSources, a_broken_endpoint_is_unavailable_and_its_answer_is_not_shown) {
    Machine machine;
    machine.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/c";
    for (const std::string& body :
         {"nonsense " + secret, R"({"SecretAccessKey":")" + secret + "\"}", std::string{"{}"},
          R"({"AccessKeyId":"A","SecretAccessKey":")" + secret + R"(","Expiration":"soon"})"}) {
        machine.endpoints["GET http://169.254.170.2/c"] = served(body);
        machine.failure<Error>();
    }
    machine.endpoints["GET http://169.254.170.2/c"] = {.status = 500, .body = secret};
    machine.failure<UnavailableError>();
    machine.endpoints.clear();
    machine.failure<UnavailableError>();
}

TEST(CredentialsSources, a_machines_role_is_asked_for_with_a_session) {
    Machine machine;
    const std::string base = "http://169.254.169.254/latest/";
    machine.endpoints["PUT " + base + "api/token"] = served("session");
    machine.endpoints["GET " + base + "meta-data/iam/security-credentials/"] = served("my-role\n");
    machine.endpoints["GET " + base + "meta-data/iam/security-credentials/my-role"] = served(endpoint_answer);
    EXPECT_EQ(machine.find().credentials, (Credentials{"AKID", secret, token}));
    EXPECT_EQ(machine.fetched.at(0).request.headers.at(0), (Header{"X-aws-ec2-metadata-token-ttl-seconds", "300"}));
    EXPECT_EQ(machine.fetched.at(2).request.headers.at(0), (Header{"X-aws-ec2-metadata-token", "session"}));
    machine.endpoints["GET " + base + "meta-data/iam/security-credentials/"] = served("../../user-data");
    machine.failure<UnavailableError>();
}

TEST(CredentialsSources, without_any_the_error_lists_where_it_looked) {
    Machine machine;
    const std::string message = machine.failure<ConfigError>();
    for (const char* place : {"AWS_ACCESS_KEY_ID", "default", "container", "machine"}) {
        EXPECT_NE(message.find(place), std::string::npos) << message;
    }
    machine.fetched.clear();
    machine.variables["AWS_EC2_METADATA_DISABLED"] = "true";
    machine.failure<ConfigError>();
    EXPECT_TRUE(machine.fetched.empty());
}

TEST(CredentialsSources, an_empty_profile_is_none) {
    Machine machine;
    machine.variables["AWS_PROFILE"] = "";
    machine.files["/users/me/.aws/credentials"] = "[default]\naws_access_key_id = AKID\naws_secret_access_key = x\n";
    EXPECT_EQ(machine.find().credentials.access_key_id, "AKID");
}

TEST(CredentialsSources, a_profile_is_found_however_its_section_is_written) {
    for (const char* header : {"[profile work]", "[ profile work ]", "[profile\t  work]", "[profile \"work\"]"}) {
        Machine machine;
        machine.files["/users/me/.aws/config"] =
            std::string{header} + "\naws_access_key_id = AKID\naws_secret_access_key = x\n[profile worker]\nregion=y\n";
        EXPECT_EQ(machine.find("work").credentials.access_key_id, "AKID") << header;
    }
    Machine machine;
    machine.files["/users/me/.aws/config"] =
        "[default]\naws_access_key_id = a\naws_secret_access_key = x\n"
        "[profile default]\naws_access_key_id = b\naws_secret_access_key = x\n";
    EXPECT_EQ(machine.find().credentials.access_key_id, "b") << "as AWS's tools have it";
    machine.files["/users/me/.aws/config"] = "[profilework]\naws_access_key_id = a\naws_secret_access_key = x\n";
    machine.failure<ConfigError>("work");
}

TEST(CredentialsSources, the_machine_is_not_asked_where_that_is_switched_off_in_any_case) {
    for (const char* value : {"true", "TRUE", "True"}) {
        Machine machine;
        machine.variables["AWS_EC2_METADATA_DISABLED"] = value;
        machine.failure<ConfigError>();
        EXPECT_TRUE(machine.fetched.empty()) << value;
    }
}

TEST(CredentialsSources, a_metadata_service_that_fails_or_refuses_is_named) {
    const std::string base = "http://169.254.169.254/latest/";
    const std::string roles = "GET " + base + "meta-data/iam/security-credentials/";
    Machine machine;
    machine.endpoints["PUT " + base + "api/token"] = {.status = 500};
    EXPECT_NE(machine.failure<UnavailableError>().find("status 500"), std::string::npos);
    machine.endpoints["PUT " + base + "api/token"] = {.status = 403};
    EXPECT_NE(machine.failure<ConfigError>().find("status 403"), std::string::npos);
    machine.endpoints["PUT " + base + "api/token"] = served(token);
    machine.endpoints[roles] = {.status = 503};
    EXPECT_NE(machine.failure<UnavailableError>().find("role"), std::string::npos);
    machine.endpoints[roles] = served("me");
    machine.endpoints[roles + "me"] = {.status = 403};
    EXPECT_NE(machine.failure<ConfigError>().find("metadata service"), std::string::npos);
}

using testing::ManualClock;

TEST(CredentialsCacheTest, credentials_are_renewed_before_they_are_over) {
    ManualClock clock;
    testing::SeededRandom random{1};
    int asked = 0;
    CredentialsCache cache{
        [&] {
            ++asked;
            return DatedCredentials{{std::to_string(asked), "x"}, clock.now() + std::chrono::hours{1}};
        },
        {clock, random}};
    EXPECT_EQ(cache.get().access_key_id, "1");
    clock.advance(std::chrono::minutes{54});
    EXPECT_EQ(cache.get().access_key_id, "1");
    clock.advance(std::chrono::minutes{2});
    EXPECT_EQ(cache.get().access_key_id, "2");
    EXPECT_EQ(asked, 2);
}

TEST(CredentialsCacheTest, old_credentials_serve_while_new_ones_cannot_be_had) {
    ManualClock clock;
    testing::SeededRandom random{1};
    int asked = 0;
    CredentialsCache cache{[&] {
                               if (++asked > 1) throw UnavailableError("gone");
                               return DatedCredentials{{"1", "x"}, clock.now() + std::chrono::hours{1}};
                           },
                           {clock, random}};
    (void)cache.get();
    clock.advance(std::chrono::minutes{57});
    EXPECT_EQ(cache.get().access_key_id, "1");
    EXPECT_EQ(cache.get().access_key_id, "1");
    EXPECT_EQ(asked, 2) << "a source that failed is left alone for a while";
    clock.advance(std::chrono::minutes{1});
    EXPECT_EQ(cache.get().access_key_id, "1");
    EXPECT_EQ(asked, 3);
    clock.advance(std::chrono::minutes{3});
    EXPECT_THROW((void)cache.get(), UnavailableError);
}

TEST(CredentialsCacheTest, what_the_server_calls_over_is_renewed_once) {
    ManualClock clock;
    testing::SeededRandom random{1};
    int asked = 0;
    CredentialsCache cache{[&] { return DatedCredentials{{std::to_string(++asked), "x"}}; }, {clock, random}};
    const Credentials first = cache.get();
    clock.advance(std::chrono::seconds{1});
    EXPECT_TRUE(cache.forget(first));
    EXPECT_EQ(cache.get().access_key_id, "2");
    EXPECT_TRUE(cache.forget(first)) << "there are others";
    EXPECT_EQ(cache.get().access_key_id, "2");
}

/// How often a source is asked in a minute in which credentials are wanted a thousand times a second.
template <class Source>
int asked_in_a_minute(ManualClock& clock, Source source) {
    testing::SeededRandom random{1};
    int asked = 0;
    CredentialsCache cache{[&] {
                               ++asked;
                               return source();
                           },
                           {clock, random}};
    for (const Time end = clock.now() + std::chrono::minutes{1}; clock.now() < end;) {
        try {
            const Credentials found = cache.get();
            if (found.access_key_id == "refused") (void)cache.forget(found);
        } catch (const UnavailableError&) {
        }
        clock.advance(std::chrono::milliseconds{1});
    }
    return asked;
}

TEST(CredentialsCacheTest, a_source_is_left_alone_for_a_while_whatever_it_answers) {
    ManualClock clock;
    const Time end = clock.now() + std::chrono::minutes{2};
    const auto still_the_old = [&] { return DatedCredentials{{"old", "x"}, end}; };
    EXPECT_LE(asked_in_a_minute(clock, still_the_old), 3) << "they are good";
    const auto over = [&] { return DatedCredentials{{"over", "x"}, clock.now() - std::chrono::minutes{1}}; };
    const int asked_when_over = asked_in_a_minute(clock, over);
    EXPECT_LE(asked_when_over, 61);
    EXPECT_GE(asked_when_over, 30);
    const auto refused = [&] { return DatedCredentials{{"refused", "x"}}; };
    EXPECT_LE(asked_in_a_minute(clock, refused), 61);
    const auto failing = []() -> DatedCredentials { throw UnavailableError("gone"); };
    EXPECT_LE(asked_in_a_minute(clock, failing), 61);
}

TEST(CredentialsCacheTest, those_that_are_over_are_renewed_the_moment_they_are) {
    ManualClock clock;
    testing::SeededRandom random{1};
    CredentialsCache cache{
        [&] {
            return DatedCredentials{{varve::to_string(clock.now()), "x"}, clock.now() + std::chrono::seconds{20}};
        },
        {clock, random}};
    const std::string first = cache.get().access_key_id;
    clock.advance(std::chrono::seconds{19});
    EXPECT_EQ(cache.get().access_key_id, first);
    clock.advance(std::chrono::seconds{1});
    EXPECT_NE(cache.get().access_key_id, first);
}

TEST(CredentialsCacheTest, many_threads_ask_their_source_once) {
    ManualClock clock;
    testing::SeededRandom random{1};
    std::atomic<int> asked = 0;
    std::promise<void> may_answer;
    CredentialsCache cache{[&, allowed = may_answer.get_future().share()] {
                               allowed.wait();
                               return DatedCredentials{{std::to_string(++asked), "x"}};
                           },
                           {clock, random}};
    std::vector<std::future<Credentials>> found;
    for (int i = 0; i < 8; ++i) found.push_back(std::async(std::launch::async, [&] { return cache.get(); }));
    may_answer.set_value();
    for (auto& one : found) EXPECT_EQ(one.get().access_key_id, "1");
    EXPECT_EQ(asked, 1);
}

TEST(CredentialsCacheTest, the_old_ones_serve_others_while_one_thread_renews) {
    ManualClock clock;
    testing::SeededRandom random{1};
    std::atomic<int> asked = 0;
    std::promise<void> renewing;
    std::promise<void> may_answer;
    CredentialsCache cache{
        [&, allowed = may_answer.get_future().share()] {
            if (++asked > 1) {
                renewing.set_value();
                allowed.wait();
            }
            return DatedCredentials{{std::to_string(asked), "x"}, clock.now() + std::chrono::hours{1}};
        },
        {clock, random}};
    (void)cache.get();
    clock.advance(std::chrono::minutes{58});
    auto renewed = std::async(std::launch::async, [&] { return cache.get(); });
    renewing.get_future().wait();
    EXPECT_EQ(cache.get().access_key_id, "1");
    may_answer.set_value();
    EXPECT_EQ(renewed.get().access_key_id, "2");
}

}  // namespace
}  // namespace varve::dynamodb
