#include "cli.h"

#include <CLI/CLI.hpp>

namespace bank {

namespace {

/// "--store --json …" of a command. Its help stands among the options of all.
std::string option_words(const CLI::App& command) {
    std::string words;
    for (const CLI::Option* option : command.get_options()) {
        if (command.get_parent() != nullptr && option == command.get_help_ptr()) continue;
        for (const std::string& name : option->get_lnames()) words += (words.empty() ? "--" : " --") + name;
    }
    return words;
}

std::string command_words(const CLI::App& app) {
    std::string words;
    for (const CLI::App* command : app.get_subcommands({})) words += (words.empty() ? "" : " ") + command->get_name();
    return words;
}

std::string joined(const std::string& text, char with) {
    std::string result = text;
    std::ranges::replace(result, ' ', with);
    return result;
}

/// Before a command its names, behind it its options; a word that is no option may be a file.
std::string bash(const CLI::App& app) {
    const std::string common = option_words(app);
    std::string script =
        "_bank() {\n"
        "    local word command= current=${COMP_WORDS[COMP_CWORD]}\n"
        "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
        "        case $word in " +
        joined(command_words(app), '|') +
        ") command=$word; break ;; esac\n"
        "    done\n"
        "    case $command in\n";
    for (const CLI::App* command : app.get_subcommands({})) {
        script += "        " + command->get_name() + ") COMPREPLY=($(compgen -W '" + option_words(*command) + " " +
                  common + "' -- \"$current\")) ;;\n";
    }
    script += "        *) COMPREPLY=($(compgen -W '" + command_words(app) + " " + common +
              "' -- \"$current\")) ;;\n"
              "    esac\n"
              "}\n"
              "complete -o default -F _bank bank\n";
    return script;
}

std::string fish_quoted(const std::string& text) {
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return quoted + "'";
}

std::string fish(const CLI::App& app) {
    std::string script;
    const auto add_options = [&](const CLI::App& command, const std::string& when) {
        for (const CLI::Option* option : command.get_options()) {
            for (const std::string& name : option->get_lnames()) {
                script +=
                    "complete -c bank" + when + " -l " + name + " -d " + fish_quoted(option->get_description()) + "\n";
            }
        }
    };
    add_options(app, "");
    for (const CLI::App* command : app.get_subcommands({})) {
        script += "complete -c bank -f -n __fish_use_subcommand -a " + command->get_name() + " -d " +
                  fish_quoted(command->get_description()) + "\n";
        add_options(*command, " -n '__fish_seen_subcommand_from " + command->get_name() + "'");
    }
    return script;
}

}  // namespace

void add_completion_command(CLI::App& app, Cli& cli) {
    const auto shell = std::make_shared<std::string>();
    CLI::App* completion =
        app.add_subcommand("completion", "What a shell needs to complete this program's commands and options");
    completion->add_option("shell", *shell, "bash, zsh or fish; for bash: source <(bank completion bash)")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
    completion->callback([&app, &cli, shell] {
        cli.chosen = [&app, shell] {
            if (*shell == "fish") {
                print_line(fish(app));
            } else {
                const std::string head = *shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
                print_line(head + bash(app));
            }
            return int{exit_done};
        };
    });
}

}  // namespace bank
