#pragma once

#include <varve/aggregates/aggregate.h>
#include <varve/rows/rows.h>
#include <varve/testing/assertion_failed.h>

#include <string>
#include <vector>

namespace varve::testing {

namespace detail {

/// One thing that is stored under a name.
struct StoredShape {
    enum class Kind { event, effect, row, snapshot };
    struct Form {
        int schema;
        const json::detail::Type* type;
    };

    Kind kind;
    std::string name;         ///< "account/Deposited", "balances"
    std::vector<Form> forms;  ///< the present one, and what it can be read from
    bool is_sorted = false;   ///< of rows
};

void check_shapes(const std::string& file, const std::vector<StoredShape>& shapes);

template <class Form>
void add_forms(StoredShape& shape) {
    shape.forms.push_back({event_schema<Form>(), &json::detail::TypeOf<Form>::value});
    if constexpr (varve::detail::HasPrevious<Form>) add_forms<typename Form::Previous>(shape);
}

template <class A, class... Events>
void add_events(std::vector<StoredShape>& shapes, const std::variant<Events...>*) {
    const auto add = [&]<class Event>(const Event*) {
        StoredShape& shape = shapes.emplace_back();
        shape = {StoredShape::Kind::event, std::string{A::name} + "/" + std::string{event_name<Event>()}, {}};
        add_forms<Event>(shape);
    };
    (add(static_cast<const Events*>(nullptr)), ...);
}

template <class Stored>
void add_shapes(std::vector<StoredShape>& shapes) {
    using json::detail::TypeOf;
    if constexpr (Aggregate<Stored>) {
        add_events<Stored>(shapes, static_cast<const typename Stored::Event*>(nullptr));
        if constexpr (requires { Stored::snapshots; }) {
            shapes.push_back({StoredShape::Kind::snapshot,
                              std::string{Stored::name},
                              {{Stored::snapshots.version, &TypeOf<Stored>::value}}});
        }
    } else if constexpr (ReadModel<Stored>) {
        shapes.push_back({StoredShape::Kind::row,
                          std::string{Stored::table},
                          {{1, &TypeOf<Stored>::value}},
                          varve::detail::is_sorted<Stored>()});
    } else {
        add_forms<Stored>(
            shapes.emplace_back(StoredShape{StoredShape::Kind::effect, std::string{event_name<Stored>()}, {}}));
    }
}

}  // namespace detail

/// Fails a test when a program would no longer read what an earlier one stored. `file` holds the names, schemas, fields
/// and types of all that the aggregates (their events and snapshots), read models and effects store; this function
/// writes it; it belongs to the sources and is the same with all compilers:
///
///     TEST(Shop, reads_what_it_has_stored) {
///         varve::testing::stored_shapes<Order, Customer, OpenOrders, SendReceipt>(SOURCE_DIR "/shapes.json");
///     }
///
/// Throws AssertionFailed, which says what to do: for a change that breaks what is stored, such as a renamed field
/// without an upcaster; for a safe one that the file does not know yet; and when there is no file. With
/// VARVE_UPDATE_SHAPES=1 in the environment it writes what is new and safe into the file, and still throws for what is
/// not. Safe changes are: a new event, read model or effect; a new field, or one that is gone, but not both in one
/// struct; a larger integer or floating point type; an optional in place of its value; a new enumerator, or alternative
/// of a variant; a new schema of an event whose older forms are those of the file; and any change of a snapshot, which
/// is taken anew.
template <class... Stored>
void stored_shapes(const std::string& file) {
    std::vector<detail::StoredShape> shapes;
    (detail::add_shapes<Stored>(shapes), ...);
    detail::check_shapes(file, shapes);
}

}  // namespace varve::testing
