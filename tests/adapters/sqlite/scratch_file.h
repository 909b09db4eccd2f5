#pragma once

#include "support/temporary_folder.h"

#include <varve/sqlite/sqlite.h>
#include <varve/store/item_store.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace varve::sqlite {

/// For tests that ask for no disk: thousands of fsyncs would take minutes on a slow one.
inline std::filesystem::path fast_directory() {
    return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path();
}

/// A directory of its own for a store's file, removed at the end of the test.
class ScratchFile {
  public:
    explicit ScratchFile(const std::filesystem::path& in = std::filesystem::temp_directory_path())
        : folder_("sqlite", in) {}

    std::string directory() const { return folder_.path(); }
    std::string path() const { return (folder_.path() / "store.db").string(); }
    std::string url() const { return "sqlite:" + path(); }
    Options options() const { return {.path = path()}; }

  private:
    const TemporaryFolder folder_;
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
