#include "console.h"
#include "interrupt.h"
#include "output.h"
#include "progress.h"

#include <varve/operations/archive.h>
#include <varve/operations/copy.h>
#include <varve/operations/read_only.h>
#include <varve/store/open.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

namespace varve::console {

namespace {

using operations::Moved;

struct MovedReport {
    bool is_complete = false;
    std::uint64_t slots = 0;
    std::uint64_t receipts = 0;
    std::uint64_t rows = 0;
    std::uint64_t snapshots = 0;
    std::uint64_t locks = 0;
    std::uint64_t bytes = 0;
};

/// What was moved, on standard error where standard output has the file.
int tell(const Console& console, const std::string& what, const Moved& moved, bool to_errors) {
    std::string line;
    if (console.json) {
        line = json::encode(MovedReport{.is_complete = moved.is_complete,
                                        .slots = moved.slots,
                                        .receipts = moved.receipts,
                                        .rows = moved.rows,
                                        .snapshots = moved.snapshots,
                                        .locks = moved.locks,
                                        .bytes = moved.bytes});
    } else {
        line = what + " " + shown(moved.slots) + " slots, " + shown(moved.receipts) + " receipts of command ids, " +
               shown(moved.rows) + " rows, " + shown(moved.snapshots) + " snapshots, " + shown(moved.locks) +
               " items of locks: " + shown(moved.bytes) + " bytes";
        if (!moved.is_complete) line += "; interrupted";
    }
    if (to_errors) {
        std::fprintf(stderr, "%s\n", line.c_str());
    } else {
        print_line(line);
    }
    return moved.is_complete ? done : not_done;
}

template <class Options, class Move>
Moved moved(Console& console, Options options, Move move) {
    const Interrupt interrupt;
    std::stop_source stop;
    Progress progress{console, "items"};
    options.stop = stop.get_token();
    options.runtime.log = *console.log;
    options.progress = [&](const operations::Progress& so_far) {
        progress.update(static_cast<std::int64_t>(so_far.items));
        if (interrupt.came()) stop.request_stop();
    };
    return move(options);
}

/// A file that is there under its name when it is whole, and else not at all.
class WholeFile {
  public:
    explicit WholeFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
        if (std::filesystem::exists(path_))
            throw ConfigError("there is a file " + path_ + " already; give another name");
        const int made = ::open(part_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (made < 0) {
            throw ConfigError("the file " + part_ + " cannot be made: " + std::strerror(errno) +
                              (errno == EEXIST ? "; an export that was killed has left it: remove it" : ""));
        }
        ::close(made);
        out.open(part_, std::ios::binary);
    }
    ~WholeFile() {
        if (!is_whole_) std::remove(part_.c_str());
    }
    WholeFile(const WholeFile&) = delete;
    WholeFile& operator=(const WholeFile&) = delete;

    void end() {
        out.close();
        const std::string folder = std::filesystem::absolute(path_).parent_path().string();
        if (!out || !is_flushed(part_) || std::rename(part_.c_str(), path_.c_str()) != 0 || !is_flushed(folder))
            throw OutputFailed("the export cannot be written to " + path_ + ": " + std::strerror(errno));
        is_whole_ = true;
    }

    std::ofstream out;

  private:
    static bool is_flushed(const std::string& path) {
        const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (opened < 0) return false;
        const bool is_done = ::fsync(opened) == 0;
        ::close(opened);
        return is_done;
    }

    const std::string path_;
    const std::string part_;
    bool is_whole_ = false;
};

/// Whether a line has come on standard input. Its end says nothing: a program that nobody feeds has none.
bool has_read_line() {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, 0) <= 0 || (input.revents & POLLIN) == 0) return false;
    std::string line;
    return static_cast<bool>(std::getline(std::cin, line));
}

struct DifferenceReport {
    std::string item;
    std::string from;
    std::string to;
};

