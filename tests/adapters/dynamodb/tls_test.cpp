// Who the server is must be proved by a certificate, over TLS 1.2 or later; otherwise nothing is sent.

#include "endpoint.h"
#include "support/tls_server.h"

#include <varve/core/error.h>
#include <varve/store/open.h>
#include <varve/testing/manual_clock.h>

#include <csignal>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

class Tls : public ::testing::Test {
  protected:
    /// OpenSSL writes to a peer that may be gone without asking for no signal.
    static void SetUpTestSuite() { std::signal(SIGPIPE, SIG_IGN); }

    Reply ask(const TlsServer& server, const std::string& host, const std::string& ca_file) {
        Client client{client_parts({.host = host + ":" + std::to_string(server.port()),
                                    .prefix = "bank",
                                    .region = "eu-west-1",
                                    .ca_file = ca_file,
                                    .runtime = {.clock = clock_}})};
        return client.send({.operation = "PutItem",
                            .body = "{}",
                            .repeat = Call::Repeat::harmful,
                            .about = "the item events/alice/7"});
    }
    Reply ask(const TlsServer& server) { return ask(server, "127.0.0.1", authority_.file()); }

    /// Requires that nothing was sent, and that the message says what to do.
    static void expect_refused(const Reply& reply, const TlsServer& server, ErrorKind kind, const std::string& advice) {
        const auto* failed = std::get_if<Failed>(&reply);
        ASSERT_NE(failed, nullptr);
        EXPECT_EQ(failed->failure.kind, kind) << failed->failure.message;
        EXPECT_FALSE(failed->failure.in_doubt);
        EXPECT_NE(failed->failure.message.find(advice), std::string::npos) << failed->failure.message;
        EXPECT_EQ(server.requests(), 0U);
    }

    /// Whether a client that takes any version gets through.
    static bool speaks(const TlsServer& server, int version) {
        const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
        SSL_CTX_set_cipher_list(context.get(), "ALL:@SECLEVEL=0");
        SSL_CTX_set_min_proto_version(context.get(), version);
        SSL_CTX_set_max_proto_version(context.get(), version);
        const LoopbackSocket socket = LoopbackSocket::connected(server.port());
        const std::unique_ptr<SSL, decltype(&SSL_free)> connection{SSL_new(context.get()), SSL_free};
        return SSL_set_fd(connection.get(), socket.descriptor()) == 1 && SSL_connect(connection.get()) == 1;
    }

    const Authority authority_;
    testing::ManualClock clock_{Clock::system().now(), testing::ManualClock::Mode::auto_advance};
};

TEST_F(Tls, versions_1_2_and_1_3_are_spoken_to_a_server_that_proves_itself) {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        const TlsServer server{authority_.issue({}), {.version_min = version, .version_max = version}};
        const Reply reply = ask(server);
        EXPECT_TRUE(std::holds_alternative<Done>(reply)) << std::get<Failed>(reply).failure.message;
        EXPECT_EQ(server.requests(), 1U);
    }
}

TEST_F(Tls, a_url_with_ca_file_opens_a_store_over_tls) {
    const TlsServer server{authority_.issue({}), {}};
    const auto store =
        varve::open("dynamodb://" + server.address() + "/bank?region=eu-west-1&ca_file=" + authority_.file());
    EXPECT_THROW(store->ensure_table({.name = "items", .partition_attribute = "id"}), CorruptionError)
        << "what it answers describes no table";
    EXPECT_GE(server.requests(), 1U);
}

TEST_F(Tls, version_1_1_is_refused) {
    const TlsServer server{authority_.issue({}), {.version_min = TLS1_1_VERSION, .version_max = TLS1_1_VERSION}};
    ASSERT_TRUE(speaks(server, TLS1_1_VERSION)) << "the server refuses everybody";
    expect_refused(ask(server), server, ErrorKind::unavailable, "TLS 1.2 or later");
}

TEST_F(Tls, a_certificate_for_another_host_is_refused) {
    const TlsServer server{authority_.issue({.subject = "DNS:dynamodb.example.com"}), {}};
    expect_refused(ask(server), server, ErrorKind::config, "use the name that it is for");
    const TlsServer named{authority_.issue({.subject = "DNS:localhost"}), {}};
    expect_refused(ask(named), named, ErrorKind::config, "use the name that it is for");
    EXPECT_TRUE(std::holds_alternative<Done>(ask(named, "localhost", authority_.file())));
}

TEST_F(Tls, a_certificate_that_only_vouches_for_itself_is_refused) {
    const TlsServer server{Authority::self_signed("IP:127.0.0.1"), {}};
    expect_refused(ask(server), server, ErrorKind::config, "ca_file");
}

TEST_F(Tls, a_certificate_of_an_authority_that_is_not_trusted_is_refused) {
    const Authority stranger;
    const TlsServer server{stranger.issue({}), {}};
    expect_refused(ask(server), server, ErrorKind::config, "ca_file");
}

TEST_F(Tls, a_certificate_that_is_over_or_not_yet_valid_is_refused) {
    for (const auto& [from, until] : std::initializer_list<std::pair<long, long>>{{-10, -1}, {1, 10}}) {
        const TlsServer server{authority_.issue({.days_from = from, .days_until = until}), {}};
        expect_refused(ask(server), server, ErrorKind::config, "renew the server's certificate");
    }
}

TEST_F(Tls, a_file_of_certificates_that_cannot_be_read_is_a_config_error) {
    const TlsServer server{authority_.issue({}), {}};
    expect_refused(ask(server, "127.0.0.1", authority_.file() + ".absent"), server, ErrorKind::config, "absent");
}

}  // namespace
}  // namespace varve::dynamodb
