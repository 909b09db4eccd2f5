#include "commands/verification.h"
#include "operations/check_run.h"

#include <varve/core/error.h>

#include <set>
#include <typeindex>

namespace varve::operations {

namespace {

/// Compares what `verify` returns; where that cannot be told, says why.
void compare(CheckRun& run, const std::string& name, const std::function<Verified()>& verify) {
    if (!run.goes_on()) return;
    run.tell(name);
    try {
        const Verified verified = verify();
        run.report.folded_rows += static_cast<std::size_t>(verified.rows);
        for (const RowDifference& one : verified.differences) {
            std::string item = one.table + "/" + one.key.partition;
            if (!one.key.sort.empty()) item += "/" + one.key.sort;
            run.find("projection", std::move(item),
                     "it is " + one.stored.value_or("not there") + ", and " + name + " makes " +
                         one.expected.value_or("no such row") + " of the events");
        }
    } catch (const Error& error) {
        run.report.not_checked.push_back("the rows of " + name + ": " + error.what());
    }
}

}  // namespace

void check_projections(CheckRun& run) {
    if (!run.options.fold_projections) return;
    std::set<std::type_index> seen;
    for (const detail::AggregateProjection& one : run.parts.projections.all()) {
        const std::type_info& type = one.projection.type;
        if (!seen.insert(type).second) continue;
        compare(run, std::string{one.projection.cpp_name}, [&] {
            const detail::Consumer consumer =
                detail::consumer_of(one.projection.cpp_name, run.parts.projections.of_type(type), {});
            return detail::Verification{run.application, consumer, detail::Verification::Kind::inline_,
                                        run.options.fold_bytes_max}
                .run();
        });
    }
    for (const std::string& name : run.parts.followers->projections()) {
        compare(run, name, [&] { return run.application.verify(name, run.options.fold_bytes_max); });
    }
}

}  // namespace varve::operations
