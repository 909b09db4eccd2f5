import {get, secondsBetween, shownSeconds, shownTime, streamLink} from '../api.js';
import {Act, Failure, Head, State, useAsked} from '../ui.jsx';

const health = {committed: 'well', aborted: 'odd', undecided: 'odd'};

/** "events/account-alice/3" is a slot, which its stream shows; rows have other tables. */
function Slot({name, isPrimary}) {
    const parts = name.split('/');
    const isSlot = parts[0] === 'events' && parts.length > 2;
    const text = <code>{name}</code>;
    return (
        <span class={isPrimary ? 'slot primary' : 'slot'}>
            {isSlot ? <a href={streamLink(parts.slice(1, -1).join('/'))}>{text}</a> : text}
        </span>
    );
}

export function Transactions({about}) {
    const {value, error, again} = useAsked((signal) => get('transactions', {}, signal), [], 2);
    const since = (time) => shownSeconds(Math.abs(secondsBetween(time, value.now)));
    const isOver = (one) => one.lease <= value.now;
    const dead = value?.transactions.filter(isOver).length ?? 0;
    return (
        <>
            <Head title="Transactions">
                {about?.writes && dead > 0 ? (
                    <Act
                        label="Settle what is dead"
                        what={`end the ${dead} whose lease is over, and put into place or undo what they have left`}
                        path="transactions/settle"
                        body={{transaction: ''}}
                        then={again}
                    />
                ) : null}
            </Head>
            <p class="soft">
                Those that hold stored items now. The primary slot decides; the others are put into place, or undone,
                after it.
            </p>
            <Failure error={error} />
            {value?.transactions.length === 0 ? <p>No transaction has a claim on anything.</p> : null}
            {value?.transactions.map((one) => (
                <section class="panel transaction" key={one.transaction} aria-label={'Transaction ' + one.transaction}>
                    <div class="head">
                        <div>
                            <code>{one.transaction}</code>{' '}
                            <State is={isOver(one) ? 'sick' : health[one.verdict]}>{one.verdict}</State>
                        </div>
                        {about?.writes ? (
                            <Act
                                label="Settle"
                                what={`end ${one.transaction}, whether its owner lives or not, and clear what it has left`}
                                path="transactions/settle"
                                body={{transaction: one.transaction}}
                                then={again}
                            />
                        ) : null}
                    </div>
                    <p class="soft">
                        Began {shownTime(one.since)}, {since(one.since)} ago.{' '}
                        {isOver(one)
                            ? `Its lease is over for ${since(one.lease)}: its owner has died.`
                            : `Its lease goes on for ${since(one.lease)}.`}
                    </p>
                    <ul class="tree">
                        <li>
                            <Slot name={one.primary} isPrimary /> <span class="soft">primary: it is {one.verdict}</span>
                            <ul>
                                {one.claims
                                    .filter((claim) => claim !== one.primary)
                                    .slice(0, 100)
                                    .map((claim) => (
                                        <li>
                                            <Slot name={claim} /> <span class="soft">claimed</span>
                                        </li>
                                    ))}
                                {one.claims.length > 100 ? (
                                    <li class="soft">and {one.claims.length - 100} more</li>
                                ) : null}
                            </ul>
                        </li>
                    </ul>
                </section>
            ))}
        </>
    );
}