int copy_to(Console& console, const std::string& target, bool has_ended) {
    const std::shared_ptr<store::ItemStore> from = console.store_to_read();
    console.confirm("fill the empty store that was named with what is in this one");
    const std::shared_ptr<store::ItemStore> to = open(target);
    const Interrupt interrupt;
    std::stop_source stop;
    Progress progress{console, "items"};
    bool is_told = false;
    operations::CopyOptions options{.stop = stop.get_token()};
    options.runtime.log = *console.log;
    options.progress = [&](const operations::Progress& so_far) {
        progress.update(static_cast<std::int64_t>(so_far.items));
        if (interrupt.came()) stop.request_stop();
    };
    options.finish = [&] {
        if (interrupt.came()) stop.request_stop();
        if (has_ended) return true;
        if (!std::exchange(is_told, true)) {
            progress.end();
            tcflush(STDIN_FILENO, TCIFLUSH);  // what was typed before is no answer
            std::fprintf(stderr,
                         "All that there is has been copied, and what comes is copied, too. Stop the programs that "
                         "write, then press Enter.\n");
        }
        return has_read_line();
    };
    const operations::Copied copied = operations::copy_store(*from, *to, options);
    progress.end();
    for (const operations::Difference& one : copied.differences) {
        if (console.json) {
            print_json(DifferenceReport{one.item, one.from, one.to});
        } else {
            print_line("✗ " + shown(one.item) + ": here " + shown(one.from) + ", there " + shown(one.to));
        }
    }
    const int code = tell(console, "copied and compared", copied.moved, false);
    return copied.differences.empty() ? code : not_done;
}

int export_to(Console& console, const std::string& path, bool events_only) {
    const std::shared_ptr<store::ItemStore> from = console.store_to_read();
    std::optional<WholeFile> file;
    if (path != "-") file.emplace(path);
    std::ostream& to = file ? file->out : std::cout;
    const Moved result = moved(console, operations::ExportOptions{.events_only = events_only},
                               [&](const auto& options) { return operations::export_store(*from, to, options); });
    if (!to.flush()) throw OutputFailed("the export cannot be written: " + std::string{std::strerror(errno)});
    if (file && result.is_complete) file->end();
    return tell(console, "exported", result, path == "-");
}

int import_from(Console& console, const std::string& path) {
    const std::string what = "fill the store with what is in " + (path == "-" ? "standard input" : path);
    const std::shared_ptr<store::ItemStore> to = console.store_to_fill(what);
    const bool from_input = path == "-";
    std::ifstream file;
    if (!from_input) {
        file.open(path, std::ios::binary);
        if (!file) throw ConfigError("the file " + path + " cannot be read: " + std::strerror(errno));
    }
    std::istream& from = from_input ? std::cin : file;
    return tell(console, "imported",
                moved(console, operations::ImportOptions{},
                      [&](const auto& options) { return operations::import_store(from, *to, options); }),
                false);
}

}  // namespace

void add_archive_commands(CLI::App& app, Console& console) {
    CLI::App* const exporting = app.add_subcommand("export", "Write the whole store to a file of JSON lines");
    const auto path = std::make_shared<std::string>("-");
    const auto events_only = std::make_shared<bool>(false);
    exporting->add_option("file", *path, "- is standard output")->capture_default_str();
    exporting->add_flag("--events-only", *events_only, "only events, while others go on writing");
    exporting->callback([&console, path, events_only] {
        console.chosen = [&console, path, events_only] { return export_to(console, *path, *events_only); };
    });
    CLI::App* const copying =
        app.add_subcommand("copy", "Move the store to an empty one while programs write, and compare both");
    const auto to = std::make_shared<std::string>();
    const auto has_ended = std::make_shared<bool>(false);
    copying->add_option("to", *to, "the URL of the new store")->required();
    copying->add_flag("--writers-have-ended", *has_ended,
                      "do not wait for Enter: nobody writes to the old store any more");
    copying->callback([&console, to, has_ended] {
        console.chosen = [&console, to, has_ended] { return copy_to(console, *to, *has_ended); };
    });
    CLI::App* const importing =
        app.add_subcommand("import", "Fill an empty store with an export; goes on where it was interrupted");
    importing->add_option("file", *path, "- is standard input")->capture_default_str();
    importing->callback(
        [&console, path] { console.chosen = [&console, path] { return import_from(console, *path); }; });
}

}  // namespace varve::console
