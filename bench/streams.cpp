#include "streams.h"

#include "account.h"
#include "events/stored_slot.h"

#include <string>
#include <vector>

namespace bench {

void write_streams(varve::store::ItemStore& store, std::string_view aggregate, long first_id, long ids, long length) {
    store.ensure_table(varve::transactions::events_table());
    std::vector<varve::store::Write> writes;
    const auto flush = [&] {
        if (!writes.empty()) static_cast<void>(store.write(writes));
        writes.clear();
    };
    for (long id = first_id; id < first_id + ids; ++id) {
        const std::string stream = std::string{aggregate} + "-" + std::to_string(id);
        for (long version = 1; version <= length; ++version) {
            const varve::transactions::Committed slot{
                .write_id = std::to_string(version),
                .payload = varve::events::encode_payload({varve::encode_event(Deposited{1})}, {}, {})};
            writes.push_back(
                varve::transactions::commit_free_slot(varve::transactions::slot_key(stream, version), 0, slot));
            if (writes.size() == 500) flush();
        }
    }
    flush();
}

}  // namespace bench
