#pragma once

#include <varve/commands/application.h>

#include <functional>
#include <string>

namespace varve::console {

/// What a program brings to the operator's command line: nothing, as the program `varve` does, or its types.
struct Program {
    std::string name = "varve";
    /// Called with each application that a command opens, before it is used. With project, follow, subscribe and
    /// deliver here, the commands that run the program's own code work: verify, and retry of what is set aside.
    /// Followers begin to follow in this process, too, where it may write and no other has them.
    std::function<void(Application&)> meet = {};
    ApplicationOptions options = {};  ///< of these applications; they never sweep
};

/// Runs one command of the operator's command line, and returns the program's exit code:
///
///     int main(int argc, char** argv) {
///         return varve::console::run(argc, argv, {.name = "shop-varve", .meet = [](varve::Application& shop) {
///             shop.follow<Order>(Revenue{});
///         }});
///     }
///
/// | code | means                                                                            |
/// |------|----------------------------------------------------------------------------------|
/// | 0    | done, or well                                                                    |
/// | 1    | not done: there is no such thing, it was not confirmed; or something is found wrong |
/// | 2    | the command line, the store's URL or its format cannot work                      |
/// | 3    | it failed: the store, or what is stored; what was done before that stays         |
/// | 4    | in doubt: nobody knows whether it was done                                       |
/// | 5    | done, but standard output did not take the result                                |
///
/// Throws nothing but std::bad_alloc. Threads: once at a time in a process; it handles SIGINT while a command follows.
int run(int argc, char** argv, const Program& program = {});

}  // namespace varve::console
