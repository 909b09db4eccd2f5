#pragma once

#include <atomic>
#include <functional>

namespace varve::sqlite {

/// Becomes SQLite's way to the disk for as long as it lives, and fails on demand. One at a time; stores opened before
/// it do not notice it, and those opened while it lives must be gone before it.
class FaultyVfs {
  public:
    FaultyVfs();
    ~FaultyVfs();
    FaultyVfs(const FaultyVfs&) = delete;
    FaultyVfs& operator=(const FaultyVfs&) = delete;

    std::atomic<int> log_opens = 0;       ///< write-ahead logs opened so far
    std::atomic<int> log_syncs = 0;       ///< fsyncs of write-ahead logs so far
    std::atomic<int> sync_us = 0;         ///< how long an fsync takes in addition, as on a slow disk
    std::atomic<bool> disk_full = false;  ///< writes find no space
    std::atomic<int> sync_error = 0;      ///< fsyncs report this errno
    std::atomic<int> reads_to_come = -1;  ///< after so many, reads report an error of the disk; negative: none does

    std::function<void()> before_each_call;  ///< that reads, writes or flushes; set it before a store is opened
};

}  // namespace varve::sqlite
