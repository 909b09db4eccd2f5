import {counted, get, shownSeconds, shownTime, streamLink} from '../api.js';
import {Plot} from '../plot.jsx';
import {Act, Failure, Head, State, Table, useAsked} from '../ui.jsx';
import {lookNow, nameOf, watched} from '../watch.js';

const delivery = '$deliver-';
const health = {stopped: 'sick', 'nobody has it': 'odd', 'up to date': 'well'};

function Acts({one, about, isBuilding}) {
    const act = (label, name, what) => (
        <Act label={label} what={what} path={'followers/' + name} body={{follower: one.name}} then={lookNow} />
    );
    const isRebuild = one.state.startsWith('rebuilt');
    return (
        <div class="actions">
            {isRebuild && !one.paused ? act('Pause', 'pause', `pause the rebuild of ${one.name}`) : null}
            {isRebuild && one.paused ? act('Resume', 'resume', `let the rebuild of ${one.name} go on`) : null}
            {!isRebuild && !isBuilding && !one.name.startsWith('$') && one.partition === 1
                ? act('Rebuild', 'rebuild', `have the rows of ${one.name} made anew beside those that are read`)
                : null}
            {one.parked > 0 && about.code.includes(one.name)
                ? act('Retry', 'retry', `take up again, here and now, what ${one.name} has set aside`)
                : null}
        </div>
    );
}

export function FollowerTable({followers, about, label}) {
    const columns = [
        'name',
        'state',
        {name: 'behind', number: true},
        {name: 'lag', number: true},
        {name: 'taken', number: true},
        {name: 'aside', number: true},
    ];
    return (
        <Table label={label} columns={[...columns, 'error', ...(about?.writes ? ['acts'] : [])]}>
            {followers.map((one) => (
                <tr key={nameOf(one)}>
                    <td>{nameOf(one)}</td>
                    <td>
                        <State is={health[one.state] ?? ''}>{one.state}</State>
                    </td>
                    <td class="number">{counted(one.end - one.position)}</td>
                    <td class="number">
                        {one.end > one.position && one.lag_seconds !== undefined ? shownSeconds(one.lag_seconds) : ''}
                    </td>
                    <td class="number">{counted(one.events)}</td>
                    <td class="number">{one.parked > 0 ? <State is="sick">{counted(one.parked)}</State> : 0}</td>
                    <td class={one.error ? 'wrap' : undefined}>{one.error}</td>
                    {about?.writes ? (
                        <td>
                            <Acts
                                one={one}
                                about={about}
                                isBuilding={followers.some(
                                    (other) => other.name === one.name && other.state.startsWith('rebuilt'),
                                )}
                            />
                        </td>
                    ) : null}
                </tr>
            ))}
        </Table>
    );
}

export function Parked({of}) {
    const {value, error} = useAsked((signal) => get('parked', {}, signal), [], 5);
    const parked = value?.parked.filter((one) => of(one.follower));
    return (
        <>
            <Failure error={error} />
            {parked?.length ? (
                <Table
                    label="Set aside"
                    columns={['follower', 'stream', {name: 'version', number: true}, 'type', 'since (UTC)', 'error']}
                >
                    {parked.map((one) => (
                        <tr>
                            <td>{one.follower}</td>
                            <td class="mono">
                                <a href={streamLink(one.stream, one.version)}>{one.stream}</a>
                            </td>
                            <td class="number">{one.version}</td>
                            <td>{one.type}</td>
                            <td>{shownTime(one.since)}</td>
                            <td class="wrap">{one.error}</td>
                        </tr>
                    ))}
                </Table>
            ) : (
                <p class="soft">{parked ? 'Nothing is set aside.' : 'Looking…'}</p>
            )}
        </>
    );
}

export function Followers({about}) {
    const followers = watched.followers?.filter((one) => !one.name.startsWith(delivery));
    const names = [...watched.lags.keys()].filter((name) => !name.startsWith(delivery)).slice(0, 6);
    return (
        <>
            <Head title="Followers" />
            {followers?.length ? (
                <>
                    <FollowerTable label="Followers" followers={followers} about={about} />
                    <h2>Behind, in writes of slots, since this page was opened</h2>
                    <Plot
                        label={
                            'How far behind they are: ' +
                            followers.map((one) => `${nameOf(one)} ${one.end - one.position}`).join(', ')
                        }
                        names={names}
                        data={[[...watched.times], ...names.map((name) => [...watched.lags.get(name)])]}
                    />
                </>
            ) : (
                <p>{followers ? 'Nobody follows the events.' : 'Looking…'}</p>
            )}
            <h2>Streams that are set aside</h2>
            <Parked of={(name) => !name.startsWith(delivery)} />
        </>
    );
}
