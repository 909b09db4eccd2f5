import {counted, get} from '../api.js';
import {Plot} from '../plot.jsx';
import {Failure, Head, State, useAsked} from '../ui.jsx';
import {watched} from '../watch.js';

export function Overview({about}) {
    const doctor = useAsked((signal) => get('doctor', {}, signal), [], 10);
    const followers = watched.followers;
    const behind = followers?.filter((one) => one.end > one.position).length;
    const rates = watched.rates[1];
    return (
        <>
            <Head title="Overview" />
            <dl class="facts">
                <div>
                    <dt>Writes of slots</dt>
                    <dd>{about?.position === undefined ? '–' : counted(about.position)}</dd>
                </div>
                <div>
                    <dt>Writes a second</dt>
                    <dd>{rates.length ? rates.at(-1).toFixed(rates.at(-1) < 10 ? 1 : 0) : '–'}</dd>
                </div>
                <div>
                    <dt>Followers</dt>
                    <dd>{followers ? followers.length : '–'}</dd>
                </div>
                <div>
                    <dt>Behind</dt>
                    <dd>{behind ?? '–'}</dd>
                </div>
            </dl>
            <h2>Writes a second, since this page was opened</h2>
            <Plot
                label={`Writes of slots a second, now ${rates.length ? Math.round(rates.at(-1)) : 'not known'}`}
                names={['writes/s']}
                data={[[...watched.rates[0]], [...rates]]}
            />
            <h2>Doctor</h2>
            <Failure error={doctor.error} />
            <Findings findings={doctor.value?.findings} />
        </>
    );
}

function Findings({findings}) {
    if (!findings) return <p class="soft">Looking…</p>;
    return (
        <div class="scroll" tabindex="0" role="region" aria-label="What the doctor found">
            <table>
                <thead>
                    <tr>
                        <th scope="col">is</th>
                        <th scope="col">what</th>
                        <th scope="col">found</th>
                    </tr>
                </thead>
                <tbody>
                    {findings.map((one) => (
                        <tr>
                            <td>
                                <State is={one.health}>{one.health}</State>
                            </td>
                            <td>{one.what}</td>
                            <td class="wrap">
                                {one.found}
                                {one.advice ? <div class="soft">→ {one.advice}</div> : null}
                            </td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}
