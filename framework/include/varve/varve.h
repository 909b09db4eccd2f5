#pragma once

/// What every application needs. What some need has a header of its own: locks/locks.h, events/event_store.h,
/// processes/process.h and the like. Tests include <varve/testing/given.h> besides.
#include <varve/aggregates/aggregate.h>
#include <varve/commands/application.h>
#include <varve/commands/projection.h>
#include <varve/core/error.h>
#include <varve/rows/rows.h>
#include <varve/store/open.h>
