#include "raw_dynamodb.h"

#include <stdexcept>

namespace bench {

RawDynamoDb::RawDynamoDb(const std::string& address, const std::string& table)
    : url_("http://" + address + "/"), table_(table), easy_(curl_easy_init()) {
    if (easy_ == nullptr) throw std::runtime_error("libcurl cannot be initialised");
}

RawDynamoDb::~RawDynamoDb() {
    curl_easy_cleanup(easy_);
}

void RawDynamoDb::put(const std::string& stream, long version, std::size_t bytes) {
    call("PutItem", R"({"TableName":")" + table_ + R"(","Item":{"aggregateId":{"S":")" + stream +
                        R"("},"version":{"N":")" + std::to_string(version) +
                        R"("},"state":{"S":"committed"},"events":{"S":")" + std::string(bytes, 'x') +
                        R"j("}},"ConditionExpression":"attribute_not_exists(aggregateId)"})j");
}

void RawDynamoDb::call(const char* operation, const std::string& body) {
    curl_slist* headers = curl_slist_append(nullptr, "content-type: application/x-amz-json-1.0");
    headers = curl_slist_append(headers, (std::string{"x-amz-target: DynamoDB_20120810."} + operation).c_str());
    headers = curl_slist_append(headers,
                                "authorization: AWS4-HMAC-SHA256 Credential=local/20260101/eu-west-1/dynamodb/"
                                "aws4_request, SignedHeaders=host;x-amz-date, Signature=0");
    headers = curl_slist_append(headers, "x-amz-date: 20260101T000000Z");
    curl_easy_setopt(easy_, CURLOPT_URL, url_.c_str());
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(
        easy_, CURLOPT_WRITEFUNCTION, +[](char*, std::size_t, std::size_t count, void*) { return count; });
    const CURLcode code = curl_easy_perform(easy_);
    curl_slist_free_all(headers);
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK) throw std::runtime_error(curl_easy_strerror(code));
    if (status != 200) throw std::runtime_error(std::string{operation} + ": status " + std::to_string(status));
}

}  // namespace bench
