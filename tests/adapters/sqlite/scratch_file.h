#pragma once

#include <varve/sqlite/sqlite.h>
#include <varve/store/item_store.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace varve::sqlite {

/// A directory of its own for a store's file, removed at the end of the test.
class ScratchFile {
  public:
    explicit ScratchFile(const std::filesystem::path& in = std::filesystem::temp_directory_path()) {
        std::string name = (in / "varve-sqlite-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        directory_ = name;
    }
    ~ScratchFile() {
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
    }
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;

    std::string directory() const { return directory_; }
    std::string path() const { return (directory_ / "store.db").string(); }
    std::string url() const { return "sqlite:" + path(); }
    Options options() const { return {.path = path()}; }

  private:
    std::filesystem::path directory_;
};

inline const store::TableSchema accounts{
    .name = "accounts", .partition_attribute = "id", .sort_attribute = "version", .sort = store::SortType::integer};

inline store::Key account(std::string id, std::int64_t version) {
    return {.table = "accounts", .partition = std::move(id), .sort = version};
}

inline store::WriteAnswer write_one(store::ItemStore& store, store::Write write) {
    return store.write({&write, 1}).at(0);
}

inline std::optional<store::Item> read_one(store::ItemStore& store, const store::Key& key) {
    return store.read({&key, 1}).at(0);
}

inline bool is_applied(const store::WriteAnswer& answer) {
    if (const auto* failure = std::get_if<Failure>(&answer)) ADD_FAILURE() << failure->message;
    return std::holds_alternative<store::Applied>(answer);
}

}  // namespace varve::sqlite
