#pragma once

#include "../payments.h"

namespace CLI {
class App;
}

namespace bank {

/// The options that say what a load of transfers is like; what `load` holds before are the defaults. It must outlive
/// `command`.
void add_load_options(CLI::App& command, Load& load);

}  // namespace bank
