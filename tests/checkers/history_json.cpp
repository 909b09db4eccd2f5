#include "history_json.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

namespace varve::checkers {
namespace {

using Json = rapidjson::Value;

std::string quoted(std::string_view s) {
    return '"' + std::string(s) + '"';
}
std::string_view view(const Json& v) {
    return {v.GetString(), v.GetStringLength()};
}

class Parser {
  public:
    std::vector<History> parse(std::string_view json) {
        rapidjson::Document document;
        document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(json.data(),
                                                                                               json.size());
        if (document.HasParseError()) {
            const auto before = json.substr(0, document.GetErrorOffset());
            const auto line = 1 + std::count(before.begin(), before.end(), '\n');
            const auto line_begin = before.rfind('\n');
            const auto column = before.size() - (line_begin == before.npos ? 0 : line_begin + 1) + 1;
            throw BadHistory("line " + std::to_string(line) + ", column " + std::to_string(column) + ": " +
                             rapidjson::GetParseError_En(document.GetParseError()));
        }
        if (!document.IsArray()) throw BadHistory("the document: expected an array of histories");
        std::vector<History> result;
        for (const Json& history : document.GetArray()) {
            place_ = {"history " + std::to_string(result.size()), "", ""};
            result.push_back(parse_history(history));
        }
        return result;
    }

  private:
    struct Place {
        std::string history, transaction, operation;
    };

    [[noreturn]] void fail(const std::string& what) const {
        throw BadHistory(place_.history + place_.transaction + place_.operation + ": " + what);
    }
    const Json& member(const Json& object, const char* name) const {
        const auto it = object.FindMember(name);
        if (it == object.MemberEnd()) fail("has no " + quoted(name));
        return it->value;
    }
    std::string scalar(const Json& v, const char* what) const {
        if (v.IsInt64()) return std::to_string(v.GetInt64());
        if (v.IsUint64()) return std::to_string(v.GetUint64());
        if (v.IsString()) return std::string(view(v));
        fail(std::string(what) + " must be an integer or a string");
    }
    /// Tells 1 from "1".
    std::string exact(const Json& v, const char* what) const {
        return v.IsString() ? quoted(view(v)) : scalar(v, what);
    }
    std::optional<std::int64_t> time(const Json& transaction, const char* name) const {
        const auto it = transaction.FindMember(name);
        if (it == transaction.MemberEnd() || it->value.IsNull()) return std::nullopt;
        if (!it->value.IsInt64()) fail(quoted(name) + " must be an integer or null");
        return it->value.GetInt64();
    }

    History parse_history(const Json& json) {
        if (!json.IsObject()) fail("expected an object");
        History history;
        const Json& name = member(json, "name");
        if (!name.IsString()) fail("\"name\" must be a string");
        history.name = view(name);
        place_.history += ' ' + quoted(history.name);
        const Json& transactions = member(json, "txns");
        if (!transactions.IsArray()) fail("\"txns\" must be an array");
        names_.clear();
        named_ = &history.value_names;
        text_keys_ = text_values_ = false;
        for (const Json& t : transactions.GetArray()) notice_strings(t);
        std::unordered_set<std::string> ids;
        std::unordered_map<std::string, std::int64_t> processes;
        history.transactions.reserve(transactions.Size());
        for (const Json& t : transactions.GetArray()) {
            place_.transaction = ", transaction " + std::to_string(history.transactions.size());
            place_.operation.clear();
            history.transactions.push_back(parse_transaction(t, processes));
            const Transaction& parsed = history.transactions.back();
            if (!ids.insert(exact(t["id"], "\"id\"")).second) fail("the id is not unique");
            if (parsed.invoke && parsed.complete && *parsed.complete < *parsed.invoke)
                fail("completes before it was invoked");
        }
        return history;
    }

    /// Integers stay integers as long as a history has nothing else; a string anywhere makes all of them names.
    void notice_strings(const Json& transaction) {
        if (!transaction.IsObject() || !transaction.HasMember("ops") || !transaction["ops"].IsArray()) return;
        for (const Json& operation : transaction["ops"].GetArray()) {
            if (!operation.IsArray() || operation.Size() != 3) continue;
            text_keys_ |= !operation[1].IsString();
            if (operation[2].IsArray()) {
                for (const Json& v : operation[2].GetArray()) text_values_ |= !v.IsInt64();
            } else {
                text_values_ |= !operation[2].IsInt64() && !operation[2].IsNull();
            }
        }
    }

    Transaction parse_transaction(const Json& json, std::unordered_map<std::string, std::int64_t>& processes) {
        if (!json.IsObject()) fail("expected an object");
        Transaction t;
        t.id = scalar(member(json, "id"), "\"id\"");
        place_.transaction += " (id " + t.id + ")";
        if (const auto it = json.FindMember("process"); it != json.MemberEnd() && !it->value.IsNull()) {
            const auto next = static_cast<std::int64_t>(processes.size());
            t.process = processes.emplace(exact(it->value, "\"process\""), next).first->second;
        }
        t.invoke = time(json, "invoke");
        t.complete = time(json, "complete");
        const Json& status = member(json, "status");
        if (status == "ok") {
            t.status = Status::ok;
        } else if (status == "fail") {
            t.status = Status::fail;
        } else if (status == "info") {
            t.status = Status::info;
        } else {
            fail("\"status\" must be \"ok\", \"fail\" or \"info\"");
        }
        const Json& operations = member(json, "ops");
        if (!operations.IsArray()) fail("\"ops\" must be an array");
        for (const Json& operation : operations.GetArray()) {
            place_.operation = ", operation " + std::to_string(t.operations.size());
            t.operations.push_back(parse_operation(operation, t.status));
        }
        place_.operation.clear();
        return t;
    }

    Operation parse_operation(const Json& json, Status status) {
        constexpr const char* expected = "expected [\"append\", key, value] or [\"r\", key, [values]]";
        if (!json.IsArray() || json.Size() != 3 || !json[0].IsString()) fail(expected);
        std::string key = text_keys_ ? exact(json[1], "the key") : scalar(json[1], "the key");
        if (json[0] == "append") return Append{std::move(key), value(json[2])};
        if (json[0] != "r") fail(expected);
        if (json[2].IsNull()) {
            if (status == Status::ok) fail("a read of an acknowledged transaction needs its list");
            return Read{std::move(key), std::nullopt};
        }
        if (!json[2].IsArray()) fail(expected);
        std::vector<std::int64_t> values;
        values.reserve(json[2].Size());
        for (const Json& v : json[2].GetArray()) values.push_back(value(v));
        return Read{std::move(key), std::move(values)};
    }

    std::int64_t value(const Json& v) {
        if (!text_values_) {
            if (!v.IsInt64()) fail("a value must be an integer or a string");
            return v.GetInt64();
        }
        std::string name = exact(v, "a value");
        const auto [it, fresh] = names_.emplace(name, static_cast<std::int64_t>(names_.size()));
        if (fresh) named_->push_back(std::move(name));
        return it->second;
    }

    Place place_;
    bool text_keys_ = false, text_values_ = false;
    std::unordered_map<std::string, std::int64_t> names_;
    std::vector<std::string>* named_ = nullptr;
};

}  // namespace

std::vector<History> parse_histories(std::string_view json) {
    return Parser().parse(json);
}

}  // namespace varve::checkers
