#include "console.h"
#include "output.h"
#include "serve/api.h"
#include "serve/page.h"
#include "serve/server.h"

#include <varve/core/runtime.h>

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

struct Served {
    serve::Access access;
    std::string token_file;
    unsigned port = 8420;
};

#if VARVE_SERVE

struct ServingReport {
    std::string url;
    bool writes = false;
    bool page = false;
};

/// Unguessable: 256 bits of the operating system's randomness.
std::string new_session() {
    std::string session;
    for (int i = 0; i < 4; ++i) {
        char part[17];
        std::snprintf(part, sizeof part, "%016llx", static_cast<unsigned long long>(Random::system().next()));
        session += part;
    }
    return session;
}

int serve_page(Console& console, Served& asked) {
    if (!asked.token_file.empty()) asked.access.token = serve::read_token(asked.token_file);
    (void)serve::Guard{asked.access, asked.port, new_session()};  // refuses what cannot be, before anybody listens
    console.application();                                        // opened by one thread
    serve::Server server{asked.access.address, asked.port, {}};
    serve::Api api{console, serve::Guard{asked.access, server.port(), new_session()}};
    const bool is_ipv6 = asked.access.address.find(':') != std::string::npos;
    const std::string url = "http://" + (is_ipv6 ? "[" + asked.access.address + "]" : asked.access.address) + ":" +
                            std::to_string(server.port()) + "/";
    const bool has_page = serve::why_no_page().empty();
    if (console.json) {
        print_json(ServingReport{url, console.allow_writes, has_page});
    } else {
        print_line(url + (console.allow_writes ? "  changes the store where it is told to" : "  only reads") +
                   (has_page ? "" : "; without the page: " + std::string{serve::why_no_page()}));
    }
    server.run({.answer = [&](const serve::Request& request) { return api.answer(request); },
                .end = [&] { return api.end(); }});
    return done;
}

#else

int serve_page(Console& console, Served&) {
    throw ConfigError(console.program.name +
                      " was built without Boost, which its server needs; build it with "
                      "libboost-dev, and -D VARVE_SERVE=ON");
}

#endif

}  // namespace

void add_serve_command(CLI::App& app, Console& console) {
    const auto asked = std::make_shared<Served>();
    CLI::App* const command = app.add_subcommand("serve", "Show all of it on a page, and metrics, until Ctrl-C");
    command->add_option("--port", asked->port, "where it listens; 0: at a port that is free")
        ->check(CLI::Range(0, 65535).description(""))
        ->capture_default_str();
    command
        ->add_option("--address", asked->access.address,
                     "of this machine; for others than its own users to reach, with --token-file")
        ->capture_default_str();
    command->add_option("--token-file", asked->token_file,
                        "a file with a token that who asks must have; only its owner may read it");
    command->add_option("--allowed-host", asked->access.allowed_hosts,
                        "another name that the server is called by, as behind a proxy: ops.example");
    command->callback(
        [&console, asked] { console.chosen = [&console, asked] { return serve_page(console, *asked); }; });
}

}  // namespace varve::console
