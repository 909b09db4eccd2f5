#include "protocol/cells.h"

#include "feed/log.h"
#include "locks/stored_lock.h"
#include "transactions/system_table.h"

#include <varve/store/item.h>
#include <varve/store/item_store.h>

#include <iomanip>
#include <ostream>

namespace varve::protocol {

using testing::RequestInfo;

std::string_view name(ProtocolStep step) {
    constexpr std::string_view names[] = {"prepare",   "validate", "commit", "single", "native",  "finalise",
                                          "done mark", "fence",    "undo",   "read",   "changes", "other"};
    return names[static_cast<std::size_t>(step)];
}

namespace {

bool requires_claim(const store::Condition& condition) {
    if (condition.op == store::Condition::Operator::equals && condition.attribute == "_tx") return true;
    for (const store::Condition& operand : condition.operands) {
        if (condition.op != store::Condition::Operator::negation && requires_claim(operand)) return true;
    }
    return false;
}

ProtocolStep classify_write(const store::Write& write) {
    const std::string& table = write.key.table;
    if (table == transactions::system_table().name || table == locks::locks_table().name || feed::is_log_table(table))
        return ProtocolStep::other;
    const bool claimed = requires_claim(write.condition);
    if (const auto* put = std::get_if<store::Put>(&write.action)) {
        const std::string* state = store::text(put->item, "state");
        if (state && *state == "pending") return ProtocolStep::prepare;
        if (state && *state == "void") return claimed ? ProtocolStep::undo : ProtocolStep::fence;
        if (claimed) return ProtocolStep::commit;  // a prepared primary; a reserved slot's finalising looks the same
        return put->item.contains("participants") || put->item.contains("continued") ? ProtocolStep::commit
                                                                                     : ProtocolStep::single;
    }
    if (const auto* update = std::get_if<store::Update>(&write.action)) {
        if (update->set.contains("_tx")) return ProtocolStep::prepare;
        if (update->set.contains("done")) return ProtocolStep::done_mark;
        if (!claimed) return ProtocolStep::single;
        return update->set.contains("_rev") || update->set.contains("state") ? ProtocolStep::finalise
                                                                             : ProtocolStep::undo;
    }
    return claimed ? ProtocolStep::undo : ProtocolStep::other;
}

}  // namespace

ProtocolStep classify(const RequestInfo& request, ProtocolStep last_write) {
    switch (request.kind) {
        case RequestInfo::Kind::write: return classify_write(request.writes.front());
        case RequestInfo::Kind::write_atomically: return ProtocolStep::native;
        case RequestInfo::Kind::changes: return ProtocolStep::changes;
        default: return last_write == ProtocolStep::prepare ? ProtocolStep::validate : ProtocolStep::read;
    }
}

void Cells::hit(ProtocolStep step, const testing::FaultCounts& before, const testing::FaultCounts& after) {
    hit(step, request_lost, after.request_lost - before.request_lost);
    hit(step, answer_lost, after.answer_lost - before.answer_lost);
    hit(step, late, after.request_late - before.request_late);
    hit(step, again, after.delivered_again - before.delivered_again);
    hit(step, past, after.any_past_request - before.any_past_request);
    hit(step, error_without_effect, after.error_without_effect - before.error_without_effect);
    hit(step, error_with_effect, after.error_with_effect - before.error_with_effect);
    hit(step, answered_again, after.answered_again - before.answered_again);
    hit(step, slow, after.slow_request - before.slow_request + after.slow_answer - before.slow_answer);
    hit(step, throttled, after.throttled - before.throttled);
    hit(step, read_failed, after.read_failed - before.read_failed);
    hit(step, small_page, after.small_page - before.small_page);
}

void Cells::add(const Cells& other) {
    for (std::size_t s = 0; s < protocol_steps; ++s) {
        for (std::size_t f = 0; f < faults; ++f) counts_[s][f] += other.counts_[s][f];
    }
}

std::size_t Cells::print(std::ostream& out, std::uint64_t least) const {
    constexpr std::string_view names[] = {"lost",     "ans.lost", "late",     "again", "past",   "err",     "err+eff",
                                          "answ.2nd", "slow",     "throttle", "fail",  "smallp", "stopped", "paused"};
    out << std::setw(10) << "";
    for (const std::string_view fault : names) out << std::setw(9) << fault;
    out << '\n';
    std::size_t rare = 0;
    for (std::size_t s = 0; s + 1 < protocol_steps; ++s) {
        const auto step = static_cast<ProtocolStep>(s);
        const bool reads =
            step == ProtocolStep::validate || step == ProtocolStep::read || step == ProtocolStep::changes;
        out << std::setw(10) << name(step);
        for (std::size_t f = 0; f < faults; ++f) {
            const bool of_writes = f <= answered_again && f != past;
            const bool possible = f == read_failed  ? reads
                                  : f == small_page ? reads && step != ProtocolStep::changes
                                                    : !(reads && of_writes);
            if (possible) {
                out << std::setw(9) << counts_[s][f];
                rare += counts_[s][f] < least;
            } else {
                out << std::setw(9) << '-';
            }
        }
        out << '\n';
    }
    return rare;
}

}  // namespace varve::protocol
