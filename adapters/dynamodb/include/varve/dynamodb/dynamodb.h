#pragma once

#include <varve/core/runtime.h>
#include <varve/store/item_store.h>

#include <chrono>
#include <memory>
#include <string>

namespace varve::dynamodb {

enum class Tables {
    create,  ///< those that are missing, paid by request
    expect,  ///< a missing one is a ConfigError
};

struct Options {
    /// "HOST" or "HOST:PORT" of a server that speaks the protocol; empty: AWS itself, in `region`.
    std::string host = {};
    /// The tables of this store are called PREFIX.NAME. 1 to 50 of a-z A-Z 0-9 _ -
    std::string prefix;
    /// As in "eu-west-1"; empty: AWS_REGION or AWS_DEFAULT_REGION says, or the profile.
    std::string region = {};
    /// In the shared files of the AWS tools; empty: the first that is found of environment, shared files, container,
    /// machine.
    std::string profile = {};
    Tables tables = Tables::create;
    /// Plain http to a server that is not on this machine. Whoever is in between reads and changes everything.
    bool insecure = false;
    /// Certificates to trust instead of the system's; with it, a server on this machine is spoken to with TLS, too.
    std::string ca_file = {};
    std::chrono::milliseconds timeout{10'000};  ///< of each request
    /// How many repetitions calls may take that fail in the end, before the store sends only what is new; those of
    /// calls that succeed cost nothing. At least 1. README.md, "Repetitions".
    unsigned retry_budget = 100;
    /// libcurl's account of its connections goes to the runtime's log at level debug: addresses, TLS, reuse. It
    /// contains no header and no body, so no secret and no data.
    bool trace = false;
    Runtime runtime = {};
};

/// Opens the store. What `varve::open` does with
///
///     dynamodb://HOST[:PORT]/PREFIX?region=REGION        any server of the protocol
///     dynamodb:///PREFIX?region=REGION                   AWS
///
/// and the options of README.md. A server on this machine is spoken to without TLS, and needs no credentials.
///
/// Throws ConfigError (an option, or no credentials). Nothing is sent before the first table is ensured.
///
/// Threads: as every ItemStore. It starts one of its own.
std::shared_ptr<store::ItemStore> open(const Options& options);

}  // namespace varve::dynamodb
