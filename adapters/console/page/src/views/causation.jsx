import {useEffect, useState} from 'preact/hooks';
import {correlationLink, counted, get, shownTime, streamLink} from '../api.js';
import {Failure, Head} from '../ui.jsx';

/** Events below what has led to them. A cause that is not among them is a line of its own. */
export function treeOf(events) {
    const byId = new Map(events.map((event) => [event.id, {key: event.id, event, children: []}]));
    const others = new Map();
    const roots = [];
    const other = (key, name) => {
        if (!others.has(key)) {
            others.set(key, {key, name, children: []});
            roots.push(others.get(key));
        }
        return others.get(key);
    };
    // A circle would be shown nowhere: who is above oneself is no cause.
    const parents = new Map();
    const isAbove = (node, of) => {
        for (let at = of; at; at = parents.get(at)) if (at === node) return true;
        return false;
    };
    for (const node of byId.values()) {
        const {causation, command_id: command} = node.event.metadata;
        const cause = byId.get(causation);
        if (cause && !isAbove(node, cause)) {
            cause.children.push(node);
            parents.set(node, cause);
        } else if (causation) {
            other('cause ' + causation, 'Caused by ' + causation).children.push(node);
        } else if (command) {
            other('command ' + command, 'Command ' + command).children.push(node);
        } else {
            roots.push(node);
        }
    }
    return roots;
}

function Node({node}) {
    const event = node.event;
    return (
        <li>
            {event ? (
                <>
                    <strong>{event.type}</strong>{' '}
                    <a class="mono" href={streamLink(event.stream, event.version)}>
                        {event.stream} {event.version}
                    </a>{' '}
                    <span class="soft">{shownTime(event.time)}</span>{' '}
                    <code class="soft">{JSON.stringify(event.data).slice(0, 160)}</code>
                </>
            ) : (
                <span class="mono">{node.name}</span>
            )}
            {node.children.length ? (
                <ul>
                    {node.children.map((one) => (
                        <Node key={one.key} node={one} />
                    ))}
                </ul>
            ) : null}
        </li>
    );
}

const events_max = 5000;

function Conversation({id}) {
    const [state, setState] = useState({events: [], position: 0, end: 0, complete: false});
    const [error, setError] = useState();
    useEffect(() => {
        const abort = new AbortController();
        const go = async () => {
            const events = [];
            let position = 0;
            try {
                for (;;) {
                    const value = await get('correlation/' + encodeURIComponent(id), {after: position}, abort.signal);
                    events.push(...value.events);
                    position = value.position;
                    const isFull = events.length >= events_max;
                    setState({events: [...events], position, end: value.end, complete: value.complete, isFull});
                    if (value.complete || isFull) return;
                }
            } catch (failed) {
                if (!abort.signal.aborted) setError(failed);
            }
        };
        go();
        return () => abort.abort();
    }, [id]);
    const percent = state.end ? Math.floor((100 * state.position) / state.end) : 0;
    return (
        <>
            <Failure error={error} />
            <p class="soft" role="status">
                {counted(state.events.length)} events
                {state.isFull ? '; there may be more' : state.complete ? '' : `; ${percent}% of all events are read`}
            </p>
            <ul class="tree">
                {treeOf(state.events).map((node) => (
                    <Node key={node.key} node={node} />
                ))}
            </ul>
        </>
    );
}

export function Causation({name}) {
    const search = (event) => {
        event.preventDefault();
        const id = event.target.elements.correlation.value.trim();
        if (id) location.hash = correlationLink(id);
    };
    return (
        <>
            <Head title="Causation" />
            <form class="bar" role="search" onSubmit={search}>
                <label for="correlation">Correlation id</label>
                <input
                    id="correlation"
                    name="correlation"
                    type="search"
                    autocomplete="off"
                    spellcheck={false}
                    defaultValue={name}
                    required
                />
                <button type="submit">Show</button>
            </form>
            {name ? (
                <Conversation key={name} id={name} />
            ) : (
                <p class="soft">Events of one conversation, each below the one that has led to it.</p>
            )}
        </>
    );
}
