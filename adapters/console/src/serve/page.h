#pragma once

#include <span>
#include <string_view>

namespace varve::console::serve {

/// A file of the page, as it was built into this program.
struct PageFile {
    std::string_view path;  ///< "/page.js"
    std::string_view content_type;
    std::string_view bytes;
};

/// None if the page was left out of the build.
std::span<const PageFile> page_files();
/// Why it was left out; empty if it was not.
std::string_view why_no_page();

}  // namespace varve::console::serve
