import {useEffect, useRef, useState} from 'preact/hooks';
import {correlationLink, counted, get, shownTime, streamLink} from '../api.js';
import {Failure, Head, Table} from '../ui.jsx';

const kept_max = 300;

export function Tail() {
    const [events, setEvents] = useState([]);
    const [isPaused, setPaused] = useState(false);
    const [wanted, setWanted] = useState('');
    const [error, setError] = useState();
    const [seen, setSeen] = useState(0);
    const position = useRef();
    useEffect(() => {
        if (isPaused) return undefined;
        const abort = new AbortController();
        const go = async () => {
            while (!abort.signal.aborted) {
                try {
                    const query = position.current === undefined ? {last: 100} : {after: position.current};
                    const value = await get('tail', query, abort.signal);
                    position.current = value.position;
                    setError(undefined);
                    if (value.events.length === 0) continue;
                    setSeen((n) => n + value.events.length);
                    setEvents((was) => [...value.events.reverse(), ...was].slice(0, kept_max));
                    // Under load there is always more; a page a moment is as much as anybody reads.
                    await new Promise((done) => setTimeout(done, 250));
                } catch (failed) {
                    if (abort.signal.aborted) return;
                    setError(failed);
                    await new Promise((done) => setTimeout(done, 2000));
                }
            }
        };
        go();
        return () => abort.abort();
    }, [isPaused]);
    const shown = events.filter((one) => !wanted || one.stream.includes(wanted) || one.type.includes(wanted));
    return (
        <>
            <Head title="Tail">
                <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
                    {isPaused ? 'Go on' : 'Pause'}
                </button>
            </Head>
            <div class="bar">
                <label for="wanted">Stream or type has</label>
                <input
                    id="wanted"
                    type="search"
                    autocomplete="off"
                    spellcheck={false}
                    value={wanted}
                    onInput={(event) => setWanted(event.target.value)}
                />
                <span class="soft">{counted(seen)} events seen, the newest first</span>
            </div>
            <Failure error={error} />
            <Table
                label="Events as they are committed"
                columns={['time (UTC)', 'stream', {name: 'version', number: true}, 'event', 'data', 'correlation']}
            >
                {shown.map((event) => (
                    <tr key={event.id}>
                        <td>{shownTime(event.time)}</td>
                        <td class="mono">
                            <a href={streamLink(event.stream, event.version)}>{event.stream}</a>
                        </td>
                        <td class="number">{event.version}</td>
                        <td>{event.type}</td>
                        <td class="mono cut">{JSON.stringify(event.data).slice(0, 160)}</td>
                        <td class="mono">
                            {event.metadata.correlation ? (
                                <a href={correlationLink(event.metadata.correlation)}>
                                    {event.metadata.correlation.slice(0, 13)}…
                                </a>
                            ) : null}
                        </td>
                    </tr>
                ))}
            </Table>
        </>
    );
}
