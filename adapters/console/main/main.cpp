#include <varve/console/console.h>

int main(int argc, char** argv) {
    return varve::console::run(argc, argv);
}
