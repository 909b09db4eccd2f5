#include "commands/inside.h"

namespace varve::detail {

thread_local const Inside* Inside::innermost = nullptr;

}  // namespace varve::detail
