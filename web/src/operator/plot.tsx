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
import { placeNames } from './marks';
import { ot, type OpKey } from './texts';

/** An operator's action, or the automatic opening, marked in the chart. */
export interface Mark {
  /** Epoch in seconds. */
  at: number;
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

/** Rows of names, and the height of one in px. Names without room are left out; the audit log below lists all of them. */
const NAME_ROWS = 4;
const NAME_PX = 14;

/** Draws the marks as dashed lines with their names. */
function drawMarks(plot: UPlot, marks: readonly Mark[], colour: string): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.setLineDash([4 * ratio, 4 * ratio]);
  const { min = 0, max = 0 } = plot.scales['x']!;
  const shown = marks.filter(({ at }) => at >= min && at <= max).map(({ at, name }) => ({ name, x: plot.valToPos(at, 'x', true) / ratio, width: ctx.measureText(name).width / ratio }));
  const names = placeNames(shown, { left: bbox.left / ratio, right: (bbox.left + bbox.width) / ratio }, NAME_ROWS);
  shown.forEach(({ name, x }, i) => {
    ctx.beginPath();
    ctx.moveTo(x * ratio, bbox.top);
    ctx.lineTo(x * ratio, bbox.top + bbox.height);
    ctx.stroke();
    const at = names[i];
    if (at) ctx.fillText(name, at.x * ratio, bbox.top + NAME_PX * (at.row + 1) * ratio);
  });
  ctx.restore();
}

/** Demand against orders, with the units left as an area, over the last minutes. The figures above are its text alternative. */
export function Plot({ series, marks }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const marked = useRef(marks);
  marked.current = marks;
  const under = useSignal<number | null>(null);
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
          draw: [(self) => drawMarks(self, marked.current, colour('ink'))],
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
      <div ref={box} role="img" style={{ minHeight: HEIGHT }} aria-label={ot('op.plot', { name: keys.map(([, name]) => name).join(', ') })} />
    </figure>
  );
}
