#include "operations/check_run.h"
#include "transactions/in_turn.h"
#include "transactions/row.h"

#include <varve/core/error.h>

#include <algorithm>
#include <utility>

namespace varve::operations {

using namespace transactions;

void Claims::meet(Met met) {
    met_.push_back(std::move(met));
}

void Claims::judge() {
    std::vector<Met> met = std::exchange(met_, {});
    std::erase_if(met, [&](const Met& one) {
        if (run_.may_be(one.claim.primary)) return false;
        run_.find("orphan-intent", one.item, "it is claimed by " + one.claim.tx + " with a primary that cannot be");
        return true;
    });
    std::vector<store::Key> primaries;
    for (const Met& one : met) primaries.push_back(one.claim.primary);
    read_in_turn(run_.store, primaries, [&](std::size_t i, std::optional<store::Item> item) {
        const auto look = [&] { judge(met[i], decode_slot(primaries[i], std::move(item))); };
        readable(run_, primaries[i], look);
    });
}

void Claims::judge(const Met& met, const Slot& primary) {
    const Claim& claim = met.claim;
    const std::string& stream = claim.primary.partition;
    const auto orphan = [&](const std::string& why) {
        if (still_stands(met)) {
            run_.find("orphan-intent", met.item,
                      "it is claimed by transaction " + claim.tx + " with the primary " +
                          store::to_string(claim.primary) + ", and " + why);
        }
    };
    if (is_internal(stream) && stream.starts_with(transaction_stream("")) && stream != transaction_stream(claim.tx))
        return orphan("that is another transaction's own stream");
    if (met.item == claim.primary && met.epoch && *met.epoch != claim.primary_epoch)
        return orphan("as its own primary it lies over another epoch than the claim says");
    const Verdict verdict = transactions::judge(claim, primary);
    if (verdict != Verdict::committed && !is_internal(stream) && version_of(claim.primary) > 1) {
        const store::Key before = slot_key(stream, version_of(claim.primary) - 1);
        if (run_.is_committed(before) == false)
            return orphan("nobody can have decided there, since the slot before it is not committed");
    }
    if (verdict == Verdict::undecided) {
        ++run_.report.undecided;
        return;
    }
    ++run_.report.to_be_settled;
    if (verdict == Verdict::aborted || met.is_reserved || met.item == claim.primary) return;
    const auto all = participants_of(run_, claim.primary, std::get<Committed>(primary));
    if (all && std::ranges::find(*all, met.item) == all->end()) {
        --run_.report.to_be_settled;
        orphan("what has committed there did not write this item");
    }
}

bool Claims::still_stands(const Met& met) try {
    const std::optional<store::Item> item = run_.item(met.item);
    if (!item) return false;
    const std::optional<Claim> claim = claim_on(met.item, *item);
    if (!claim || claim->tx != met.claim.tx) return false;
    if (met.item.table != events_table().name) {
        const Row row = decode_row(met.item, item);
        return row.intent && row.intent->reserved == met.is_reserved;
    }
    const Slot slot = decode_slot(met.item, item);
    const auto* pending = std::get_if<Pending>(&slot);
    return pending != nullptr && pending->reserved == met.is_reserved;
} catch (const CorruptionError&) {
    return false;
}

}  // namespace varve::operations
