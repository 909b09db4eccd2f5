import {useEffect, useRef} from 'preact/hooks';
import uPlot from 'uplot';
import {counted} from './api.js';

const colours = {
    light: ['#1f5f8b', '#a8561a', '#2a6b3c', '#7a3f86', '#a92a24', '#5d6324'],
    dark: ['#85bbe0', '#e5a36c', '#86c795', '#c99bd4', '#f0918a', '#c3c977'],
};

const seconds_min = 60;
const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);

/** Lines over time: `data` is [seconds, values of the first, …]. */
export function Plot({label, names, data}) {
    const place = useRef();
    const plot = useRef();
    const key = names.join('\n');
    useEffect(() => {
        const dark = matchMedia('(prefers-color-scheme: dark)');
        const draw = () => {
            plot.current?.destroy();
            const style = getComputedStyle(document.documentElement);
            const colour = colours[dark.matches ? 'dark' : 'light'];
            const axis = {
                stroke: style.getPropertyValue('--soft'),
                grid: {stroke: style.getPropertyValue('--line'), width: 1},
                ticks: {stroke: style.getPropertyValue('--line'), width: 1},
                font: '12px system-ui, sans-serif',
            };
            plot.current = new uPlot(
                {
                    width: place.current.clientWidth || 300,
                    height: 200,
                    axes: [
                        {
                            ...axis,
                            space: 80,
                            incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800],
                            values: (_, at) => at.map(clock),
                        },
                        {...axis, size: 64},
                    ],
                    // A minute at least: the first two points would be an axis of milliseconds.
                    scales: {
                        x: {range: (_, low, high) => [Math.min(low ?? 0, (high ?? 0) - seconds_min), high ?? 0]},
                        y: {range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.1]},
                    },
                    cursor: {points: {size: 6}},
                    legend: {live: true},
                    series: [
                        {label: 'UTC', value: (_, at) => (at === null ? '–' : clock(at))},
                        ...names.map((name, i) => ({
                            label: name,
                            stroke: colour[i % colour.length],
                            width: 1.5,
                            points: {show: false},
                            value: (_, value) => (value === null ? '–' : counted(value)),
                        })),
                    ],
                },
                data,
                place.current,
            );
        };
        draw();
        const sized = new ResizeObserver(() => plot.current.setSize({width: place.current.clientWidth, height: 200}));
        sized.observe(place.current);
        dark.addEventListener('change', draw);
        return () => {
            sized.disconnect();
            dark.removeEventListener('change', draw);
            plot.current.destroy();
            plot.current = undefined;
        };
    }, [key]);
    useEffect(() => plot.current?.setData(data), [data]);
    return <div class="plot" ref={place} role="img" aria-label={label} />;
}
