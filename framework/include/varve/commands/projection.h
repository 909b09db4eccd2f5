#pragma once

#include <varve/aggregates/aggregate.h>
#include <varve/commands/transaction.h>
#include <varve/rows/rows.h>

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace varve {

namespace detail {
[[noreturn]] void throw_no_effects_here();
}

/// An event as a projection sees it: one that has just been decided, or one that is followed.
struct ProjectedEvent {
    std::string_view aggregate_id;
    Version version;    ///< of the slot that it is in, or will be
    std::size_t index;  ///< within its slot, from 0
    Time time;
    const Metadata& metadata;
    std::uint64_t position;  ///< RecordedEvent::position; 0 if it has just been decided
    const void* event;       ///< the aggregate's Event variant
};

/// What a projection gets beside the event. The same projection may run in either of two ways:
///
///     bank.project<Account>(ProjectBalance{});   // inline: its rows are part of the command, and always up to date
///     bank.follow<Account>(ProjectBalance{});    // in the background, on all events there ever were; the command
///                                                // costs nothing more, and the rows are a little behind
///
/// Rows are those of one transaction: inline, of that which decided the event; else of one that also saves how far the
/// projection has come. Both are committed together or not at all, so that each event takes effect exactly once.
///
///     struct ProjectBalance {
///         void operator()(const Deposited& e, ProjectionContext& context) const {
///             context.rows<Balance>().update(context.aggregate_id(), [&](Balance& row) { row.cents += e.cents; });
///         }
///     };
///
/// A projection has a call operator for each event that it cares about; it ignores the others. One that follows, and
/// does something else from now on, says so with `static constexpr int version = 2`: its rows are made anew beside
/// those that are read (Application::rebuild).
///
/// An inline projection where each row has one aggregate, as here, may say so:
///
///     struct ProjectBalance {
///         using OwnRows = Balance;
///         …
///
/// Then it alone writes rows of Balance, on an event those under that aggregate's id (the key's `partition`), and it
/// reads no others; InvalidError where it does, or where somebody else writes one. In return they are read along with
/// the aggregate and remembered with it (Transaction::load_all), and can be made anew from its events
/// (Application::refold).
class ProjectionContext {
  public:
    ProjectionContext(Transaction& tx, const ProjectedEvent& event) : tx_(tx), event_(event) {}
    ProjectionContext(const ProjectionContext&) = delete;
    ProjectionContext& operator=(const ProjectionContext&) = delete;

    std::string_view aggregate_id() const { return event_.aggregate_id; }
    Version version() const { return event_.version; }
    /// Of the event within its slot, from 0.
    std::size_t index() const { return event_.index; }
    /// Where a follower has met the event: grows from slot to slot. 0 in an inline projection.
    std::uint64_t position() const { return event_.position; }
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

    /// Something to be done outside the store once the event is committed, as Transaction::effect. InvalidError in a
    /// projection that follows.
    template <EventType Effect>
    void effect(const Effect& effect) {
        if (event_.position > 0) detail::throw_no_effects_here();
        tx_.effect(effect);
    }
    template <class Effect, VARVE_WHY(detail::RefusedEvent<Effect>)>
    requires(!EventType<Effect>) void effect(const Effect& effect) VARVE_REFUSED;

  private:
    Transaction& tx_;
    const ProjectedEvent& event_;
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
template <class Projection>
constexpr const RowTable* own_rows_of() {
    if constexpr (requires { typename Projection::OwnRows; }) {
        using Row = typename Projection::OwnRows;
        static_assert(ReadModel<Row>, "OwnRows names what is no read model (rows/rows.h)");
        return &row_table<Row>;
    }
    return nullptr;
}

template <class Projection>
constexpr int projection_version() {
    if constexpr (requires { Projection::version; }) return Projection::version;
    return 1;
}

template <class A, class Projection>
using RefusedProjection = decltype(refuse_projection<A, Projection>());

/// What runs for each event of an aggregate, inside a transaction.
struct AggregateProjection {
    const AggregateType& aggregate;
    const NamedType projection;
    std::function<void(Transaction&, const ProjectedEvent&)> run;
    /// The rows that it alone keeps, those under an aggregate's id for that aggregate alone; null: it keeps none.
    const RowTable* own = nullptr;
    int version = 1;  ///< of what it makes of the events

    /// "the projection bank::ProjectBalance of bank::Account"
    std::string name() const;
};

/// Both must outlive it.
ProjectedEvent projected(const RecordedEvent& recorded, const void* event);

/// One projection may be for several aggregates.
template <class A, class Projection>
AggregateProjection shared_projection(std::shared_ptr<const Projection> projection) {
    return {.aggregate = aggregate_type<A>(),
            .projection = NamedType::of<Projection>({}),
            .run =
                [projection = std::move(projection)](Transaction& tx, const ProjectedEvent& projected) {
                    ProjectionContext context{tx, projected};
                    std::visit(
                        [&](const auto& event) {
                            if constexpr (std::invocable<const Projection&, decltype(event), ProjectionContext&>) {
                                (*projection)(event, context);
                            }
                        },
                        *static_cast<const typename A::Event*>(projected.event));
                },
            .own = own_rows_of<Projection>(),
            .version = projection_version<Projection>()};
}
template <class A, class Projection>
AggregateProjection aggregate_projection(Projection projection) {
    return shared_projection<A>(std::make_shared<const Projection>(std::move(projection)));
}

template <class Projection, class... As>
using RefusedFollower = FirstRefused<RefusedName<Projection>, RefusedProjection<As, Projection>...>;
}  // namespace detail

}  // namespace varve
