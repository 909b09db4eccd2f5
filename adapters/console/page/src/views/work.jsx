import {get, secondsBetween, shownSeconds, shownTime} from '../api.js';
import {Act, Failure, Head, State, Table, useAsked} from '../ui.jsx';
import {watched} from '../watch.js';
import {FollowerTable, Parked} from './followers.jsx';

const delivery = '$deliver-';

export function Work({about}) {
    const {value, error, again} = useAsked((signal) => get('timers', {}, signal), [], 5);
    const deliveries = watched.followers?.filter((one) => one.name.startsWith(delivery));
    const failed = [
        ...new Set(
            value?.timers.filter((one) => one.error && about?.code.includes(one.follower)).map((one) => one.follower) ??
                [],
        ),
    ];
    return (
        <>
            <Head title="Effects and timers" />
            <h2>Deliveries of effects</h2>
            {deliveries?.length ? (
                <FollowerTable label="Deliveries" followers={deliveries} about={about} />
            ) : (
                <p class="soft">Nobody delivers effects.</p>
            )}
            <h2>Effects that are set aside</h2>
            <Parked of={(name) => name.startsWith(delivery)} />
            <h2>Timers</h2>
            <Failure error={error} />
            {about?.writes
                ? failed.map((name) => (
                      <p>
                          <Act
                              label={`Fire those of ${name} again`}
                              what={`fire, here and now, the timers of ${name} that have failed`}
                              path="timers/retry"
                              body={{name}}
                              then={again}
                          />
                      </p>
                  ))
                : null}
            {value?.timers.length ? (
                <Table
                    label="Timers"
                    columns={['due (UTC)', 'is', 'for', 'type', 'error', ...(about?.writes ? ['acts'] : [])]}
                >
                    {value.timers.map((one) => {
                        const left = secondsBetween(value.now, one.due);
                        return (
                            <tr key={one.id}>
                                <td>{shownTime(one.due)}</td>
                                <td>
                                    <State is={one.error ? 'sick' : left < -60 ? 'odd' : ''}>
                                        {one.error
                                            ? 'failed'
                                            : left > 0
                                              ? 'in ' + shownSeconds(left)
                                              : 'late by ' + shownSeconds(-left)}
                                    </State>
                                </td>
                                <td>
                                    {one.follower} <span class="mono">{one.instance}</span>
                                </td>
                                <td>{one.type}</td>
                                <td class={one.error ? 'wrap' : undefined}>{one.error}</td>
                                {about?.writes ? (
                                    <td>
                                        <Act
                                            label="Drop"
                                            what={`give up the timer ${one.id} for ever`}
                                            path="timers/drop"
                                            body={{name: one.id}}
                                            then={again}
                                        />
                                    </td>
                                ) : null}
                            </tr>
                        );
                    })}
                </Table>
            ) : (
                <p class="soft">{value ? 'There are no timers.' : 'Looking…'}</p>
            )}
        </>
    );
}
