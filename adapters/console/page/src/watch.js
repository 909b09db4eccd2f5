// What is watched as long as the page is open, whichever view is seen: how far the events go, and who follows them.
import {get} from './api.js';

const points_max = 1800;
const seconds_between = 2;

export const watched = {
    about: undefined,
    error: undefined,
    rates: [[], []], // seconds, writes of slots a second
    lags: new Map(), // by follower: [seconds, behind]
    times: [],
    followers: undefined,
    listeners: new Set(),
};

let last;

function note(about, followers) {
    const at = Date.parse(about.time) / 1000;
    if (about.position !== undefined) {
        if (last && at > last.at && about.position >= last.position) {
            watched.rates[0].push(at);
            watched.rates[1].push((about.position - last.position) / (at - last.at));
        }
        last = {at, position: about.position};
    }
    watched.times.push(at);
    for (const one of followers) {
        const name = nameOf(one);
        if (!watched.lags.has(name)) watched.lags.set(name, Array(watched.times.length - 1).fill(null));
        watched.lags.get(name).push(one.end - one.position);
    }
    for (const line of watched.lags.values()) if (line.length < watched.times.length) line.push(null);
    for (const line of [...watched.rates, watched.times, ...watched.lags.values()])
        if (line.length > points_max) line.shift();
}

export function nameOf(follower) {
    let name = follower.name;
    if (follower.build > 1) name += ` build ${follower.build}`;
    if (follower.partitions > 1) name += ` ${follower.partition}/${follower.partitions}`;
    return name;
}

async function look() {
    try {
        const about = await get('about');
        watched.about = about;
        watched.error = undefined;
        // A store without a feed has nobody who follows it.
        const followers = about.position === undefined ? [] : (await get('followers')).followers;
        watched.followers = followers;
        note(about, followers);
    } catch (error) {
        watched.error = error;
    }
    for (const tell of watched.listeners) tell();
}

let timer;
export function watch() {
    clearTimeout(timer);
    const go = async () => {
        if (!document.hidden) await look();
        timer = setTimeout(go, seconds_between * 1000);
    };
    return go();
}
export const lookNow = look;
