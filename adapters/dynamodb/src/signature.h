#pragma once

#include <varve/core/clock.h>
#include <varve/core/mutex.h>

#include <string>
#include <string_view>
#include <vector>

namespace varve::dynamodb {

/// Who signs. The token belongs to temporary credentials, and is empty for lasting ones.
struct Credentials {
    std::string access_key_id;
    std::string secret_access_key;
    std::string session_token = {};

    bool operator==(const Credentials&) const = default;
};

struct Header {
    std::string name;
    std::string value;

    bool operator==(const Header&) const = default;
};

/// An HTTP request as far as a signature covers it.
struct Request {
    std::string method;
    std::string path = "/";  ///< as in the request line, without the query
    std::string query = {};  ///< what follows the '?'
    std::vector<Header> headers;
    std::string body = {};
};

/// Whom a signature is made for.
struct Scope {
    std::string region;
    std::string service;
};

/// AWS Signature Version 4. Each step is a function of its own, because published vectors exist for each. What is
/// signed: all headers of the request, and the body by its hash. Pure functions of their arguments; no message or
/// result but the signing key contains the secret.
namespace signature {

std::string canonical_request(const Request& request);
std::string string_to_sign(std::string_view canonical_request, const Scope& scope, Time time);
/// 32 bytes.
std::string signing_key(std::string_view secret_access_key, const Scope& scope, Time time);
std::string signature_of(std::string_view string_to_sign, std::string_view signing_key);

/// As a query and a form's body want it: all but letters, digits and -._~ in upper case hexadecimal.
std::string percent_encoded(std::string_view text);
/// 64 lower case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
/// 20150830T123600Z
std::string timestamp(Time time);

}  // namespace signature

/// Adds the headers x-amz-date, x-amz-security-token (with a session token) and authorization. Those of them that are
/// already there are replaced, so that a request can be signed again.
void sign(Request& request, const Credentials& credentials, const Scope& scope, Time time);

/// Signs one request after the other for the same scope, as `sign` does. Remembers the signing key, which holds for a
/// day and takes longer to make than all the rest.
///
/// Threads: `sign` may be called from any number of threads.
class Signer {
  public:
    explicit Signer(Scope scope);
    void sign(Request& request, const Credentials& credentials, Time time);

  private:
    std::string key_of(const Credentials& credentials, Time time);

    const Scope scope_;
    Mutex mutex_;
    std::string secret_ VARVE_GUARDED_BY(mutex_);
    std::string date_ VARVE_GUARDED_BY(mutex_);
    std::string key_ VARVE_GUARDED_BY(mutex_);
};

}  // namespace varve::dynamodb
