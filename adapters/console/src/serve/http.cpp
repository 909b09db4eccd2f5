#include "serve/http.h"

#include <varve/core/json.h>

namespace varve::console::serve {

Response refusal(int status, const std::string& error, const std::string& message) {
    return {.status = status,
            .content_type = json_type,
            .body = R"({"error":)" + json::quote_lossy(error) + R"(,"message":)" + json::quote_lossy(message) + "}"};
}

}  // namespace varve::console::serve
