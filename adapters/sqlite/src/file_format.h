#pragma once

#include <varve/sqlite/sqlite.h>

namespace varve::sqlite {

/// Makes sure that there is a varve file at options.path: creates it, or checks that it is one.
///
///     application_id  0x76617276 ("varv"): the file belongs to varve
///     user_version    1: tables as described in table.h
///
/// A file of another program is left exactly as it is. Throws what sqlite::open says.
void prepare_file(const Options& options);

}  // namespace varve::sqlite
