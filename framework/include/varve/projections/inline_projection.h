#pragma once

#include <varve/projections/rows.h>

namespace varve {

/// What an inline projection gets beside the event. Rows are those of the transaction that decided the event: both are
/// committed together or not at all.
///
///     struct ProjectBalance {
///         void operator()(const Deposited& e, ProjectionContext& context) const {
///             context.rows<Balance>().update(context.aggregate_id(), [&](Balance& row) { row.cents += e.cents; });
///         }
///     };
///     bank.project<Account>(ProjectBalance{});
///
/// A projection has a call operator for each event that it cares about; it ignores the others.
class ProjectionContext {
  public:
    ProjectionContext(Transaction& tx, const DecidedEvent& event) : tx_(tx), event_(event) {}
    ProjectionContext(const ProjectionContext&) = delete;
    ProjectionContext& operator=(const ProjectionContext&) = delete;

    std::string_view aggregate_id() const { return event_.aggregate_id; }
    Version version() const { return event_.version; }
    Time time() const { return event_.time; }
    /// Of the command that decided the event: its id, correlation and causation, and the headers of its caller.
    const Metadata& metadata() const { return event_.metadata; }
    template <ReadModel T>
    RowsInTransaction<T> rows() {
        return tx_.rows<T>();
    }
    template <class T, VARVE_WHY(detail::RefusedReadModel<T>)>
    requires(!ReadModel<T>) detail::RefusedRows<T> rows()
    VARVE_REFUSED;

    /// Something to be done outside the store once the event is committed, as Transaction::effect.
    template <EventType Effect>
    void effect(const Effect& effect) {
        tx_.effect(effect);
    }
    template <class Effect, VARVE_WHY(detail::RefusedEvent<Effect>)>
    requires(!EventType<Effect>) void effect(const Effect& effect) VARVE_REFUSED;

  private:
    Transaction& tx_;
    const DecidedEvent& event_;
};

namespace detail {
/// Whether a projection is there for at least one of the events.
template <class Projection, class Variant>
inline constexpr bool projects = false;
template <class Projection, class... Events>
inline constexpr bool projects<Projection, std::variant<Events...>> =
    (std::invocable<Projection&, const Events&, ProjectionContext&> || ...);

/// Whether it would pass over an event since its operator for this event is not const.
template <class Projection, class Variant>
inline constexpr bool projects_as_non_const = false;
template <class Projection, class... Events>
inline constexpr bool projects_as_non_const<Projection, std::variant<Events...>> =
    ((std::invocable<Projection&, const Events&, ProjectionContext&> &&
      !std::invocable<const Projection&, const Events&, ProjectionContext&>) ||
     ...);

template <class A, class Projection>
consteval auto refuse_projection() {
    if constexpr (RefusedAggregate<A>::refused) {
        return RefusedAggregate<A>{};
    } else if constexpr (!projects<Projection, typename A::Event>) {
        return Refused<Rule::projects_nothing, Type<Projection>, Type<A>>{};
    } else if constexpr (projects_as_non_const<Projection, typename A::Event>) {
        return Refused<Rule::projects_as_non_const, Type<Projection>, Type<A>>{};
    } else {
        return Fine{};
    }
}
template <class A, class Projection>
struct RefusedProjection : decltype(refuse_projection<A, Projection>()) {};
}  // namespace detail

template <class A, class Projection>
requires(!detail::RefusedProjection<A, Projection>::refused) void Application::project(Projection projection) {
    add_projection(aggregate_type<A>(), NamedType::of<Projection>({}),
                   [projection = std::move(projection)](Transaction& tx, const DecidedEvent& decided) {
                       ProjectionContext context{tx, decided};
                       std::visit(
                           [&](const auto& event) {
                               if constexpr (std::invocable<const Projection&, decltype(event), ProjectionContext&>) {
                                   projection(event, context);
                               }
                           },
                           *static_cast<const typename A::Event*>(decided.event));
                   });
}

}  // namespace varve
