#pragma once

#include <atomic>

namespace varve::sqlite {

/// Becomes SQLite's way to the disk for as long as it lives, and fails on demand. One at a time; stores opened before
/// it do not notice it, and those opened while it lives must be gone before it.
class FaultyVfs {
  public:
    FaultyVfs();
    ~FaultyVfs();
    FaultyVfs(const FaultyVfs&) = delete;
    FaultyVfs& operator=(const FaultyVfs&) = delete;

    std::atomic<int> log_syncs = 0;        ///< fsyncs of write-ahead logs so far
    std::atomic<int> sync_us = 0;          ///< how long an fsync takes in addition, as on a slow disk
    std::atomic<bool> disk_full = false;   ///< writes find no space
    std::atomic<bool> sync_fails = false;  ///< fsyncs report an error of the disk
    std::atomic<bool> read_fails = false;  ///< reads report an error of the disk
};

}  // namespace varve::sqlite
