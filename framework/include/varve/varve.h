#pragma once

/// Everything an application needs; tests include <varve/testing/given.h> besides.
#include <varve/aggregates/aggregate.h>
#include <varve/commands/application.h>
#include <varve/commands/projection.h>
#include <varve/core/error.h>
#include <varve/events/event_store.h>
#include <varve/locks/locks.h>
#include <varve/rows/rows.h>
#include <varve/store/open.h>
