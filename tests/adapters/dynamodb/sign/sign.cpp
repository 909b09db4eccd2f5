// Signs a request file, so that other suites of vectors, and other implementations, can be tried against this one:
//
//     sign creq|sts|authz [KEY=VALUE…] < get-vanilla.req
//
// The keys are region, service, time, access_key_id, secret_access_key, session_token; by default those of AWS's suite.

#include "../request_file.h"

#include <iostream>
#include <iterator>
#include <map>

namespace {

int run(int argc, char** argv) {
    using namespace varve::dynamodb;
    std::map<std::string, std::string> values{{"region", "us-east-1"},
                                              {"service", "service"},
                                              {"time", "2015-08-30T12:36:00Z"},
                                              {"access_key_id", "AKIDEXAMPLE"},
                                              {"secret_access_key", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"},
                                              {"session_token", ""}};
    const std::string what = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc; ++i) {
        const std::string argument = argv[i];
        const std::size_t equals = argument.find('=');
        if (equals == std::string::npos || !values.contains(argument.substr(0, equals))) {
            throw std::invalid_argument("no such key: " + argument.substr(0, equals));
        }
        values[argument.substr(0, equals)] = argument.substr(equals + 1);
    }
    const Scope scope{values["region"], values["service"]};
    const Credentials credentials{values["access_key_id"], values["secret_access_key"], values["session_token"]};
    const varve::Time time = varve::parse_time(values["time"]);
    const std::string text{std::istreambuf_iterator<char>{std::cin}, {}};
    Request request = parse_request_file(text);
    if (what == "creq") {
        std::cout << signature::canonical_request(request) << "\n";
    } else if (what == "sts") {
        std::cout << signature::string_to_sign(signature::canonical_request(request), scope, time) << "\n";
    } else if (what == "authz") {
        sign(request, credentials, scope, time);
        std::cout << request.headers.back().value << "\n";
    } else {
        throw std::invalid_argument("usage: sign creq|sts|authz [KEY=VALUE…] < request.req");
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "sign: " << error.what() << "\n";
        return 2;
    }
}
