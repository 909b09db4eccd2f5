// What the server is asked, and how it is shown.

export class Refused extends Error {
    constructor(status, kind, message) {
        super(message);
        this.status = status;
        this.kind = kind;
    }
}

let onNoToken = () => {};
export function whenNoToken(tell) {
    onNoToken = tell;
}

/** Numbers that JavaScript has no value for, as 64-bit ids, are kept as they are written, where the browser can. */
function exactly(_, value, context) {
    const isInexact = typeof value === 'number' && context?.source !== undefined && String(value) !== context.source;
    return isInexact && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
}

async function ask(path, options) {
    let response;
    try {
        response = await fetch(path, {credentials: 'same-origin', cache: 'no-store', ...options});
    } catch (error) {
        if (error.name === 'AbortError') throw error;
        throw new Refused(0, 'gone', 'The server does not answer.');
    }
    if (response.status === 204) return null;
    const text = await response.text();
    let value;
    try {
        value = JSON.parse(text, exactly);
    } catch {
        throw new Refused(response.status, 'unreadable', 'The server has said something that is no JSON.');
    }
    if (response.ok) return value;
    if (response.status === 401 && path !== '/login') onNoToken();
    throw new Refused(response.status, value.error, value.message);
}

export function get(path, query = {}, signal = undefined) {
    const parts = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
    const text = parts.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
    return ask('/api/' + path + (text ? '?' + text : ''), {signal});
}
export function post(path, body) {
    return ask(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)});
}

export const counted = (count) => Math.round(count).toLocaleString('en');

/** "2026-01-31 12:00:00", in UTC. */
export const shownTime = (time) => (time ? time.slice(0, 19).replace('T', ' ') : '');

/** "3.2 s", "5 min". */
export function shownSeconds(seconds) {
    const all = Math.abs(seconds);
    const sign = seconds < 0 ? '−' : '';
    if (all < 10) return `${sign}${all.toFixed(1)} s`;
    if (all < 120) return `${sign}${Math.round(all)} s`;
    if (all < 7200) return `${sign}${Math.round(all / 60)} min`;
    if (all < 172800) return `${sign}${Math.round(all / 3600)} h`;
    return `${sign}${Math.round(all / 86400)} d`;
}
export const secondsBetween = (from, to) => (Date.parse(to) - Date.parse(from)) / 1000;

export const streamLink = (name, version) =>
    '#/streams/' + encodeURIComponent(name) + (version ? '?version=' + version : '');
export const correlationLink = (id) => '#/causation/' + encodeURIComponent(id);
