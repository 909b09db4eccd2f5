#pragma once

#include <varve/core/reflect.h>
#include <varve/core/type_name.h>

#include <cstddef>
#include <string_view>
#include <type_traits>

// How a type that cannot work is refused at compile time: with one sentence, at the user's line that names it.
//
// Compilers show a static_assert beneath a pile of template instantiations, and then report what follows from it. So
// each function that takes a type from the user has two overloads: one for types that are in order, and one that
// matches all others and only carries a message. g++ prints the message as a template argument; clang gets it as an
// attribute.
//
//     template <Storable T>
//     std::string encode(const T& value);
//     template <class T, VARVE_WHY(RefusedJson<T>)>
//     requires(RefusedJson<T>::refused) std::string encode(const T& value) VARVE_REFUSED;

// The rules, and what to do. Each follows the name of what breaks it: "shop::Placed::lines is a std::set, …".
// clang-format off
#define VARVE_RULES(rule)                                                                                              \
    rule(is_const, "is const, so it cannot be read back; leave the const out")                                         \
    rule(is_set, "is a set, which has no JSON form; use std::vector")                                                  \
    rule(is_pair, "is a std::pair or std::tuple, which has no JSON form; use a struct, whose fields have names")       \
    rule(is_view, "is a std::string_view, which would refer to text that is gone; use std::string")                    \
    rule(is_wide_text, "is text of another kind than std::string, which is UTF-8; use std::string")                    \
    rule(is_character, "is a character, neither a number nor a text; use std::string, or std::int8_t for a number")    \
    rule(is_pointer,                                                                                                   \
         "is a pointer, which cannot be stored; use the value itself, std::optional where it may be missing, "         \
         "std::string for text")                                                                                       \
    rule(is_time_point, "is a std::chrono::time_point of another clock or unit; use varve::Time")                      \
    rule(is_fractional_duration, "is a duration that counts in fractions; use std::chrono::milliseconds or its like")  \
    rule(is_c_array, "is a C array; use std::array or std::vector")                                                    \
    rule(is_vector_of_bool, "is a std::vector<bool>, whose elements have no addresses; use std::vector<std::uint8_t>") \
    rule(is_multimap, "is a map with repeated keys, which has no JSON form; use a map of vectors")                     \
    rule(has_bad_key, "is a map whose keys are neither std::string nor integers nor enums; use one of these")          \
    rule(is_optional_twice, "is an optional of an optional, and null would mean two things; use one of them")          \
    rule(is_empty_enum, "is an enum without an enumerator from -128 to 255; give it one")                              \
    rule(has_nameless_alternative, "is a variant of what has no name, such as an int; make each alternative a struct") \
    rule(has_equal_alternatives,                                                                                       \
         "is a variant with two alternatives of one name; give one of them a static constexpr std::string_view name")  \
    rule(has_base, "has a base class; make the base a field")                                                          \
    rule(is_no_plain_struct,                                                                                           \
         "is no plain struct: it has a constructor, a private or protected member or a virtual function; use a "       \
         "struct with public fields")                                                                                  \
    rule(needs_initialiser, "cannot be made as T{}; give each of its fields a default")                                \
    rule(has_too_many_fields, "has more than 64 fields; group some of them in structs")                                \
    rule(has_no_json_form,                                                                                             \
         "has no JSON form; use bool, integers, double, std::string, enums, varve::Time, durations, std::optional, "   \
         "vectors, arrays, maps, variants or structs of these")                                                        \
    rule(has_a_compilers_name,                                                                                         \
         "is a template, or has no name, so compilers would store it under different names; give it a static "         \
         "constexpr std::string_view name")                                                                            \
    rule(has_bad_name, "has a static name that is no constexpr text; make it static constexpr std::string_view name")  \
    rule(has_no_upcast, "has a Previous and no way to read it; add static upcast(const Previous&)")                    \
    rule(is_no_event_of_it, "is what upcast returns, and is no event of the aggregate; add it to its Event variant")   \
    rule(has_equal_events,                                                                                             \
         "has two events of one stored name, of which the second would be read as the first; give one of them a "      \
         "static constexpr std::string_view name")                                                                     \
    rule(has_no_default,                                                                                               \
         "cannot be made as T{} and copied, as an aggregate must be before its first event; give each of its "         \
         "members a default")                                                                                          \
    rule(has_no_name, "is an aggregate without a name; add static constexpr std::string_view name")                    \
    rule(has_no_events, "is an aggregate without events; add using Event = std::variant<...> of them")                 \
    rule(has_bad_events, "is an aggregate whose Event is no std::variant; make it one, even of one event")             \
    rule(has_no_apply, "is not applied; add void apply(const Event&) for this event to the aggregate")                 \
    rule(has_no_decide,                                                                                                \
         "is not decided on; add Decision<Event> decide(const Command&) const for this command to the aggregate")      \
    rule(has_bad_snapshots, "has snapshots that are no policy; make it static constexpr varve::SnapshotPolicy")        \
    rule(has_snapshots_never,                                                                                          \
         "has a SnapshotPolicy that takes none; give it a positive every_slots, every_bytes or load_time_max, or "     \
         "leave snapshots out")                                                                                        \
    rule(is_no_event, "is no event of the aggregate; add it to its Event variant")                                     \
    rule(has_no_table, "is a read model without a table; add static constexpr std::string_view table")                 \
    rule(has_bad_sorted,                                                                                               \
         "has a sorted that is no constant; make it static constexpr bool sorted, or give the field another name")     \
    rule(has_bad_indexes,                                                                                              \
         "has Indexes that cannot work; include varve/rows/indexes.h and make it using Indexes = "                     \
         "varve::Indexes<varve::Index<&Row::field>, varve::Unique<&Row::other>>, each on a field of its own")          \
    rule(has_no_order,                                                                                                 \
         "has an index and no order; index a bool, a number, a std::string, an enum, a varve::Time, a duration, or "   \
         "an optional of these")                                                                                       \
    rule(has_no_such_index, "has no index to find rows by; add varve::Index<...> of the field to the row's Indexes")   \
    rule(is_not_unique, "has an Index, by which there may be many rows; ask with where, or make it varve::Unique")     \
    rule(projects_nothing,                                                                                             \
         "projects no event of the aggregate; add void operator()(const Event&, ProjectionContext&) const")            \
    rule(projects_as_non_const, "has an operator() that is not const; make it const")                                  \
    rule(has_no_listens_to,                                                                                            \
         "is a process that does not say what it listens to; add using ListensTo = varve::EventsOf<...> of aggregates") \
    rule(has_bad_listens_to,                                                                                           \
         "has a ListensTo that is no list of aggregates; make it using ListensTo = varve::EventsOf<...> of these")     \
    rule(listens_to_nothing,                                                                                           \
         "listens to no event; add static std::optional<std::string> on(const Event&, const varve::EventContext&), "   \
         "which says to which instance it belongs")                                                                    \
    rule(has_no_on,                                                                                                    \
         "is reacted to, and not listened to; add static std::optional<std::string> on(const Event&, const "           \
         "varve::EventContext&) for it")                                                                               \
    rule(has_bad_on, "is listened to by an on that does not say for whom; let it return std::optional<std::string>")   \
    rule(has_no_react,                                                                                                 \
         "is listened to, or set as a timer, and not reacted to; add void react(const It&, varve::Reaction&) const")    \
    rule(has_bad_timers, "has Timers that are no std::variant; make them one, even of one timer")                      \
    rule(takes_no_transaction, "is no body of a transaction; make it [](varve::Transaction& tx) { ... }")              \
    rule(returns_something, "returns a value, which nobody would look at; return nothing, and refuse with tx.reject")
