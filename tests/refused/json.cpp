#include <varve/core/json.h>

#include <string_view>
#include <vector>

// Must not compile: what is wrong with a struct has to be said in a sentence (the tests in CMakeLists.txt define one of
// these at a time, and look for it).

#if defined(WITH_BASE)
struct Base {};
struct Event : Base {
    int x;
};
#elif defined(WITH_PRIVATE_MEMBER)
class Event {
    int x = 0;
};
#elif defined(WITH_CONST_FIELD)
struct Event {
    const int x = 0;
};
#elif defined(WITH_POINTER)
struct Event {
    int* x;
};
#elif defined(WITH_C_ARRAY)
struct Event {
    int x[3];
};
#elif defined(WITH_TOO_MANY_FIELDS)
struct Event {
    int a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22;
    int b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22;
    int c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21;
};
#elif defined(WITH_EQUAL_NAMES)
namespace a {
struct Same {};
}  // namespace a
namespace b {
struct Same {};
}  // namespace b
using Event = std::variant<a::Same, b::Same>;
#elif defined(WITH_NAMELESS_ALTERNATIVE)
using Event = std::variant<int>;
#endif

std::string encoded(const Event& event) {
    return varve::json::encode(event);
}
