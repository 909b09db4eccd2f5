#include "transactions/system_table.h"

#include <varve/core/shared_mutex.h>
#include <varve/operations/read_only.h>
#include <varve/store/adapter.h>

#include <map>
#include <utility>

namespace varve::operations {

namespace {

using namespace store;

class ReadOnlyStore final : public ItemStore {
  public:
    explicit ReadOnlyStore(std::shared_ptr<ItemStore> inner) : inner_(std::move(inner)) {}

    void ensure_table(const TableSchema& schema) override {
        if (!inner_->has_table(schema)) note_missing(schema);
    }
    bool has_table(const TableSchema& schema) override { return inner_->has_table(schema); }

    std::vector<std::optional<Item>> read(std::span<const Key> keys) override {
        std::vector<Key> there;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (is_missing(keys[i].table)) continue;
            there.push_back(keys[i]);
            places.push_back(i);
        }
        std::vector<std::optional<Item>> items(keys.size());
        if (there.empty()) return items;
        std::vector<std::optional<Item>> found = inner_->read(there);
        for (std::size_t i = 0; i < places.size(); ++i) items[places[i]] = std::move(found[i]);
        return items;
    }

    std::vector<WriteAnswer> write(std::span<const Write> writes) override {
        store::check(writes, Batch::independent);
        return std::vector<WriteAnswer>(writes.size(), refusal());
    }
    AtomicAnswer write_atomically(std::span<const Write> writes) override {
        store::check(writes, Batch::atomic);
        return refusal();
    }

    Page query(const Query& query) override { return is_missing(query.table) ? Page{} : inner_->query(query); }
    Page scan(const Scan& scan) override { return is_missing(scan.table) ? Page{} : inner_->scan(scan); }
    Capabilities capabilities() const override { return inner_->capabilities(); }
    std::vector<Change> changes(const std::string& table, Position after, std::size_t limit) override {
        return is_missing(table) ? std::vector<Change>{} : inner_->changes(table, after, limit);
    }
    Position last_change(const std::string& table) override {
        return is_missing(table) ? 0 : inner_->last_change(table);
    }
    std::shared_ptr<void> watch(const std::string& table, std::function<void()> changed) override {
        return is_missing(table) ? nullptr : inner_->watch(table, std::move(changed));
    }
    std::vector<std::string> concerns() override { return inner_->concerns(); }

  private:
    static Failure refusal() {
        return {ErrorKind::read_only, false, "this store was opened for reading only; nothing was written"};
    }

    void note_missing(const TableSchema& schema) {
        const ExclusiveLock lock{mutex_};
        missing_.insert_or_assign(schema.name, schema);
    }
    /// Whether it was asked for and is not there; somebody else may have made it since.
    bool is_missing(const std::string& table) {
        TableSchema schema;
        {
            const SharedLock lock{mutex_};
            const auto found = missing_.find(table);
            if (found == missing_.end()) return false;
            schema = found->second;
        }
        if (!inner_->has_table(schema)) return true;
        const ExclusiveLock lock{mutex_};
        missing_.erase(table);
        return false;
    }

    const std::shared_ptr<ItemStore> inner_;
    SharedMutex mutex_;
    std::map<std::string, TableSchema, std::less<>> missing_ VARVE_GUARDED_BY(mutex_);
};

}  // namespace

void check_is_of_varve(store::ItemStore& store) {
    const store::Key format{transactions::system_table().name, "format"};
    if (store.has_table(transactions::system_table()) && store.read({&format, 1}).front()) return;
    throw ConfigError("the store holds nothing of varve's: no application has been opened on it");
}

std::shared_ptr<store::ItemStore> read_only(std::shared_ptr<store::ItemStore> store) {
    if (!store) throw InvalidError("there is no store to be read");
    check_is_of_varve(*store);
    return std::make_shared<ReadOnlyStore>(std::move(store));
}

}  // namespace varve::operations
