import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import {correlationLink, counted, get, shownTime, streamLink} from '../api.js';
import {changesOf} from '../changes.js';
import {Failure, Head, Table, useAsked} from '../ui.jsx';

const page_size = 50;

export function Streams() {
    const [prefix, setPrefix] = useState('');
    const [pages, setPages] = useState(['']); // the name that each page comes after
    const after = pages.at(-1);
    const asked = useAsked((signal) => get('streams', {prefix, after, limit: page_size}, signal), [prefix, after]);
    const {value, again} = asked;
    useEffect(() => {
        if (!value || value.complete) return undefined;
        const timer = setTimeout(again, 100);
        return () => clearTimeout(timer);
    }, [value]);
    const search = (event) => {
        setPrefix(event.target.value);
        setPages(['']);
    };
    return (
        <>
            <Head title="Streams" />
            <form class="bar" role="search" onSubmit={(event) => event.preventDefault()}>
                <label for="prefix">Name begins with</label>
                <input
                    id="prefix"
                    type="search"
                    autocomplete="off"
                    spellcheck={false}
                    value={prefix}
                    onInput={search}
                    placeholder="account-"
                />
            </form>
            <Failure error={asked.error} />
            {value && !value.complete ? (
                <p class="note" role="status">
                    Streams that are not in the stored list are being looked for:{' '}
                    {Math.floor((100 * value.position) / Math.max(1, value.end))}% of the events are read.
                </p>
            ) : null}
            {value ? (
                <>
                    <Table label="Streams" columns={['stream', 'first event (UTC)']}>
                        {value.streams.map((one) => (
                            <tr key={one.stream}>
                                <td class="mono">
                                    <a href={streamLink(one.stream)}>{one.stream}</a>
                                </td>
                                <td>{shownTime(one.since)}</td>
                            </tr>
                        ))}
                        {value.streams.length === 0 ? (
                            <tr>
                                <td colspan="2" class="soft">
                                    {prefix ? 'No stream’s name begins so.' : 'There are no streams.'}
                                </td>
                            </tr>
                        ) : null}
                    </Table>
                    <div class="bar">
                        <button
                            type="button"
                            disabled={pages.length === 1}
                            onClick={() => setPages(pages.slice(0, -1))}
                        >
                            Previous
                        </button>
                        <button
                            type="button"
                            disabled={!value.more}
                            onClick={() => setPages([...pages, value.streams.at(-1).stream])}
                        >
                            Next
                        </button>
                        <span class="soft">Page {pages.length}</span>
                    </div>
                </>
            ) : null}
        </>
    );
}

const piece_size = 100;

/** Keeps the pieces of a stream that were read: versions 1 to 100, 101 to 200, and so on. */
function usePieces(name, version, refresh) {
    const pieces = useRef(new Map());
    const [state, setState] = useState({head: undefined, error: undefined});
    const [, setRound] = useState(0);
    const piece = version ? Math.floor((version - 1) / piece_size) : undefined;
    useEffect(() => {
        const abort = new AbortController();
        const load = async (at, needed) => {
            if (at < 0 || (pieces.current.has(at) && !needed)) return;
            const from = at * piece_size + 1;
            const events = [];
            let next = from;
            let head;
            // Large events come in several answers.
            do {
                const value = await get(
                    'streams/' + encodeURIComponent(name),
                    {from: next, limit: from + piece_size - next},
                    abort.signal,
                );
                events.push(...value.events);
                head = value.head;
                next = value.next && value.next < from + piece_size ? value.next : 0;
            } while (next);
            pieces.current.set(at, events);
            setState({head, error: undefined});
        };
        const go = async () => {
            try {
                if (piece === undefined) {
                    const value = await get(
                        'streams/' + encodeURIComponent(name),
                        {order: 'newest', limit: 1},
                        abort.signal,
                    );
                    setState({head: value.head, error: undefined});
                    return;
                }
                await load(piece, false);
                await load(piece - 1, false);
                setRound((n) => n + 1);
            } catch (error) {
                if (!abort.signal.aborted) setState((was) => ({...was, error}));
            }
        };
        go();
        return () => abort.abort();
    }, [name, piece, refresh]);
    return {
        ...state,
        isLoaded: pieces.current.has(piece),
        events: [...(pieces.current.get(piece - 1) ?? []), ...(pieces.current.get(piece) ?? [])],
        forget: () => pieces.current.clear(),
    };
}

