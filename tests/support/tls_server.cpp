#include "support/tls_server.h"

#include <atomic>
#include <cstdio>
#include <stdexcept>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace varve {
namespace {

void require(bool good, const char* what) {
    if (!good) throw std::runtime_error(what);
}

void add_extension(X509* certificate, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    require(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, "an extension of a certificate");
    X509_EXTENSION_free(extension);
}

std::atomic<long> serial = 0;

/// Without `issuer` it vouches for itself.
Certified certify(const Authority::Wish& wish, const std::string& name, const Certified* issuer) {
    const Certified made{.key = {EVP_EC_gen("P-256"), EVP_PKEY_free}, .certificate = {X509_new(), X509_free}};
    X509* certificate = made.certificate.get();
    require(made.key && certificate != nullptr, "a key");
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_time_adj_ex(X509_getm_notBefore(certificate), static_cast<int>(wish.days_from), 0, nullptr);
    X509_time_adj_ex(X509_getm_notAfter(certificate), static_cast<int>(wish.days_until), 0, nullptr);
    X509_set_pubkey(certificate, made.key.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer ? issuer->certificate.get() : certificate));
    if (wish.subject.empty()) {
        add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    } else {
        add_extension(certificate, NID_subject_alt_name, wish.subject);
    }
    require(X509_sign(certificate, issuer ? issuer->key.get() : made.key.get(), EVP_sha256()) > 0, "a signature");
    return made;
}

bool read_request(SSL* connection, std::string& buffer) {
    const auto receive = [&] {
        char bytes[4096];
        const int count = SSL_read(connection, bytes, sizeof bytes);
        if (count > 0) buffer.append(bytes, static_cast<std::size_t>(count));
        return count > 0;
    };
    std::size_t end = 0;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
        if (!receive()) return false;
    }
    constexpr std::string_view length = "\r\nContent-Length: ";
    const std::size_t at = buffer.find(length);
    const std::size_t size = end + 4 + (at < end ? std::stoul(buffer.substr(at + length.size())) : 0);
    while (buffer.size() < size) {
        if (!receive()) return false;
    }
    buffer.erase(0, size);
    return true;
}

}  // namespace

Authority::Authority() : self_(certify({.subject = ""}, "authority " + std::to_string(serial), nullptr)) {
    std::FILE* file = std::fopen(file_.c_str(), "w");
    require(file != nullptr && PEM_write_X509(file, self_.certificate.get()) == 1, "a file");
    std::fclose(file);
}

Certified Authority::issue(const Wish& wish) const {
    return certify(wish, "server", &self_);
}

Certified Authority::self_signed(const std::string& subject) {
    return certify({.subject = subject}, "server", nullptr);
}

namespace {

std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_of(const Certified& identity, TlsServer::Options options) {
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_server_method()), SSL_CTX_free};
    // OpenSSL itself would not speak what is older than 1.2.
    if (options.version_min < TLS1_2_VERSION) SSL_CTX_set_cipher_list(context.get(), "ALL:@SECLEVEL=0");
    SSL_CTX_set_min_proto_version(context.get(), options.version_min);
    SSL_CTX_set_max_proto_version(context.get(), options.version_max);
    require(SSL_CTX_use_certificate(context.get(), identity.certificate.get()) == 1 &&
                SSL_CTX_use_PrivateKey(context.get(), identity.key.get()) == 1,
            "the server's identity");
    return context;
}

}  // namespace

TlsServer::TlsServer(const Certified& identity, Options options)
    : context_(context_of(identity, options)), listener_([this](const LoopbackSocket& socket) { serve(socket); }) {}

std::size_t TlsServer::requests() const {
    const std::lock_guard lock{mutex_};
    return requests_;
}

void TlsServer::serve(const LoopbackSocket& socket) {
    const std::unique_ptr<SSL, decltype(&SSL_free)> connection{SSL_new(context_.get()), SSL_free};
    SSL_set_fd(connection.get(), socket.descriptor());
    if (SSL_accept(connection.get()) == 1) {
        std::string buffer;
        while (read_request(connection.get(), buffer)) {
            {
                const std::lock_guard lock{mutex_};
                ++requests_;
            }
            constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
            SSL_write(connection.get(), answer.data(), static_cast<int>(answer.size()));
        }
    }
}

}  // namespace varve
