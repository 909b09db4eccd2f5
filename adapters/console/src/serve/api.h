#pragma once

#include "console.h"
#include "serve/guard.h"
#include "serve/http.h"
#include "serve/secrets.h"
#include "serve/target.h"

#include <varve/core/error.h>
#include <varve/operations/streams.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace varve::console::serve {

/// Who asks has asked for what cannot be.
struct BadRequest : InvalidError {
    using InvalidError::InvalidError;
};

/// Answers what is asked: the page, what a store holds and how it is doing as JSON, its metrics, and a few acts. There
/// is one table of paths, and nothing else.
///
/// Threads: any. Lifetime: that of the console, whose application is open.
class Api {
  public:
    Api(Console& console, Guard guard);

    /// Throws nothing but std::bad_alloc.
    Response answer(const Request& request);
    /// Up to where the store has events; for answers that wait. Errors: those of the store.
    std::uint64_t end();

  private:
    using Query = std::map<std::string, std::string>;

    Response dispatch(const Request& request);
    Response get(const Target& target);
    Response post(const Target& target, const Request& request);

    std::string about();
    std::string streams(const Query& query);
    Response stream(const std::string& name, const Query& query);
    Response tail(const Query& query);
    std::string correlation(const std::string& id, const Query& query);
    std::string parked(const Query& query);
    Response metrics();

    std::string settle(const std::string& body);
    std::string evict(const std::string& body);
    std::string act_on_follower(const std::string& act, const std::string& body);
    std::string act_on_timer(const std::string& act, const std::string& body);

    Console& console_;
    Application& application_;
    const Guard guard_;
    const Secrets secrets_;
    operations::StreamLister lister_;
};

}  // namespace varve::console::serve