// clang-format on

namespace varve::detail {

enum class Rule {
    none,
#define VARVE_ENUMERATOR(rule, message) rule,
    VARVE_RULES(VARVE_ENUMERATOR)
#undef VARVE_ENUMERATOR
};

/// A text that is made at compile time. What does not fit is cut off.
struct Sentence {
    char text[320] = {};

    consteval Sentence& operator+=(std::string_view more) {
        std::size_t size = std::string_view{text}.size();
        for (const char c : more) {
            if (size + 1 < sizeof(text)) text[size++] = c;
        }
        return *this;
    }
};

/// What breaks a rule: a type, or a field of one. clang shows their names.
template <class T>
struct Type {
    static consteval Sentence name() { return Sentence{} += qualified_type_name<T>(); }
};
template <class Owner, auto pointer>
struct FieldOf {
    static consteval Sentence name() {
        Sentence name;
        ((name += qualified_type_name<Owner>()) += "::") += field_name<pointer>();
        return name;
    }
};

template <Rule broken, class What, class In>
consteval Sentence make_sentence() {
    constexpr std::string_view messages[] = {"",
#define VARVE_MESSAGE(rule, message) message,
                                             VARVE_RULES(VARVE_MESSAGE)
#undef VARVE_MESSAGE
    };
    Sentence sentence = What::name();
    if constexpr (!std::is_void_v<In>) ((sentence += " (in ") += In::name().text) += ")";
    return (sentence += " ") += messages[static_cast<std::size_t>(broken)];
}

struct Fine {
    static constexpr bool refused = false;
    static constexpr Rule rule = Rule::none;
    static constexpr Sentence sentence{};
};

/// `What` breaks the rule; `In` is what it belongs to, unless its name says so.
template <Rule broken, class What, class In = void>
struct Refused {
    static constexpr bool refused = true;
    static constexpr Rule rule = broken;
    static constexpr Sentence sentence = make_sentence<broken, What, In>();
};

}  // namespace varve::detail

#ifdef __clang__
#define VARVE_WHY(...) class why = __VA_ARGS__
#define VARVE_REFUSED_BY(broken, message) \
    __attribute__((                       \
        diagnose_if(why::rule == varve::detail::Rule::broken, "what the note below names " message, "error")))
#define VARVE_REFUSED                                                                     \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wgcc-compat\"") \
        VARVE_RULES(VARVE_REFUSED_BY) _Pragma("clang diagnostic pop")
#else
#define VARVE_WHY(...) varve::detail::Sentence why = __VA_ARGS__::sentence
#define VARVE_REFUSED = delete
#endif
