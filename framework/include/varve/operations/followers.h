#pragma once

#include <varve/commands/application.h>
#include <varve/commands/follower_status.h>
#include <varve/commands/parked_stream.h>

#include <string_view>
#include <vector>

namespace varve::operations {

// What the store says of those who follow its events, in whatever program: of use where that program's types are not
// known. An application says more of its own followers (Application::followers).

/// All that have begun, by name, each partition and each build with an entry of its own. `state` is `stopped` where
/// `error` says why, `building` for a build that is not read yet, else `elsewhere`. Whoever has its lock is `owner`,
/// unless that is over for more than a minute. `lag` is the age of the last event that it has taken, unless it is at
/// the end. Errors: those of the store; ConfigError for a store without a feed. Threads: any, of all functions here.
///
///     for (const FollowerStatus& one : operations::followers(bank))
///         std::cout << one.name << " is " << one.end - one.position << " slots behind\n";
std::vector<FollowerStatus> followers(Application& application);

/// The streams that this one has set aside, of all its partitions.
std::vector<ParkedStream> parked(Application& application, std::string_view follower);

/// Asks the programs that have this projection to make its rows anew, as Application::rebuild does: the first one that
/// looks begins. Harmless while it is being made. InvalidError for a follower that keeps no rows that could be.
void rebuild(Application& application, std::string_view follower);
/// As Application::pause_rebuild and resume_rebuild. InvalidError if nothing is being rebuilt.
void pause_rebuild(Application& application, std::string_view follower);
void resume_rebuild(Application& application, std::string_view follower);

}  // namespace varve::operations
