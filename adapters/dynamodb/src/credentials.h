#pragma once

#include "http.h"
#include "signature.h"

#include <varve/core/mutex.h>
#include <varve/core/runtime.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace varve::dynamodb {

/// Credentials, and how long they are good for.
struct DatedCredentials {
    Credentials credentials;
    std::optional<Time> expires = {};  ///< nullopt: never
};

/// Where credentials come from; throws ConfigError or UnavailableError. Nobody's message may contain a secret.
using CredentialsSource = std::function<DatedCredentials()>;

/// What a source asks of the process it runs in.
struct Surroundings {
    std::function<std::optional<std::string>(const std::string& name)> variable;  ///< of the environment
    /// A file's contents; nullopt if there is none. Throws ConfigError if it is there and cannot be read.
    std::function<std::optional<std::string>(const std::string& path)> file;
    std::function<HttpAnswer(const HttpRequest&)> fetch;
};

/// The environment's pair and token; nullopt if it has neither. Half a pair is a ConfigError.
std::optional<DatedCredentials> credentials_from_environment(const Surroundings& surroundings);

/// Of the role that the token in a file stands for, as Kubernetes hands it out; nullopt if the environment names no
/// such file. Asks AWS's Security Token Service.
std::optional<DatedCredentials> credentials_from_web_identity(const Surroundings& surroundings);

/// What the shared files (~/.aws/credentials and ~/.aws/config, or where AWS_SHARED_CREDENTIALS_FILE and
/// AWS_CONFIG_FILE say) know of a profile.
struct Profile {
    std::optional<DatedCredentials> credentials;
    std::optional<std::string> region;
    std::string unsupported = {};  ///< the setting by which it takes credentials from where varve does not
};
/// nullopt if neither file has the profile. Half a pair is a ConfigError.
std::optional<Profile> profile_from_files(const Surroundings& surroundings, const std::string& name);

/// From the endpoint that a container is told of; nullopt if it is told of none.
std::optional<DatedCredentials> credentials_from_container(const Surroundings& surroundings);

/// Of the virtual machine's role, by version 2 of its metadata service; nullopt if the environment switches this off,
/// or if there is no such service or role. Throws UnavailableError if the service fails, ConfigError if it refuses.
std::optional<DatedCredentials> credentials_from_machine(const Surroundings& surroundings);

/// The first of the above that has any; a profile that was asked for by name comes alone. Throws ConfigError that lists
/// where it looked.
CredentialsSource credentials_of(Surroundings surroundings, std::string profile);

/// The profile to use where nobody asks for one: AWS_PROFILE, else "default".
std::string profile_of(const Surroundings& surroundings);

/// Keeps the last credentials, and has them renewed before they are over. One thread asks for new ones, while others go
/// on with the old as long as these are good. After each answer, be it good, old or an error, the source is left alone
/// for a while.
///
/// Threads: all methods may be called from any thread.
class CredentialsCache {
  public:
    CredentialsCache(CredentialsSource source, Runtime runtime);

    /// Throws what the source throws, unless the old ones are still good. Those that are over are given, too, while the
    /// source has no others: the server's clock decides.
    Credentials get();
    /// The server says that `refused` are over, whatever was said of their time. False: there are no others yet.
    bool forget(const Credentials& refused);

    /// What no message may contain.
    std::vector<std::string> secrets() const;

  private:
    bool good(Time now) const VARVE_REQUIRES(mutex_);
    bool may_ask() const VARVE_REQUIRES(mutex_);

    const CredentialsSource source_;
    const Runtime runtime_;
    mutable Mutex mutex_;
    std::condition_variable renewed_;
    std::optional<DatedCredentials> current_ VARVE_GUARDED_BY(mutex_);
    std::optional<Credentials> refused_ VARVE_GUARDED_BY(mutex_);  // by the server
    std::exception_ptr failure_ VARVE_GUARDED_BY(mutex_);          // of the source, when it was asked last
    bool renewing_ VARVE_GUARDED_BY(mutex_) = false;
    SteadyTime asked_ VARVE_GUARDED_BY(mutex_){};                   // when the source was asked last
    std::optional<SteadyTime> ask_again_ VARVE_GUARDED_BY(mutex_);  // not before
};

}  // namespace varve::dynamodb
