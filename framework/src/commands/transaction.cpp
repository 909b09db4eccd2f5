#include "commands/workspace.h"

#include <varve/commands/transaction.h>

namespace varve {

using detail::Workspace;

detail::Touched& Transaction::touch(const AggregateType& type, std::string_view id) {
    return workspace_.touch(type, id, Workspace::Also::own_rows);
}

void Transaction::touch_all(const AggregateType& type, const std::vector<std::string>& ids) {
    workspace_.touch_all(type, ids, Workspace::Also::own_rows);
}

const void* Transaction::look(const AggregateType& type, std::string_view id) {
    return workspace_.touch(type, id).state();
}

const void* Transaction::state(const detail::Touched& touched) {
    return touched.state();
}

void* Transaction::own_state(detail::Touched& touched) {
    return touched.own_state();
}

Version Transaction::version(const AggregateType& type, std::string_view id) {
    return workspace_.touch(type, id).seen.head;
}

void Transaction::expect(const AggregateType& type, std::string_view id, Version expected) {
    const Version actual = version(type, id);
    if (actual == expected) return;
    reject({.code = "wrong_version",
            .message = stream_name(type, id) + " is at version " + std::to_string(actual) + ", the command expects " +
                       std::to_string(expected)});
}

void Transaction::record(detail::Touched& touched, EventData data, const void* event) {
    workspace_.record(touched, std::move(data), event);
}

void Transaction::add_effect(EventData effect) {
    workspace_.add_effect(std::move(effect));
}

void Transaction::reject(Rejection rejection) {
    workspace_.set_rejection(rejection);
    throw detail::Rejected{std::move(rejection)};
}

void Transaction::fenced_by(const Lock& lock) {
    workspace_.fenced_by(lock);
}

Time Transaction::now() const {
    return workspace_.now();
}

detail::RowsOfTransaction& Transaction::stored_rows() {
    return workspace_.rows_seen();
}

}  // namespace varve
