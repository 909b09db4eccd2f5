#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include <stdlib.h>

namespace varve {

/// A new folder, which goes with the object, and all in it.
class TemporaryFolder {
  public:
    /// Called "varve-NAME-" and six more letters.
    explicit TemporaryFolder(const std::string& name,
                             const std::filesystem::path& in = std::filesystem::temp_directory_path()) {
        std::string path = (in / ("varve-" + name + "-XXXXXX")).string();
        if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("no folder like " + path);
        path_ = path;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace varve
