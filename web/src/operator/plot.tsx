import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Fault } from '@seckill/client/fault';
import type UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { lang } from '../i18n/lang';
import { clockTime, count } from '../i18n/text';
import { FaultMessage } from '../ui/bits';
import { dark } from '../ui/theme';
import type { Point } from './figures';
import { groupMarks, kindOf } from './marks';
import { ot, type OpKey } from './texts';

/** An operator's action, or the automatic opening, marked in the chart. */
export interface Mark {
  /** Epoch in seconds. */
  at: number;
  /** The action, as the log has it. */
  action: string;
  name: string;
}

interface Props {
  series: Point[];
  marks: readonly Mark[];
}

const HEIGHT = 300;
/** Steps between ticks: whole numbers, because the axes show counts. */
const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

/** Steps between ticks of time, in seconds. */
const MINUTES = [60, 120, 300];
/** Width below which the axes have no names, in px. */
const SLIM_PX = 500;

/** Resolves a colour token for the current theme with a new element: existing ones may be in a colour transition. */
function resolve(parent: HTMLElement, name: string): string {
  const probe = parent.appendChild(document.createElement('span'));
  probe.style.color = `var(--color-${name})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Time of day of an epoch in seconds, without the seconds. */
const minute = (at: number): string => clockTime(at * 1000).slice(0, 5);

/** Width of the icon of a mark, with the distance to the next one, in px. */
const ICON_PX = 30;

/** Icons by kind of mark, on a grid of 24. */
const icons = {
  open: 'M8 5v14l11-7z',
  pause: 'M9 6v12M15 6v12',
  stock: 'M4 8l8-4 8 4v8l-8 4-8-4zm0 0 8 4 8-4m-8 4v8',
  end: 'M7 7h10v10H7z',
  other: 'M6 21V4h11l-2 4 2 4H6',
};

/** A mark with its place, in px from the left edge of the chart. */
type Placed = Mark & { x: number };

/** Draws the marks as dashed lines; their icons are elements over the chart. Returns where they are. */
function drawMarks(plot: UPlot, marks: readonly Mark[], colour: string): Placed[] {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const { min = 0, max = 0 } = plot.scales['x']!;
  const shown = marks.filter(({ at }) => at >= min && at <= max).map((mark) => ({ ...mark, x: plot.valToPos(mark.at, 'x', true) / ratio }));
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.setLineDash([4 * ratio, 4 * ratio]);
  for (const { x } of shown) {
    ctx.beginPath();
    ctx.moveTo(x * ratio, bbox.top);
    ctx.lineTo(x * ratio, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
  return shown;
}

/** The icons of the marks; marks that are close share one. Its text is shown on hover and on focus. */
function Icons({ marks, width }: { marks: readonly Placed[]; width: number }) {
  return (
    <ol class="absolute inset-x-0 top-0 h-7" aria-label={ot('op.marks')}>
      {groupMarks(marks, ICON_PX).map((group) => {
        const [first] = group.marks;
        const lines = group.marks.map(({ at, name }) => `${clockTime(at * 1000)} ${name}`);
        return (
          <li key={first!.at} class="group absolute -translate-x-1/2" style={{ left: `${group.x}px` }}>
            <button type="button" class="grid h-7 min-w-7 place-items-center rounded-full border border-edge bg-card text-sm font-semibold tabular-nums" aria-label={[...(lines.length > 1 ? [count(lines.length)] : []), ...lines].join('\n')}>
              {group.marks.length > 1 ? (
                <span aria-hidden="true">{count(group.marks.length)}</span>
              ) : (
                <svg width="16" height="16" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
                  <path d={icons[kindOf(first!.action)]} />
                </svg>
              )}
            </button>
            <span aria-hidden="true" class={`absolute top-8 z-10 hidden w-max max-w-56 rounded-lg bg-ink px-2 py-1 text-left font-normal text-page shadow-lg group-hover:grid group-focus-within:grid ${group.x < width / 2 ? 'left-0' : 'right-0'}`} data-marks>
              {lines.map((line) => (
                <span key={line}>{line}</span>
              ))}
            </span>
          </li>
        );
      })}
    </ol>
  );
}

/** Demand against orders, with the units left as an area, over the last minutes. The figures above are its text alternative. */
export function Plot({ series, marks }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const marked = useRef(marks);
  marked.current = marks;
  const under = useSignal<number | null>(null);
  const placed = useSignal<{ marks: Placed[]; width: number }>({ marks: [], width: 0 });
  const library = useSignal<typeof UPlot | 'failed' | null>(null);
  const data: UPlot.AlignedData = [series.map(({ at }) => at), series.map(({ left }) => left), series.map(({ requests }) => requests), series.map(({ orders }) => orders)];

  // uPlot is loaded after the figures are rendered.
  const fetch = (): void => {
    library.value = null;
    import('uplot').then(
      (module) => (library.value = module.default),
      () => (library.value = 'failed'),
    );
  };
  useEffect(fetch, []);

  const Library = library.value;
  useEffect(() => {
    if (!Library || Library === 'failed') return undefined;
    const element = box.current!;
    const colour = (name: string): string => resolve(element, name);
    const slim = element.clientWidth < SLIM_PX;
    const value = (label: OpKey) => ({ ...axis, size: slim ? 40 : 56, incrs: WHOLE, ...(!slim && { label: ot(label), labelSize: 20 }) });
    const axis = { stroke: colour('soft'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false } };
    const upright = { range: (_plot: UPlot, _min: number, max: number): [number, number] => [0, Math.max(1, max * 1.1)] };
    const made = new Library(
      {
        width: element.clientWidth,
        height: HEIGHT,
        cursor: { y: false, drag: { x: false, y: false } },
        legend: { show: false },
        axes: [
          { ...axis, size: 28, incrs: MINUTES, values: (_plot, splits) => splits.map(minute) },
          value('op.everySecond'),
          { ...value('op.units'), scale: 'units', side: 1, grid: { show: false } },
        ],
        scales: { y: upright, units: upright },
        series: [
          {},
          { scale: 'units', stroke: colour('edge'), fill: colour('sunk'), width: 1, points: { show: false } },
          { stroke: colour('warn'), width: 2, points: { show: false } },
          { stroke: colour('good'), width: 2, points: { show: false } },
        ],
        hooks: {
          draw: [(self) => void (placed.value = { marks: drawMarks(self, marked.current, colour('soft')), width: element.clientWidth })],
          setCursor: [({ cursor: { idx } }) => void (under.value = idx ?? null)],
        },
      },
      data,
      element,
    );
    plot.current = made;
    const sized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    sized.observe(element);
    return () => {
      sized.disconnect();
      made.destroy();
    };
  }, [Library, dark.value, lang.value]);
  useEffect(() => plot.current?.setData(data), [series, marks.length]);

  const point = series[under.value ?? -1] ?? series.at(-1);
  const keys = [
    ['bg-warn', ot('op.requests'), point?.requests],
    ['bg-good', ot('op.perSecond'), point?.orders],
    ['bg-edge', ot('op.remaining'), point?.left],
  ] as const;
  return (
    <figure class="min-w-0">
      <figcaption class="mb-1 flex flex-wrap items-center gap-x-4 gap-y-1 text-sm text-soft tabular-nums">
        {keys.map(([colour, name, n]) => (
          <span key={name} class="flex items-center gap-1.5">
            <span class={`h-0.5 w-4 ${colour}`} />
            {name} {count(Math.round(n ?? 0))}
          </span>
        ))}
        {point && <span>{clockTime(point.at * 1000)}</span>}
      </figcaption>
      {Library === 'failed' && <FaultMessage fault={new Fault('NETWORK', '')} again={fetch} />}
      <div class="relative pt-8">
        <div ref={box} role="img" style={{ minHeight: HEIGHT }} aria-label={ot('op.plot', { name: keys.map(([, name]) => name).join(', ') })} />
        <Icons {...placed.value} />
      </div>
    </figure>
  );
}
