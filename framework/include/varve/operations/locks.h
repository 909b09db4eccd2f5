#pragma once

#include <varve/commands/application.h>
#include <varve/locks/locks.h>

#include <string>
#include <vector>

namespace varve::operations {

struct StoredLock {
    std::string name;
    Locks::State state;
};

/// All locks that somebody holds, or queues for, by name: those of users, and the framework's own, whose names begin
/// with '$'. Reads the table of locks. Errors: those of the store; CorruptionError naming an item that cannot be read.
/// Threads: any.
///
///     for (const operations::StoredLock& one : operations::locks(bank))
///         std::cout << one.name << ": " << one.state.queue.size() << " in its queue\n";
std::vector<StoredLock> locks(Application& application);

}  // namespace varve::operations
