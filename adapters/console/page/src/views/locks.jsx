import {get, secondsBetween, shownSeconds} from '../api.js';
import {Act, Failure, Head, Table, useAsked} from '../ui.jsx';

export function Locks({about}) {
    const {value, error, again} = useAsked((signal) => get('locks', {}, signal), [], 2);
    const evict = (lock, ticket, whose) => (
        <Act
            label="Evict"
            what={`take ${whose} from ticket ${ticket}, whose owner may live`}
            path="locks/evict"
            body={{lock, ticket}}
            then={again}
        />
    );
    return (
        <>
            <Head title="Locks" />
            <p class="soft">
                Users’ locks, and the framework’s own, whose names begin with $. A hot aggregate shows as a queue for
                its lock.
            </p>
            <Failure error={error} />
            {value?.locks.length === 0 ? <p>Nobody holds a lock or waits for one.</p> : null}
            {value?.locks.length ? (
                <Table
                    label="Locks"
                    columns={[
                        'lock',
                        'is',
                        'owner',
                        {name: 'ticket', number: true},
                        {name: 'fence', number: true},
                        'expires',
                        ...(about?.writes ? ['acts'] : []),
                    ]}
                >
                    {value.locks.flatMap((lock) => [
                        <tr key={lock.lock}>
                            <td class="mono">{lock.lock}</td>
                            <td>{lock.owner ? 'held' : 'free'}</td>
                            <td class="mono">{lock.owner || 'nobody'}</td>
                            <td class="number">{lock.owner ? lock.ticket : ''}</td>
                            <td class="number">{lock.fence}</td>
                            <td>{lock.expires ? 'in ' + shownSeconds(secondsBetween(value.now, lock.expires)) : ''}</td>
                            {about?.writes ? (
                                <td>{lock.owner ? evict(lock.lock, lock.ticket, `the lock ${lock.lock}`) : null}</td>
                            ) : null}
                        </tr>,
                        ...lock.queue.map((one, i) => (
                            <tr key={lock.lock + one.ticket}>
                                <td />
                                <td>waits, place {i + 1}</td>
                                <td class="mono">{one.owner}</td>
                                <td class="number">{one.ticket}</td>
                                <td />
                                <td>in {shownSeconds(secondsBetween(value.now, one.expires))}</td>
                                {about?.writes ? (
                                    <td>{evict(lock.lock, one.ticket, `the place in the queue of ${lock.lock}`)}</td>
                                ) : null}
                            </tr>
                        )),
                    ])}
                </Table>
            ) : null}
        </>
    );
}
