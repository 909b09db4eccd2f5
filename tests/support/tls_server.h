#pragma once

#include "support/loopback.h"
#include "support/temporary_folder.h"

#include <memory>
#include <mutex>
#include <string>

#include <openssl/ssl.h>

namespace varve {

/// A certificate and its key.
struct Certified {
    std::shared_ptr<EVP_PKEY> key;
    std::shared_ptr<X509> certificate;
};

/// Makes certificates, and a file with its own for those who shall trust them.
class Authority {
  public:
    Authority();

    struct Wish {
        std::string subject = "IP:127.0.0.1";  ///< as in an alternative name: "DNS:example.com"
        long days_from = -1;                   ///< from now on
        long days_until = 1;
    };
    Certified issue(const Wish& wish) const;
    /// In PEM.
    std::string file() const { return file_; }

    /// Vouched for by itself alone.
    static Certified self_signed(const std::string& subject);

  private:
    Certified self_;
    const TemporaryFolder folder_{"authority"};
    const std::string file_ = folder_.path() / "authority.pem";
};

/// Answers every HTTP request with "{}", over TLS, on loopback.
class TlsServer {
  public:
    struct Options {
        int version_min = TLS1_2_VERSION;
        int version_max = TLS1_3_VERSION;
    };
    TlsServer(const Certified& identity, Options options);

    int port() const { return listener_.port(); }
    std::string address() const { return listener_.address(); }
    std::size_t requests() const;

  private:
    void serve(const LoopbackSocket& socket);

    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
    mutable std::mutex mutex_;
    std::size_t requests_ = 0;  // guarded by mutex_

    LoopbackServer listener_;  // the last, for what it calls uses the rest
};

}  // namespace varve
