#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <openssl/ssl.h>

namespace varve::dynamodb {

/// A certificate and its key.
struct Certified {
    std::shared_ptr<EVP_PKEY> key;
    std::shared_ptr<X509> certificate;
};

/// Makes certificates, and a file with its own for those who shall trust them.
class Authority {
  public:
    Authority();
    ~Authority();
    Authority(const Authority&) = delete;
    Authority& operator=(const Authority&) = delete;

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
    std::filesystem::path folder_;
    std::string file_;
};

/// Answers every HTTP request with "{}", over TLS, on loopback.
class TlsServer {
  public:
    struct Options {
        int version_min = TLS1_2_VERSION;
        int version_max = TLS1_3_VERSION;
    };
    TlsServer(const Certified& identity, Options options);
    ~TlsServer();
    TlsServer(const TlsServer&) = delete;
    TlsServer& operator=(const TlsServer&) = delete;

    int port() const { return port_; }
    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    std::size_t requests() const;

  private:
    void serve(int socket);

    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
    int listener_ = -1;
    int port_ = 0;
    mutable std::mutex mutex_;
    std::size_t requests_ = 0;          // guarded by mutex_
    std::set<int> open_;                // guarded by mutex_
    std::vector<std::thread> threads_;  // guarded by mutex_ until the acceptor has ended
    std::thread acceptor_;
};

}  // namespace varve::dynamodb
