import './page.css';
import {render} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {post, whenNoToken} from './api.js';
import {Failure} from './ui.jsx';
import {watch, watched} from './watch.js';
import {Causation} from './views/causation.jsx';
import {Followers} from './views/followers.jsx';
import {Locks} from './views/locks.jsx';
import {Overview} from './views/overview.jsx';
import {Stream, Streams} from './views/streams.jsx';
import {Tail} from './views/tail.jsx';
import {Transactions} from './views/transactions.jsx';
import {Work} from './views/work.jsx';

const views = [
    {path: '', name: 'Overview', view: Overview},
    {path: 'streams', name: 'Streams', view: Streams, one: Stream},
    {path: 'tail', name: 'Tail', view: Tail},
    {path: 'transactions', name: 'Transactions', view: Transactions},
    {path: 'followers', name: 'Followers', view: Followers},
    {path: 'work', name: 'Effects and timers', view: Work},
    {path: 'locks', name: 'Locks', view: Locks},
    {path: 'causation', name: 'Causation', view: Causation, one: Causation},
];

/** "#/streams/account-alice?version=3" */
function whereFrom(hash) {
    const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
    const [first, ...rest] = path.split('/');
    let name = '';
    try {
        name = decodeURIComponent(rest.join('/'));
    } catch {
        name = rest.join('/');
    }
    return {view: views.find((one) => one.path === first) ?? views[0], name, query: new URLSearchParams(query)};
}

function Login({then}) {
    const [error, setError] = useState();
    const send = async (event) => {
        event.preventDefault();
        try {
            await post('/login', {token: event.target.elements.token.value});
            then();
        } catch (failed) {
            setError(failed);
        }
    };
    return (
        <main class="login">
            <h1>varve</h1>
            <p>This server wants its token, which is in the file that it was started with.</p>
            <Failure error={error} />
            <form class="bar" onSubmit={send}>
                <label for="token">Token</label>
                <input id="token" name="token" type="password" autocomplete="current-password" required />
                <button type="submit">Log in</button>
            </form>
        </main>
    );
}

function Page() {
    const [hash, setHash] = useState(location.hash);
    const [needsToken, setNeedsToken] = useState(false);
    const [, setRound] = useState(0);
    const main = useRef();
    useEffect(() => {
        whenNoToken(() => setNeedsToken(true));
        const changed = () => {
            setHash(location.hash);
            main.current?.focus();
        };
        const tell = () => setRound((n) => n + 1);
        addEventListener('hashchange', changed);
        watched.listeners.add(tell);
        watch();
        return () => {
            removeEventListener('hashchange', changed);
            watched.listeners.delete(tell);
        };
    }, []);
    const where = whereFrom(hash);
    useEffect(() => {
        document.title = (where.name || where.view.name) + ' · varve';
    });
    if (needsToken) {
        return (
            <Login
                then={() => {
                    setNeedsToken(false);
                    watch();
                }}
            />
        );
    }
    const about = watched.about;
    const View = where.name && where.view.one ? where.view.one : where.view.view;
    return (
        <>
            <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current.focus())}>
                Skip to content
            </a>
            <header class="top">
                <div class="name">
                    {about?.program ?? 'varve'}
                    <span>
                        {about ? `${about.store}, ${about.writes ? 'may change the store' : 'read only'}` : ' '}
                    </span>
                </div>
                <nav aria-label="Views">
                    <ul>
                        {views.map((one) => (
                            <li>
                                <a href={'#/' + one.path} aria-current={one === where.view ? 'page' : undefined}>
                                    {one.name}
                                </a>
                            </li>
                        ))}
                    </ul>
                </nav>
            </header>
            <main id="main" ref={main} tabindex="-1">
                <Failure error={watched.error} />
                <View key={where.view.path + where.name} name={where.name} query={where.query} about={about} />
            </main>
        </>
    );
}

render(<Page />, document.getElementById('page'));
