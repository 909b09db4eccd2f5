#include "transactions/sweep_changes.h"
#include "transactions/sweep_scans.h"

namespace varve::transactions {

Sweeper::Sweeper(Coordinator& coordinator, std::vector<std::string> row_tables, const ScanOptions& scan) {
    row_tables.insert(row_tables.begin(), events_table().name);
    if (coordinator.store().capabilities().ordered_changes) {
        source_ = std::make_unique<Changes>(coordinator, std::move(row_tables));
    } else {
        source_ = std::make_unique<Scans>(coordinator, std::move(row_tables), scan);
    }
}

Sweeper::~Sweeper() = default;

std::size_t Sweeper::sweep() {
    return source_->sweep();
}

bool Sweeper::is_through() const {
    return source_->is_through();
}

}  // namespace varve::transactions
