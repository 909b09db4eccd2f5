#pragma once

#include "each_server.h"
#include "support/temporary_folder.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace varve::dynamodb {

/// A program in JavaScript, as a page of the documentation shows it.
class DocumentedProgram {
  public:
    explicit DocumentedProgram(const std::string& page) { std::ofstream{program_} << text(page); }

    struct Ran {
        std::string said;
        int status;
    };
    Ran run(const LocalServer& server, const std::string& argument) const {
        const std::string command = "NODE_NO_WARNINGS=1 NODE_PATH='" VARVE_DYNAMODB_SERVERS
                                    "/node_modules' AWS_REGION=eu-west-1 AWS_ACCESS_KEY_ID=local"
                                    " AWS_SECRET_ACCESS_KEY=local node '" +
                                    program_.string() + "' http://" + server.address() + " '" + argument + "' 2>&1";
        std::FILE* pipe = popen(command.c_str(), "r");
        if (pipe == nullptr) throw std::runtime_error("no shell");
        Ran ran;
        std::array<char, 4096> bytes{};
        while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), pipe))
            ran.said.append(bytes.data(), count);
        ran.status = pclose(pipe);
        return ran;
    }

  private:
    static std::string text(const std::string& page) {
        std::ifstream file{page};
        std::stringstream whole;
        whole << file.rdbuf();
        const std::string text = whole.str();
        constexpr std::string_view begin = "```js\n";
        const std::size_t from = text.find(begin);
        if (from == std::string::npos) throw std::runtime_error("no program in " + page);
        return text.substr(from + begin.size(), text.find("```\n", from + begin.size()) - from - begin.size());
    }

    const TemporaryFolder folder_{"foreign"};
    const std::filesystem::path program_ = folder_.path() / "program.js";
};

}  // namespace varve::dynamodb
