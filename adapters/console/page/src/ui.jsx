import {useCallback, useEffect, useRef, useState} from 'preact/hooks';
import {post} from './api.js';

/** Asks now, whenever `deps` change, and every `seconds` while the page is seen. What was known stays until then. */
export function useAsked(ask, deps, seconds = 0) {
    const [state, setState] = useState({value: undefined, error: undefined});
    const [round, setRound] = useState(0);
    useEffect(() => {
        const abort = new AbortController();
        let timer;
        const go = async () => {
            if (!document.hidden) {
                try {
                    const value = await ask(abort.signal);
                    if (!abort.signal.aborted) setState({value, error: undefined});
                } catch (error) {
                    if (!abort.signal.aborted) setState((was) => ({value: was.value, error}));
                }
            }
            if (seconds && !abort.signal.aborted) timer = setTimeout(go, seconds * 1000);
        };
        go();
        return () => {
            abort.abort();
            clearTimeout(timer);
        };
    }, [...deps, round]);
    return {...state, again: useCallback(() => setRound((n) => n + 1), [])};
}

export function Failure({error}) {
    return error ? (
        <p class="error" role="alert">
            {error.message}
        </p>
    ) : null;
}

/** A table that scrolls for itself where it is too wide; then the keyboard reaches it, too. */
export function Table({label, columns, children, class: more = ''}) {
    return (
        <div class={'scroll ' + more} tabindex="0" role="region" aria-label={label}>
            <table>
                <thead>
                    <tr>
                        {columns.map((column) => (
                            <th scope="col" class={column.number ? 'number' : undefined}>
                                {column.name ?? column}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>{children}</tbody>
            </table>
        </div>
    );
}

export function Head({title, children}) {
    return (
        <div class="head">
            <h1>{title}</h1>
            {children}
        </div>
    );
}

export function State({is, children}) {
    return <span class={'state ' + is}>{children}</span>;
}

/** An act that changes the store: says what it will do, and asks. */
export function Act({label, what, path, body, then}) {
    const dialog = useRef();
    const [said, setSaid] = useState(null);
    const [isBusy, setBusy] = useState(false);
    const open = () => {
        setSaid(null);
        dialog.current.showModal();
    };
    const go = async () => {
        setBusy(true);
        try {
            const answer = await post('/api/' + path, {confirm: path.split('/').pop(), ...body});
            setSaid(
                answer.message ??
                    (answer.settled.map((one) => `${one.transaction} is ${one.verdict}`).join('; ') ||
                        'There was nothing to settle.'),
            );
            then();
        } catch (error) {
            setSaid(error.message);
        }
        setBusy(false);
    };
    return (
        <>
            <button type="button" onClick={open}>
                {label}
            </button>
            <dialog ref={dialog} aria-label={label}>
                <p>{said ?? `This will ${what}.`}</p>
                <div class="bar">
                    <button type="button" onClick={() => dialog.current.close()}>
                        {said ? 'Close' : 'Cancel'}
                    </button>
                    {said ? null : (
                        <button type="button" class="danger" disabled={isBusy} onClick={go}>
                            {label}
                        </button>
                    )}
                </div>
            </dialog>
        </>
    );
}
