#pragma once

#include <cstddef>
#include <string>

#include <curl/curl.h>

namespace bench {

/// DynamoDB without varve: the least that a loop over libcurl has to do for a conditional put. It signs nothing, checks
/// no answer but its status, and formats a body of its own.
class RawDynamoDb {
  public:
    /// `address` is "127.0.0.1:8000". The table is there.
    RawDynamoDb(const std::string& address, const std::string& table);
    ~RawDynamoDb();
    RawDynamoDb(const RawDynamoDb&) = delete;
    RawDynamoDb& operator=(const RawDynamoDb&) = delete;

    /// One put of a new slot of `bytes`. Blocks; one thread at a time.
    void put(const std::string& stream, long version, std::size_t bytes);

  private:
    void call(const char* operation, const std::string& body);

    const std::string url_;
    const std::string table_;
    CURL* easy_;
};

}  // namespace bench
