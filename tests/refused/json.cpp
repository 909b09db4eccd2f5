#include <varve/core/json.h>

#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <vector>

// Each case but FINE must be refused in a sentence (CMakeLists.txt has them).

namespace other {
struct Same {};
}  // namespace other
struct Same {};
template <class T>
struct Changed {
    T to;
};
enum class Colour { red };
enum class Empty : int {};
struct Base {};
struct Inner {
#if defined(WITH_SET_DEEP_WITHIN)
    std::set<int> field;
#elif defined(WITH_PRIVATE_MEMBER)
  private:
    int field = 0;
#endif
};

#if defined(WITH_SET)
using Field = std::set<int>;
#elif defined(WITH_UNORDERED_SET)
using Field = std::unordered_set<std::string>;
#elif defined(WITH_PAIR)
using Field = std::pair<int, int>;
#elif defined(WITH_TUPLE)
using Field = std::vector<std::tuple<int, int> >;
#elif defined(WITH_STRING_VIEW)
using Field = std::string_view;
#elif defined(WITH_WSTRING)
using Field = std::wstring;
#elif defined(WITH_CHAR)
using Field = char;
#elif defined(WITH_POINTER)
using Field = int*;
#elif defined(WITH_C_STRING)
using Field = const char*;
#elif defined(WITH_UNIQUE_PTR)
using Field = std::unique_ptr<int>;
#elif defined(WITH_TIME_POINT)
using Field = std::chrono::system_clock::time_point;
#elif defined(WITH_FRACTIONAL_DURATION)
using Field = std::chrono::duration<double>;
#elif defined(WITH_C_ARRAY)
using Field = int[3];
#elif defined(WITH_VECTOR_OF_BOOL)
using Field = std::vector<bool>;
#elif defined(WITH_MULTIMAP)
using Field = std::multimap<std::string, int>;
#elif defined(WITH_FLOAT_KEY)
using Field = std::map<double, int>;
#elif defined(WITH_OPTIONAL_TWICE)
using Field = std::optional<std::optional<int> >;
#elif defined(WITH_EMPTY_ENUM)
using Field = Empty;
#elif defined(WITH_LONG_DOUBLE)
using Field = long double;
#elif defined(WITH_CONST_FIELD)
using Field = const int;
#elif defined(WITH_EQUAL_NAMES)
using Field = std::variant<Same, other::Same>;
#elif defined(WITH_NAMELESS_ALTERNATIVE)
using Field = std::variant<int, Same>;
#elif defined(WITH_TEMPLATE_ALTERNATIVE)
using Field = std::variant<Same, Changed<int> >;
#elif defined(WITH_SET_DEEP_WITHIN) || defined(WITH_PRIVATE_MEMBER)
using Field = std::map<Colour, std::vector<std::optional<Inner> > >;
#elif defined(DECODED)
using Field = std::set<int>;
#else
using Field = std::map<std::string, std::array<std::optional<std::variant<Same, Colour> >, 2> >;
#endif

struct Placed
#if defined(WITH_BASE)
    : Base
#endif
{
#if defined(WITH_TOO_MANY_FIELDS)
    int a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22;
    int b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22;
    int c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21;
#elif defined(WITH_REFERENCE)
    int& field;
#else
    std::string before;
    Field field{};
    std::vector<Placed> within;
#endif
};

#if defined(DECODED)
bool decoded(std::string_view text) {
    return varve::json::decode<Placed>(text).has_value();
}
#else
std::string encoded(const Placed& placed) {
    return varve::json::encode(placed);
}
#endif
