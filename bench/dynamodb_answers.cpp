// What the adapter does with an answer, and with none: against a server that says what it is told to.

#include "figures.h"
#include "support/scripted_server.h"

#include <varve/dynamodb/dynamodb.h>
#include <varve/store/item_store.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <curl/curl.h>
#include <time.h>

namespace bench {
namespace {

using varve::ScriptedServer;
using Reply = ScriptedServer::Reply;
using Request = ScriptedServer::Request;

constexpr const char* described =
    R"({"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"id","KeyType":"HASH"},)"
    R"({"AttributeName":"n","KeyType":"RANGE"}],"AttributeDefinitions":[)"
    R"({"AttributeName":"id","AttributeType":"S"},{"AttributeName":"n","AttributeType":"N"}]}})";

const varve::store::TableSchema items{
    .name = "items", .partition_attribute = "id", .sort_attribute = "n", .sort = varve::store::SortType::integer};

/// A slot's attributes beside its key, with a text of so many bytes.
std::string slot(std::size_t bytes) {
    return R"("state":{"S":"committed"},"events":{"S":")" + std::string(bytes, 'x') + R"("})";
}

/// So many attributes of one digit each.
std::string digits(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) text += ',';
        text += "\"" + std::to_string(i) + R"(":{"N":"1"})";
    }
    return text;
}

/// `count` items of partition "p", each with these attributes, between what comes before and after them.
std::string answer(const std::string& before, std::size_t count, const std::string& attributes,
                   const std::string& after) {
    std::string body = before;
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) body += ',';
        body += R"({"id":{"S":"p"},"n":{"N":")" + std::to_string(i) + R"("},)" + attributes + '}';
    }
    return ScriptedServer::answer(200, body + after);
}

std::shared_ptr<varve::store::ItemStore> store_on(const ScriptedServer& server) {
    auto store = varve::dynamodb::open({.host = server.address(), .prefix = "bench", .region = "eu-west-1"});
    store->ensure_table(items);
    return store;
}

double thread_cpu_us() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e6 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e3;
}

/// Of the calling thread, for each time.
double cpu_us(const Plan& plan, const std::function<void()>& once) {
    const auto until = std::chrono::steady_clock::now() + plan.time;
    const double before = thread_cpu_us();
    long times = 0;
    do {
        once();
        ++times;
    } while (std::chrono::steady_clock::now() < until);
    return (thread_cpu_us() - before) / static_cast<double>(times);
}

/// One request by libcurl, whose answer nobody reads.
class RawFetch {
  public:
    explicit RawFetch(const ScriptedServer& server) : url_(server.url()) {
        curl_easy_setopt(easy_, CURLOPT_URL, url_.c_str());
        curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, "{}");
        curl_easy_setopt(easy_, CURLOPT_WRITEDATA, &received_);
        curl_easy_setopt(
            easy_, CURLOPT_WRITEFUNCTION, +[](char* data, std::size_t, std::size_t size, void* into) {
                static_cast<std::string*>(into)->append(data, size);
                return size;
            });
    }
    ~RawFetch() { curl_easy_cleanup(easy_); }
    RawFetch(const RawFetch&) = delete;
    RawFetch& operator=(const RawFetch&) = delete;

    void operator()() {
        received_.clear();
        if (curl_easy_perform(easy_) != CURLE_OK) throw std::runtime_error("no answer");
    }

  private:
    const std::string url_;
    std::string received_;
    CURL* const easy_ = curl_easy_init();
};

