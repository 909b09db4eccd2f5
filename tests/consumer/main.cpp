#include <varve/core/error.h>
#include <varve/store/open.h>

#include <cstdio>

/// consumer URL…: opens each store.
int main(int count, char** arguments) {
    try {
        for (int i = 1; i < count; ++i) {
            if (!varve::open(arguments[i])) return 1;
            std::printf("opened %s\n", arguments[i]);
        }
    } catch (const varve::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
