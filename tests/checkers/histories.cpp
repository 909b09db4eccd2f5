// histories FILE: judges recorded list-append histories; see usage below and history_json.h for the format.

#include "history_json.h"
#include "list_append.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include <rapidjson/ostreamwrapper.h>
#include <rapidjson/writer.h>

namespace {

using namespace varve::checkers;

constexpr const char* usage =
    "usage: histories [--json] [--level serializable|snapshot|committed] FILE     (- for standard input)\n"
    "Prints 'NAME: ok' or 'NAME: G1a, G-single' per history, each followed by an indented explanation.\n"
    "A level hides what it allows; the default, serializable, allows nothing.\n"
    "exit status: 0 no anomaly, 1 anomalies, 2 bad input\n";

struct Options {
    std::string file;
    Level level = Level::serializable;
    bool json = false;
};

int refuse(const std::string& why) {
    std::cerr << "histories: " << why << "\n" << usage;
    return 2;
}

void print_text(const History& history, const std::vector<Finding>& findings) {
    std::cout << history.name << ": ";
    if (findings.empty()) std::cout << "ok";
    for (std::size_t i = 0; i < findings.size(); ++i) std::cout << (i ? ", " : "") << name(findings[i].anomaly);
    std::cout << "\n";
    for (const Finding& finding : findings) {
        std::cout << "  " << name(finding.anomaly) << "\n";
        for (const std::string& line : finding.explanation) std::cout << "    " << line << "\n";
    }
}

class JsonPrinter {
  public:
    JsonPrinter() { writer_.StartArray(); }
    void print(const History& history, const std::vector<Finding>& findings) {
        writer_.StartObject();
        member("name", history.name);
        writer_.Key("ok");
        writer_.Bool(findings.empty());
        writer_.Key("anomalies");
        writer_.StartArray();
        for (const Finding& finding : findings) {
            writer_.StartObject();
            member("type", name(finding.anomaly));
            list("cycle", finding.cycle);
            list("explanation", finding.explanation);
            writer_.EndObject();
        }
        writer_.EndArray();
        writer_.EndObject();
    }
    void end() {
        writer_.EndArray();
        std::cout << "\n";
    }

  private:
    void string(std::string_view s) { writer_.String(s.data(), static_cast<rapidjson::SizeType>(s.size())); }
    void member(const char* key, std::string_view value) {
        writer_.Key(key);
        string(value);
    }
    void list(const char* key, const std::vector<std::string>& values) {
        writer_.Key(key);
        writer_.StartArray();
        for (const std::string& value : values) string(value);
        writer_.EndArray();
    }
    rapidjson::OStreamWrapper out_{std::cout};
    rapidjson::Writer<rapidjson::OStreamWrapper> writer_{out_};
};

}  // namespace

int main(int argc, char** argv) {
    std::ios::sync_with_stdio(false);
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--help") {
            std::cout << usage;
            return 0;
        }
        if (argument == "--json") {
            options.json = true;
        } else if (argument == "--level") {
            const std::string level = i + 1 < argc ? argv[++i] : "";
            if (level == "serializable") {
                options.level = Level::serializable;
            } else if (level == "snapshot") {
                options.level = Level::snapshot;
            } else if (level == "committed") {
                options.level = Level::committed;
            } else {
                return refuse("unknown level '" + level + "'");
            }
        } else if (argument.size() > 1 && argument[0] == '-') {
            return refuse("unknown option " + argument);
        } else if (options.file.empty()) {
            options.file = argument;
        } else {
            return refuse("one file only");
        }
    }
    if (options.file.empty()) return refuse("no file given");

    std::string text;
    if (options.file == "-") {
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else {
        std::ifstream in(options.file, std::ios::binary);
        if (!in) return refuse("cannot read " + options.file);
        text.assign(std::istreambuf_iterator<char>(in), {});
    }

    std::vector<History> histories;
    try {
        histories = parse_histories(text);
    } catch (const BadHistory& error) {
        std::cerr << "histories: " << options.file << ": " << error.what() << "\n";
        return 2;
    }
    const auto allowed = anomalies_allowed(options.level);
    bool clean = true;
    std::optional<JsonPrinter> json;
    if (options.json) json.emplace();
    for (const History& history : histories) {
        auto findings = check(history);
        std::erase_if(findings, [&](const Finding& f) { return allowed.contains(f.anomaly); });
        clean &= findings.empty();
        json ? json->print(history, findings) : print_text(history, findings);
    }
    if (json) json->end();
    return clean ? 0 : 1;
}