/// A page of as many slots as DynamoDB gives at once: what the caller's thread does, beside the fetch alone.
Figure page_of_1_MB(const Plan& plan, const std::string& name) {
    Figure figure{.name = name, .unit = "us of CPU", .raw = "the answer's transfer by libcurl, not read"};
    const std::string page = answer(R"({"Items":[)", 4'000, slot(150), R"(],"Count":4000})");
    ScriptedServer server{[&page](const Request& request, std::size_t) {
        const bool describes = request.header("x-amz-target").ends_with("DescribeTable");
        return Reply{describes ? ScriptedServer::answer(200, described) : page};
    }};
    const auto store = store_on(server);
    RawFetch raw{server};
    measure(
        figure,
        [&] {
            return cpu_us(plan, [&] {
                if (store->query({.table = "items", .partition = "p", .limit = 5'000}).records.size() != 4'000)
                    throw std::runtime_error("another page");
            });
        },
        [&] { return cpu_us(plan, std::ref(raw)); });
    return figure;
}

/// What a read of 100 items takes in memory at its worst.
Figure memory(std::string name, const std::string& attributes) {
    Figure figure{.name = std::move(name), .unit = "MB at peak", .raw = "the answer's own MB"};
    constexpr std::size_t count = 100;
    const std::string batch =
        answer(R"({"Responses":{"bench.items":[)", count, attributes, R"(]},"UnprocessedKeys":{}})");
    ScriptedServer server{[&batch](const Request& request, std::size_t) {
        const bool describes = request.header("x-amz-target").ends_with("DescribeTable");
        return Reply{describes ? ScriptedServer::answer(200, described) : batch};
    }};
    const auto store = store_on(server);
    std::vector<varve::store::Key> keys;
    for (std::size_t i = 0; i < count; ++i) keys.push_back({"items", "p", static_cast<std::int64_t>(i)});
    measure(
        figure,
        [&] {
            return megabytes_at_peak([&] {
                if (!store->read(keys).back()) throw std::runtime_error("another answer");
            });
        },
        [&] { return static_cast<double>(batch.size()) / (1 << 20); });
    return figure;
}

/// How many writes a second each of 8 callers lets a server have that fails for everybody. Each asks for another one 20
/// ms after the last has failed.
Figure outage(const std::string& name) {
    Figure figure{.name = name, .unit = "writes/s", .raw = "conditional writes that the callers asked for"};
    constexpr unsigned callers = 8;
    constexpr std::chrono::seconds lasts{10};
    std::atomic<std::size_t> asked = 0;
    const auto requests_per_second = [&] {
        asked = 0;
        std::atomic<std::size_t> arrived = 0;
        ScriptedServer server{[&arrived](const Request& request, std::size_t) {
            if (request.header("x-amz-target").ends_with("DescribeTable"))
                return Reply{ScriptedServer::answer(200, described)};
            ++arrived;
            return Reply{ScriptedServer::answer(500, R"({"__type":"x#InternalServerError"})")};
        }};
        const auto store = store_on(server);
        const auto until = std::chrono::steady_clock::now() + lasts;
        {
            std::vector<std::jthread> threads;
            for (unsigned t = 0; t < callers; ++t) {
                threads.emplace_back([&, t] {
                    const varve::store::Write write{
                        {"items", std::to_string(t), 1}, varve::store::Put{}, !varve::store::item_exists()};
                    while (std::chrono::steady_clock::now() < until) {
                        ++asked;
                        static_cast<void>(store->write({&write, 1}));
                        std::this_thread::sleep_for(std::chrono::milliseconds{20});
                    }
                });
            }
        }
        return static_cast<double>(arrived) / callers / static_cast<double>(lasts.count());
    };
    figure.rate = requests_per_second();
    figure.raw_rate = static_cast<double>(asked) / callers / static_cast<double>(lasts.count());
    return figure;
}

}  // namespace

std::vector<Figure> dynamodb_answers(const Plan& plan) {
    std::vector<Figure> figures;
    const auto add = [&](const std::string& name, const auto& make) {
        if (plan.wants(name)) figures.push_back(make(name));
    };
    add("dynamodb_cpu_of_a_page_of_1_MB", [&](const std::string& name) { return page_of_1_MB(plan, name); });
    add("dynamodb_memory_for_60_MB_of_large_texts",
        [](const std::string& name) { return memory(name, slot(600'000)); });
    add("dynamodb_memory_for_60_MB_of_digits", [](const std::string& name) { return memory(name, digits(37'000)); });
    add("dynamodb_outage_writes_of_each_of_8_callers", outage);
    return figures;
}

}  // namespace bench
