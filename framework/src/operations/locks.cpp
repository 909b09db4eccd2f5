#include "commands/application_parts.h"
#include "locks/stored_lock.h"

#include <varve/operations/locks.h>

#include <set>
#include <utility>

namespace varve::operations {

std::vector<StoredLock> locks(Application& application) {
    store::ItemStore& store = *detail::parts_of(application).store;
    std::set<std::string> names;
    store::Scan scan{.table = locks::locks_table().name};
    do {
        store::Page page = store.scan(scan);
        for (const store::Record& record : page.records) {
            const bool is_holder = record.key == locks::holder_key(record.key.partition);
            if (is_holder ? !locks::decode_holder(record.key, record.item).is_free()
                          : locks::ticket_of(record.key).has_value())
                names.insert(record.key.partition);
        }
        scan.next = std::move(page.next);
    } while (scan.next);
    std::vector<StoredLock> found;
    for (const std::string& name : names) {
        Locks::State state = application.locks().inspect(name);
        if (!state.holder.is_free() || !state.queue.empty()) found.push_back({name, std::move(state)});
    }
    return found;
}

}  // namespace varve::operations