export function Stream({name, query}) {
    const [chosen, setChosen] = useState(Number(query.get('version')) || 0);
    const [refresh, setRefresh] = useState(0);
    const known = usePieces(name, chosen, refresh);
    const version = Math.min(chosen || known.head || 0, known.head || chosen);
    useEffect(() => {
        if (!chosen && known.head) setChosen(known.head);
    }, [known.head]);
    const choose = (to) => {
        const within = Math.min(Math.max(1, to), known.head);
        setChosen(within);
        history.replaceState(null, '', streamLink(name, within));
    };
    const toEnd = async () => {
        known.forget();
        const value = await get('streams/' + encodeURIComponent(name), {order: 'newest', limit: 1});
        setChosen(value.head);
        setRefresh((n) => n + 1);
    };
    const here = known.events.filter((one) => one.version === version);
    const around = useMemo(
        () => known.events.filter((one) => one.version > version - 60 && one.version < version + 40),
        [known.events, version],
    );
    const split = useRef();
    useEffect(() => {
        // Within its list alone: the page stays where it is.
        const row = split.current?.querySelector("tr[aria-current='true']");
        const list = row?.closest('.list');
        if (list)
            list.scrollTop +=
                row.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 3;
    }, [version, around.length]);
    const effects = useAsked(
        async (signal) => {
            // Who moves the slider does not stay at each version.
            await new Promise((done) => setTimeout(done, 80));
            if (!version || signal.aborted) return undefined;
            return get('streams/' + encodeURIComponent(name), {from: version, limit: 1, effects: 1}, signal);
        },
        [name, version],
    );
    return (
        <>
            <Head title={name}>
                <button type="button" onClick={toEnd}>
                    Newest version
                </button>
            </Head>
            <Failure error={known.error} />
            {known.head ? (
                <>
                    <label class="bar" for="version">
                        <span>
                            Version <strong>{counted(version)}</strong> of {counted(known.head)}
                        </span>
                        <span class="soft">{here.length ? shownTime(here[0].time) + ' UTC' : ''}</span>
                    </label>
                    <input
                        id="version"
                        type="range"
                        min="1"
                        max={known.head}
                        value={version}
                        onInput={(event) => choose(Number(event.target.value))}
                    />
                    <div class="split" ref={split}>
                        <section class="panel" aria-label="This version">
                            {here.map((event) => (
                                <Event key={event.id} event={event} events={known.events} />
                            ))}
                            {here.length === 0 ? (
                                <p class="soft">{known.isLoaded ? 'This slot has no events.' : 'Reading…'}</p>
                            ) : null}
                            <Effects effects={effects.value?.effects.filter((one) => one.version === version)} />
                        </section>
                        <Table
                            label="Versions around it"
                            class="list"
                            columns={[{name: 'version', number: true}, 'event', 'data']}
                        >
                            {around.map((event) => (
                                <tr key={event.id} aria-current={event.version === version ? 'true' : undefined}>
                                    <td class="number">
                                        <button type="button" class="link" onClick={() => choose(event.version)}>
                                            {event.version}
                                        </button>
                                    </td>
                                    <td>{event.type}</td>
                                    <td class="mono cut">{JSON.stringify(event.data).slice(0, 200)}</td>
                                </tr>
                            ))}
                        </Table>
                    </div>
                </>
            ) : null}
        </>
    );
}

function Event({event, events}) {
    const {before, fields} = changesOf(event, events);
    const metadata = event.metadata;
    return (
        <>
            <h2>
                {event.type}
                {event.schema > 1 ? <span class="soft"> schema {event.schema}</span> : null}
            </h2>
            <pre>{JSON.stringify(event.data, null, 2)}</pre>
            <h2>
                What changed{' '}
                <span class="soft">
                    {before ? `since the ${event.type} of version ${before.version}` : `: the first ${event.type} here`}
                </span>
            </h2>
            <dl class="pairs mono">
                {fields.map(({path, was, is}) => (
                    <>
                        <dt>{path}</dt>
                        <dd>
                            {was === is ? (
                                <span class="before">{is}, as before</span>
                            ) : (
                                <>
                                    {was === undefined ? null : (
                                        <>
                                            <del class="before">{was}</del>{' '}
                                        </>
                                    )}
                                    <span class="now">{is ?? 'gone'}</span>
                                </>
                            )}
                        </dd>
                    </>
                ))}
            </dl>
            <h2>Beside it</h2>
            <dl class="pairs">
                <dt>id</dt>
                <dd class="mono">{event.id}</dd>
                {metadata.command_id ? (
                    <>
                        <dt>command</dt>
                        <dd class="mono">{metadata.command_id}</dd>
                    </>
                ) : null}
                {metadata.correlation ? (
                    <>
                        <dt>correlation</dt>
                        <dd class="mono">
                            <a href={correlationLink(metadata.correlation)}>{metadata.correlation}</a>
                        </dd>
                    </>
                ) : null}
                {metadata.causation ? (
                    <>
                        <dt>causation</dt>
                        <dd class="mono">{metadata.causation}</dd>
                    </>
                ) : null}
                {Object.entries(metadata.headers).map(([name, value]) => (
                    <>
                        <dt>{name}</dt>
                        <dd>{value}</dd>
                    </>
                ))}
            </dl>
        </>
    );
}

function Effects({effects}) {
    if (!effects?.length) return null;
    return (
        <>
            <h2>Effects</h2>
            {effects.map((one) => (
                <>
                    <p>
                        {one.type} <span class="soft mono">{one.id}</span>
                    </p>
                    <pre>{JSON.stringify(one.data, null, 2)}</pre>
                </>
            ))}
        </>
    );
}
