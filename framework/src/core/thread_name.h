#pragma once

namespace varve {

/// What debuggers and `top` call this thread from now on: at most 15 characters. Nothing where threads have no names.
void name_this_thread(const char* name);

}  // namespace varve
