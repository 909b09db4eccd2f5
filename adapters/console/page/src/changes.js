// What an event says that is new, by nothing but the JSON of events: each of its fields beside what the last event of
// its type had there.

/** Its leaves by path: {"transfer.id": "…", "lines[0].cents": 3}. */
export function leavesOf(value, path = '', found = new Map()) {
    if (found.size > 500) return found;
    const isNumber = JSON.isRawJSON?.(value) ?? false;
    if (!isNumber && value !== null && typeof value === 'object' && Object.keys(value).length > 0) {
        for (const [name, inner] of Object.entries(value)) {
            const step = Array.isArray(value) ? `[${name}]` : path ? '.' + name : name;
            leavesOf(inner, path + step, found);
        }
    } else {
        found.set(path || '(value)', JSON.stringify(value));
    }
    return found;
}

/** `events`: in their order, up to this one. */
export function changesOf(event, events) {
    const before = events.findLast(
        (one) =>
            one.type === event.type &&
            (one.version < event.version || (one.version === event.version && one.index < event.index)),
    );
    const was = before ? leavesOf(before.data) : new Map();
    const is = leavesOf(event.data);
    const paths = [...is.keys(), ...[...was.keys()].filter((path) => !is.has(path))];
    return {
        before,
        fields: paths.map((path) => ({path, was: was.get(path), is: is.get(path)})),
    };
}
