#include "console.h"
#include "output.h"
#include "reports.h"

#include <varve/operations/doctor.h>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

using operations::Diagnosis;

int examine(Console& console) {
    bool is_well = true;
    for (const Diagnosis& one : operations::diagnose(console.application())) {
        is_well = is_well && one.health != Diagnosis::Health::sick;
        if (console.json) {
            print_json(report_of(one));
            continue;
        }
        std::string what = one.what;
        what.resize(std::max<std::size_t>(what.size(), 13), ' ');
        const char* const sign = one.health == Diagnosis::Health::well  ? "✓"
                                 : one.health == Diagnosis::Health::odd ? "!"
                                                                        : "✗";
        print_line(std::string{sign} + " " + what + " " + shown(one.found));
        if (!one.advice.empty()) print_line("                → " + shown(one.advice));
    }
    return is_well ? done : not_done;
}

}  // namespace

void add_doctor_command(CLI::App& app, Console& console) {
    CLI::App* const doctor = app.add_subcommand("doctor", "Look how the store is doing, and say what to do");
    doctor->callback([&console] { console.chosen = [&console] { return examine(console); }; });
}

}  // namespace varve::console
