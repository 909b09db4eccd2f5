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
    template <ReadModel T>
    RowsInTransaction<T> rows() {
        return tx_.rows<T>();
    }

  private:
    Transaction& tx_;
    const DecidedEvent& event_;
};

namespace detail {
template <class Projection, class Variant>
inline constexpr std::size_t events_projected = 0;
template <class Projection, class... Events>
inline constexpr std::size_t events_projected<Projection, std::variant<Events...>> =
    (0 + ... + (std::invocable<const Projection&, const Events&, ProjectionContext&> ? 1 : 0));
}  // namespace detail

template <Aggregate A, class Projection>
void Application::project(Projection projection) {
    static_assert(
        detail::events_projected<Projection, typename A::Event> > 0,
        "the projection has no operator()(const Event&, ProjectionContext&) const for any event of the aggregate");
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
