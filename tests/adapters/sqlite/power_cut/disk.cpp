#include "disk.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace varve::power_cut {
namespace {

constexpr std::size_t sector = 512;

}  // namespace

void Disk::change(std::vector<std::byte>& content, const Change& change) {
    if (change.truncates) return content.resize(change.offset);
    content.resize(std::max<std::size_t>(content.size(), change.offset + change.content.size()));
    std::ranges::copy(change.content, content.begin() + static_cast<std::ptrdiff_t>(change.offset));
}

void Disk::change(std::map<std::string, std::shared_ptr<File>>& names, const Entry& entry) {
    if (!entry.gone.empty()) names.erase(entry.gone);
    if (!entry.name.empty()) names[entry.name] = entry.file;
}

void Disk::apply(const Request& request, std::span<const std::byte> content) {
    const auto file = [&] {
        const auto found = files_.find(request.file);
        if (found == files_.end()) throw std::runtime_error("the trace names a file that it did not create");
        return found->second;
    };
    const std::string_view text{reinterpret_cast<const char*>(content.data()), content.size()};
    switch (request.kind) {
        case Request::Kind::create: {
            auto created = std::make_shared<File>();
            created->is_kept = text == acknowledgements;
            files_[request.file] = created;
            pending_.push_back({.gone = {}, .name = std::string{text}, .file = created});
            break;
        }
        case Request::Kind::link: pending_.push_back({.gone = {}, .name = std::string{text}, .file = file()}); break;
        case Request::Kind::unlink: pending_.push_back({.gone = std::string{text}, .name = {}, .file = {}}); break;
        case Request::Kind::rename: {
            const std::size_t end = text.find('\0');
            pending_.push_back(
                {.gone = std::string{text.substr(0, end)}, .name = std::string{text.substr(end + 1)}, .file = file()});
            break;
        }
        case Request::Kind::write:
        case Request::Kind::truncate: {
            const Change one{request.kind == Request::Kind::truncate, request.offset, content};
            File& changed = *file();
            if (changed.is_kept) {
                change(changed.flushed, one);
            } else {
                changed.pending.push_back(one);
            }
            break;
        }
        case Request::Kind::flush:
            if (!flushes_) break;
            if (request.file == 0) {
                for (const Entry& entry : pending_) change(names_, entry);
                pending_.clear();
            } else {
                File& flushed = *file();
                for (const Change& one : flushed.pending) change(flushed.flushed, one);
                flushed.pending.clear();
            }
            break;
    }
}

void Disk::cut(const std::filesystem::path& directory, std::mt19937_64& random) const {
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    auto names = names_;
    const std::size_t entries = below(pending_.size() + 1);
    for (std::size_t i = 0; i < pending_.size(); ++i) {
        if (i < entries || (pending_[i].file && pending_[i].file->is_kept)) change(names, pending_[i]);
    }
    // Everything that was not flushed, or nothing of it, or its beginning, or any of it.
    enum { all, none, beginning, any };
    const std::size_t fate = below(4);
    for (const auto& [name, file] : names) {
        std::vector<std::byte> content = file->flushed;
        const std::size_t until = below(file->pending.size() + 1);
        for (std::size_t i = 0; i < file->pending.size(); ++i) {
            const Change& one = file->pending[i];
            const bool torn = !one.truncates && one.content.size() > sector &&
                              ((fate == beginning && i == until) || (fate == any && below(4) == 0));
            if (torn) {
                for (std::size_t at = 0; at < one.content.size(); at += sector) {
                    const std::size_t size = std::min(sector, one.content.size() - at);
                    if (below(2) == 0) change(content, {false, one.offset + at, one.content.subspan(at, size)});
                }
            } else if (fate == all || (fate == beginning && i < until) || (fate == any && below(2) == 0)) {
                change(content, one);
            }
        }
        std::ofstream out{directory / name, std::ios::binary};
        out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    }
}

}  // namespace varve::power_cut
