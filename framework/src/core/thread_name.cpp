#include "core/thread_name.h"

#include <pthread.h>

namespace varve {

void name_this_thread([[maybe_unused]] const char* name) {
#ifdef __linux__
    pthread_setname_np(pthread_self(), name);
#endif
}

}  // namespace varve
