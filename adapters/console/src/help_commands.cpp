#include "console.h"
#include "output.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

using Command = const CLI::App*;

std::vector<Command> commands_of(const CLI::App& app) {
    std::vector<Command> commands;
    for (Command command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (!command->get_group().empty()) commands.push_back(command);  // else it is hidden
    }
    return commands;
}

std::string names_of(const std::vector<Command>& commands) {
    std::string words;
    for (Command command : commands) words += (words.empty() ? "" : " ") + command->get_name();
    return words;
}

std::string options_of(const CLI::App& command) {
    std::string words;
    for (const CLI::Option* option : command.get_options()) {
        if (command.get_parent() != nullptr && option == command.get_help_ptr()) continue;
        for (const std::string& name : option->get_lnames()) words += " --" + name;
    }
    return words;
}

std::string underlined(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return text;
}

/// The words so far say which command it is: "projections parked"; behind it come its own commands, and all options.
std::string bash(const CLI::App& app) {
    const std::string function = "_" + underlined(app.get_name());
    std::string script = function +
                         "() {\n"
                         "    local word command= current=${COMP_WORDS[COMP_CWORD]}\n"
                         "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                         "        case \"$command $word\" in\n";
    const auto each = [&](const auto& use) {
        for (Command command : commands_of(app)) {
            use(*command, command->get_name());
            for (Command inner : commands_of(*command)) use(*inner, command->get_name() + " " + inner->get_name());
        }
    };
    each([&](const CLI::App&, const std::string& name) {
        const std::string words = name.find(' ') == std::string::npos ? " " + name : name;
        script += "            '" + words + "') command='" + name + "' ;;\n";
    });
    script +=
        "        esac\n"
        "    done\n"
        "    case $command in\n";
    each([&](const CLI::App& command, const std::string& name) {
        script += "        '" + name + "') COMPREPLY=($(compgen -W '" + names_of(commands_of(command)) +
                  options_of(command) + options_of(app) + "' -- \"$current\")) ;;\n";
    });
    script += "        *) COMPREPLY=($(compgen -W '" + names_of(commands_of(app)) + options_of(app) +
              "' -- \"$current\")) ;;\n"
              "    esac\n"
              "}\n"
              "complete -o default -F " +
              function + " " + app.get_name() + "\n";
    return script;
}

std::string fish_quoted(const std::string& text) {
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return quoted + "'";
}

std::string fish(const CLI::App& app) {
    std::string script;
    const std::string complete = "complete -c " + app.get_name();
    const auto add_options = [&](const CLI::App& command, const std::string& when) {
        for (const CLI::Option* option : command.get_options()) {
            for (const std::string& name : option->get_lnames())
                script += complete + when + " -l " + name + " -d " + fish_quoted(option->get_description()) + "\n";
        }
    };
    add_options(app, "");
    for (Command command : commands_of(app)) {
        script += complete + " -f -n __fish_use_subcommand -a " + command->get_name() + " -d " +
                  fish_quoted(command->get_description()) + "\n";
        const std::string seen = " -n '__fish_seen_subcommand_from " + command->get_name() + "'";
        add_options(*command, seen);
        for (Command inner : commands_of(*command)) {
            script += complete + " -f" + seen + " -a " + inner->get_name() + " -d " +
                      fish_quoted(inner->get_description()) + "\n";
        }
    }
    return script;
}

/// For roff, which takes a dot or an apostrophe at the beginning of a line, and each backslash, for its own.
std::string roff_quoted(const std::string& text) {
    std::string quoted;
    for (const char c : text) {
        const bool begins_line = quoted.empty() || quoted.back() == '\n';
        if (begins_line && (c == '.' || c == '\'')) quoted += "\\&";
        if (c == '\\' || c == '-') quoted += '\\';
        quoted += c;
    }
    return quoted;
}

std::string option_names(const CLI::Option& option) {
    std::string names;
    for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
    for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
    if (names.empty()) return option.get_name();
    return option.get_items_expected_max() == 0 ? names : names + " VALUE";
}

void add_options(std::string& page, const CLI::App& command, bool with_help) {
    for (const CLI::Option* option : command.get_options()) {
        if (!with_help && option == command.get_help_ptr()) continue;
        page += ".TP\n.B " + roff_quoted(option_names(*option)) + "\n" + roff_quoted(option->get_description()) + "\n";
    }
}

std::string man(const CLI::App& app) {
    const std::string& name = app.get_name();
    std::string upper = name;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    std::string page = ".TH " + upper + " 1\n.SH NAME\n" +
                       roff_quoted(name + " - what an operator sees of a store of varve's") + "\n.SH SYNOPSIS\n.B " +
                       roff_quoted(name) + "\n.I command\n[options]\n.SH DESCRIPTION\n" +
                       roff_quoted(app.get_description()) + "\n.SH OPTIONS\n";
    add_options(page, app, true);
    page += ".SH COMMANDS\n";
    for (Command command : commands_of(app)) {
        page += ".SS " + roff_quoted(command->get_name()) + "\n" + roff_quoted(command->get_description()) + ".\n";
        add_options(page, *command, false);
        for (Command inner : commands_of(*command)) {
            page += ".SS " + roff_quoted(command->get_name() + " " + inner->get_name()) + "\n" +
                    roff_quoted(inner->get_description()) + ".\n";
            add_options(page, *inner, false);
        }
    }
    page += ".SH ENVIRONMENT\n.TP\n.B VARVE_STORE\nThe store's URL, where \\-\\-store is not given.\n";
    page += ".SH EXIT STATUS\n.nf\n" + roff_quoted(app.get_footer()) + "\n.fi\n";
    return page;
}

}  // namespace

void add_help_commands(CLI::App& app, Console& console) {
    CLI::App* completion =
        app.add_subcommand("completion", "Print what a shell needs to complete commands and options");
    const auto shell = std::make_shared<std::string>();
    completion->add_option("shell", *shell, "bash, zsh or fish; for bash: source <(varve completion bash)")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
    completion->callback([&app, &console, shell] {
        console.chosen = [&app, shell] {
            const std::string head = *shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
            print_line(*shell == "fish" ? fish(app) : head + bash(app));
            return int{done};
        };
    });
    CLI::App* page = app.add_subcommand("man", "Print the manual page, for man -l");
    page->callback([&app, &console] {
        console.chosen = [&app] {
            print_line(man(app));
            return int{done};
        };
    });
}

}  // namespace varve::console
