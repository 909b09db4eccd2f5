#pragma once

#include "signature.h"

#include <stdexcept>
#include <string>
#include <string_view>

namespace varve::dynamodb {

/// A request in the form of the files *.req of AWS's signature test suite: a request line, headers that may go on in
/// lines that begin with a blank, an empty line, a body.
inline Request parse_request_file(std::string_view text) {
    const auto take_line = [&text] {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        return line;
    };
    Request request;
    const std::string_view first = take_line();
    const std::size_t target = first.find(' ');
    const std::size_t protocol = first.rfind(" HTTP/");
    if (target == std::string_view::npos || protocol == std::string_view::npos || protocol < target) {
        throw std::invalid_argument("a request file begins with METHOD TARGET HTTP/1.1");
    }
    request.method = first.substr(0, target);
    const std::string_view uri = first.substr(target + 1, protocol - target - 1);
    const std::size_t question = std::min(uri.find('?'), uri.size());
    request.path = uri.substr(0, question);
    request.query = uri.substr(std::min(question + 1, uri.size()));
    while (!text.empty()) {
        const std::string_view line = take_line();
        if (line.empty()) break;
        if (line.front() == ' ' || line.front() == '\t') {
            if (request.headers.empty()) throw std::invalid_argument("a request file begins with a continued header");
            request.headers.back().value.append(" ").append(line);
            continue;
        }
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) throw std::invalid_argument("a header without a colon");
        request.headers.push_back({std::string{line.substr(0, colon)}, std::string{line.substr(colon + 1)}});
    }
    request.body = text;
    return request;
}

}  // namespace varve::dynamodb
